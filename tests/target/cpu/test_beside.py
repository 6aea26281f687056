# SPDX-License-Identifier: Apache-2.0
"""Loops of known length: how many rounds stand beside each other, and that LLVM adds none."""

from __future__ import annotations

import pytest
import tvm
from tvm import tirx
from tvm_ffi.structural import structural_walk
from uir_tvm.target.cpu.address import INDEX, index
from uir_tvm.target.cpu.beside import BESIDE, loop_beside
from uir_tvm.target.cpu.code import Code
from uir_tvm.target.cpu.llvm_text import LlvmText

LANES = 8


def squared(rounds: int, vectors: int) -> tirx.PrimFunc:
    """Rounds that square some vectors each."""
    code, text = Code(), LlvmText()
    x, y = (tirx.decl_buffer((rounds * vectors * LANES,), "float32", name=name) for name in "xy")

    def body(inner: Code, at: tvm.ir.Expr) -> None:
        for k in range(vectors):
            place = [tirx.Ramp(at + k * LANES, index(1), LANES)]
            inner.add(tirx.BufferStore(y, tirx.BufferLoad(x, place) * tirx.BufferLoad(x, place), place))

    loop_beside(code, text, index(0), index(rounds), vectors * LANES, vectors, body, "c")
    return tirx.PrimFunc([x, y], text.attach(code.statement())).with_attr(
        {"global_symbol": "main", "tirx.noalias": True}
    )


def lengths(func: tirx.PrimFunc) -> list[int]:
    """The lengths of loops, the outermost first."""
    found: list[int] = []
    structural_walk(func.body, (tirx.For, lambda loop: found.append(int(loop.extent))))
    return found


@pytest.mark.parametrize(
    ("rounds", "vectors", "expected"),
    [
        (48, 1, [6, 8]),
        (12, 4, [6, 2]),
        (9, 4, [9]),
        (5, 2 * BESIDE, [5]),
        (7, 1, [7]),
        (2, 4, [2]),
    ],
)
def test_rounds_beside_each_other_divide_the_loop(rounds: int, vectors: int, expected: list[int]) -> None:
    assert sorted(lengths(squared(rounds, vectors))) == sorted(expected)


def test_llvm_repeats_no_more() -> None:
    """96 rounds of a vector are 8 copies in a loop; without the mark all of them would stand there."""
    func = squared(96, 1)
    target = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3"})
    text = str(tvm.compile(tvm.IRModule({"main": func}), target=target).mod.inspect_source("ll"))
    assert text.count("store <8 x float>") == BESIDE


def test_a_length_that_a_size_decides_is_one_loop() -> None:
    code, text = Code(), LlvmText()
    count = tirx.Var("n", INDEX)
    loop_beside(code, text, index(0), count, 1, 1, lambda inner, at: inner.add(tirx.Evaluate(at)), "c")
    assert isinstance(code.statement(), tirx.For) and not text.definitions
