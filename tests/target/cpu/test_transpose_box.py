# SPDX-License-Identifier: Apache-2.0
"""A box that is transposed by two loops: what it moves, and in how few instructions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import tirx
from uir_tvm.target.cpu.address import index
from uir_tvm.target.cpu.llvm_text import LlvmText
from uir_tvm.target.cpu.transpose_box import BoxSide, transpose_box

from .support import llvm_target

HASWELL = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "haswell"}
#: Instructions of x86 that move an 8 x 8 block of 4 bytes, and that may carry its places and count it.
MOVING, CARRYING = 40, 8


def box(bits: int, lanes: int, target: tvm.target.Target, is_down: bool = False) -> Any:
    """A kernel of ``(source, target, rows, columns)`` of the target; blocks go along its rows, or down."""
    text, size = LlvmText(), tirx.Var("size", "int64")
    rows, cols = (tirx.Var(name, "int64") for name in ("rows", "cols"))
    source, made = (tirx.decl_buffer((size,), f"int{bits}", name) for name in "xy")
    down, across = BoxSide(rows, index(1), cols), BoxSide(cols, rows, index(1))
    sides = (across, down) if is_down else (down, across)
    call = transpose_box(text, bits, source, index(0), rows, made, index(0), cols, lanes, *sides)
    func = tirx.PrimFunc([source, made, rows, cols], text.attach(call))
    func = func.with_attr({"global_symbol": "main", "tirx.noalias": True})
    return tvm.tirx.build(tvm.IRModule({"main": func}), target=target)


@pytest.mark.parametrize(("bits", "lanes"), [(8, 16), (16, 8), (32, 4), (32, 8), (32, 16), (64, 4)])
@pytest.mark.parametrize("is_down", [False, True])
def test_every_element_is_moved_and_nothing_else(bits: int, lanes: int, is_down: bool) -> None:
    """One block, whole blocks and ends of either side; what lies behind the target stays."""
    kernel = box(bits, lanes, llvm_target(), is_down)["main"]
    rng = np.random.default_rng(3)
    sides = (lanes, lanes + 1, 2 * lanes - 1, 2 * lanes, 4 * lanes + 3)
    for rows, cols in [(rows, cols) for rows in sides for cols in sides]:
        given = rng.integers(1, 100, cols * rows + lanes).astype(f"int{bits}")
        out = tvm.runtime.tensor(np.zeros_like(given))
        kernel(tvm.runtime.tensor(given), out, rows, cols)
        want = np.append(given[:-lanes].reshape(cols, rows).T, np.zeros(lanes, given.dtype))
        np.testing.assert_array_equal(out.numpy(), want, err_msg=f"{rows} x {cols}")


def test_a_block_takes_few_instructions_beside_its_moves() -> None:
    """No address of a block is a multiplication, and nothing that it needs is spilled."""
    lines = box(32, 8, tvm.target.Target(HASWELL)).inspect_source("s").splitlines()
    code = [line.strip() for line in lines if re.match(r"\.LBB|\t[a-z]", line)]
    inner = []
    for at, line in enumerate(code):
        back = re.match(r"jne\s+(\.LBB\w+)", line)
        if back and f"{back[1]}:" in code[:at]:
            body = code[code.index(f"{back[1]}:") + 1 : at + 1]
            if any("vunpcklps" in each or "vpunpckldq" in each for each in body):
                inner.append(body)
    shortest = min(inner, key=len)
    assert len(shortest) <= MOVING + CARRYING, shortest
    assert not any("imul" in line or "(%rsp)" in line for line in shortest)
