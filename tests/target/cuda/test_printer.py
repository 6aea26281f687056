# SPDX-License-Identifier: Apache-2.0
"""The text of CUDA kernels: expressions that C computes rightly, and goldens of whole kernels.

``UIR_UPDATE_GOLDEN=1 pytest tests/target/cuda/test_printer.py`` writes the goldens anew.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import tvm_ffi
from uir_tvm import hardware
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph, IPointer, ISlice, affine, make, var
from uir_tvm.igraph.affine import Affine
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.target.cuda.lower import lower

GOLDEN = Path(__file__).parent / "golden"
HAND = Path(__file__).parents[2] / "corpus" / "hand"
#: What each golden shows.
GRAPHS = (
    "bias_from_leader",
    "grouped_softmax",
    "histogram",
    "neighbours_sram",
    "online_softmax",
    "share_of_total",
    "staged_transpose",
)


class C(int):
    """An integer that divides as C does, rounding towards zero."""

    def __truediv__(self, other: int) -> C:
        quotient = abs(int(self)) // abs(other)
        return C(quotient if (self >= 0) == (other > 0) else -quotient)

    def __mod__(self, other: int) -> C:
        return C(int(self) - int(self / other) * other)

    def _of(name: str):  # type: ignore[no-untyped-def, misc]
        plain = getattr(int, name)
        return lambda self, other: C(plain(int(self), int(other)))

    __add__, __radd__, __sub__ = _of("__add__"), _of("__radd__"), _of("__sub__")
    __mul__, __rmul__, __rsub__ = _of("__mul__"), _of("__rmul__"), _of("__rsub__")
    __rshift__, __and__ = _of("__rshift__"), _of("__and__")

    def __neg__(self) -> C:
        return C(-int(self))


def _random_affine(rng: random.Random, depth: int = 2) -> Affine:
    total = affine(rng.randint(-40, 40))
    for name in rng.sample(["pid", "k", "step"], rng.randint(1, 3)):
        total = total + rng.choice([-7, -1, 1, 2, 3, 64]) * var(name)
    if depth and rng.random() < 0.7:
        inner = _random_affine(rng, depth - 1)
        divisor = rng.choice([2, 3, 4, 7, 32])
        total = total + rng.choice([-3, 1, 5]) * (inner // divisor if rng.random() < 0.5 else inner % divisor)
    return total


def test_expressions_round_down() -> None:
    """The C text of an expression has its value for every value of the variables, negative operands too."""
    rng = random.Random(0)
    expression = tvm_ffi.get_global_func("uir.codegen.expression")
    extents = {"pid": 12, "k": 5, "step": 3}
    for _ in range(200):
        expr = _random_affine(rng)
        printed = expression(expr, extents)
        code = compile(str(printed["text"]), "text", "eval")
        for _ in range(20):
            env = {name: rng.randrange(extent) for name, extent in extents.items()}
            value = eval(code, {}, {name: C(v) for name, v in env.items()})
            assert value == expr.evaluate(env), (expr, printed["text"], env)
            assert printed["low"] <= value <= printed["high"]
            assert value % C(printed["power_of_two"]) == 0


def test_wide_offsets_are_64_bits() -> None:
    """Where a value may leave 32 bits the first term is widened, so that every partial sum is."""
    expression = tvm_ffi.get_global_func("uir.codegen.expression")
    far = expression(100000 * var("pid") + var("k"), {"pid": 100000, "k": 4})
    assert far["type"] == "int64_t" and "int64_t(" in str(far["text"])
    near = expression(100 * var("pid") + var("k"), {"pid": 100, "k": 4})
    assert near["type"] == "int" and "int64_t" not in str(near["text"])


@pytest.mark.parametrize("name", GRAPHS)
def test_golden(name: str) -> None:
    """The whole text of a kernel, for reviewers of a change to the printer."""
    graph = parse_igraph((HAND / f"{name}.igraph").read_text()).replace(hardware=hardware.get("h200", "cuda"))
    text, file = str(lower(graph)), GOLDEN / f"{name}.cu"
    if os.environ.get("UIR_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text(), f"UIR_UPDATE_GOLDEN=1 writes {file.name} anew"


def test_too_much_shared_memory_is_refused() -> None:
    """What a block cannot have is said before a compiler is asked."""
    model = hardware.get("h200", "cuda")
    size = int(model.sram_bytes) // 4 + 1
    x = IPointer("x", "dram", "fp32", size, "in")
    y = IPointer("y", "dram", "fp32", size, "out")
    s = IPointer("s", "sram", "fp32", size, "tmp")
    whole = [ISlice(p, 0, (1, size)) for p in (x, y, s)]
    graph = IGraph(
        "big", model, 1, 1, [x, y, s], [make.move(whole[2], whole[0]), make.move(whole[1], whole[2])]
    )
    with pytest.raises(CodegenError, match="more shared memory than a block may have"):
        lower(graph)
