# SPDX-License-Identifier: Apache-2.0
"""Tiles that fit no buffer, that begin late, or of what a core lacks: on every device, by its host model."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import make

from ..conformance.cases import Case, Operand, Operation
from ..conformance.shapes import SHAPES, ShapeClass
from .on_model import ASCEND, BANG, DENSE, WIDE, OnModel, case_of, without

DEVICES = {"ascend": ASCEND, "bang": BANG}


@pytest.fixture(params=DEVICES.values(), ids=list(DEVICES))
def device(request: pytest.FixtureRequest) -> OnModel:
    return request.param


@pytest.mark.parametrize(
    ("device", "rows", "loop"),
    [(ASCEND, 3, "for (int32_t chunk"), (BANG, 20, "for (int32_t k")],
    ids=list(DEVICES),
)
def test_a_wide_tile_is_worked_on_in_chunks(device: OnModel, rows: int, loop: str) -> None:
    """Buffers of a formula of many steps are smaller than the tile: the text has a loop over chunks."""
    kernel = device.agrees(case_of("unary", "fp32", attrs.evolve(WIDE, rows=rows), ("atan", "erf")))
    assert loop in kernel.source


@pytest.mark.parametrize("shape", [DENSE, WIDE], ids=lambda shape: shape.name)
def test_reductions_of_long_rows(device: OnModel, shape: ShapeClass) -> None:
    case = case_of("reduce", "fp32", shape)
    # a product of a thousand numbers around one is no test of its last bits
    device.agrees(without(case, lambda name: name == "mul_row"))


@pytest.mark.parametrize(
    ("kind", "dtype", "why"), [("binary", "fp64", "no fp64"), ("compare", "fp8e4m3", "no fp8")]
)
def test_what_a_core_lacks_is_refused(device: OnModel, kind: str, dtype: str, why: str) -> None:
    graph, _ = case_of(kind, dtype, "row").build(device.hardware)
    with pytest.raises(CodegenError, match=why):
        device.lower(graph)


def test_integers_are_not_raised_to_powers_that_vary(device: OnModel) -> None:
    whole = Operand("int32")
    power = Operation("pow", whole, (whole, whole), lambda t, a, b: make.binary("pow", t, a, b))
    graph, _ = Case("power", SHAPES["row"], (power,)).build(device.hardware)
    with pytest.raises(CodegenError, match="constant powers"):
        device.lower(graph)


#: Rows or columns from a place on that only the run knows, or within a block, over values that are stored.
LATE = """x = iPointer(dram, fp32, {size}, in)
y = iPointer(dram, fp32, {twice}, out)
a = iPointer(reg, fp32, {size})
b = iPointer(reg, fp32, {size})
for k in 2 {{
  move.dram.reg.fp32 a[0; ({rows},{cols}); ({cols},1)], x[0; ({rows},{cols}); ({cols},1)]
  unary.muls.fp32 b[0; ({rows},{cols}); ({cols},1)], a[0; ({rows},{cols}); ({cols},1)] [3.0]
  {line}
  move.reg.dram.fp32 y[{size}*k; ({rows},{cols}); ({cols},1)], b[0; ({rows},{cols}); ({cols},1)]
}}
"""

#: Functions of one step and of several, over tiles of rows and of columns.
TILES = [("exp", 1, 72), ("sigmoid", 9, 64), ("exp", 5, 1), ("sigmoid", 7, 40)]


@pytest.mark.parametrize("box", ["rows {r}*k:", "cols {c}*k + 3:", "cols 3:", "rows 2*k - 1:; cols 5*k:{c}"])
@pytest.mark.parametrize(
    ("device", "name", "rows", "cols"),
    # an MLU's functions begin at any element: rows and columns are as in one of them
    [(ASCEND, *tile) for tile in TILES] + [(BANG, *TILES[-1])],
    ids=[f"ascend-{name}-{rows}-{cols}" for name, rows, cols in TILES] + ["bang-sigmoid-7-40"],
)
def test_what_lies_before_a_late_box_is_kept(
    device: OnModel, name: str, rows: int, cols: int, box: str
) -> None:
    """The rest of the tile holds values that are stored: nothing but the box is written."""
    inside = box.format(r=rows, c=cols)
    whole = f"[0; ({rows},{cols}); ({cols},1); {inside}]"
    line = f"unary.{name}.fp32 b{whole}, a{whole}"
    text = LATE.format(size=rows * cols, twice=2 * rows * cols, rows=rows, cols=cols, line=line)
    given = np.random.default_rng(7).standard_normal(rows * cols).astype("float32")
    device.check(device.parse(text), [given], rtol=2e-6)
