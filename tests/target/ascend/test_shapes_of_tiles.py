# SPDX-License-Identifier: Apache-2.0
"""Reductions, broadcasts, conversions, transpositions and indices on vector cores equal the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from ..on_model import ASCEND, DENSE, case_of, without
from .kernels import check, parse


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "int8", "int32", "bool"])
def test_reductions_with_tails(dtype: str) -> None:
    ASCEND.agrees(case_of("reduce", dtype, "ragged"))


def test_dense_rows_shrink_eightfold() -> None:
    kernel = ASCEND.agrees(case_of("reduce", "fp32", DENSE, ("add_row",)))
    # BlockReduce twice, then one repeat a row
    assert kernel.source.count("BlockReduceSum(") == 2
    assert kernel.source.count("WholeReduceSum(") == 1


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int64", "bool"])
def test_moving_elements(dtype: str) -> None:
    ASCEND.agrees(case_of("place", dtype, "ragged"))


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int8", "int32", "int64", "bool"])
def test_casts(dtype: str) -> None:
    # this chip has no fp64
    ASCEND.agrees(without(case_of("cast", dtype, "ragged"), lambda name: name == "cast_fp64"))


@pytest.mark.parametrize(("dtype", "shape"), [("fp32", "ragged"), ("int64", "strided"), ("fp16", "row")])
def test_gather_and_scatter(dtype: str, shape: str) -> None:
    ASCEND.agrees(case_of("indexed", dtype, shape))


#: Pointers of an operand, its result, and both on the chip; and a line each that loads and stores.
SIDES = """x = iPointer(dram, {dtype}, {size}, in)
y = iPointer(dram, {dtype}, {size}, out)
a = iPointer(reg, {dtype}, {size})
b = iPointer(reg, {dtype}, {size})
move.dram.reg.{dtype} a[0; (1,{size}); ({size},1)], x[0; (1,{size}); ({size},1)]
{line}
move.reg.dram.{dtype} y[0; (1,{size}); ({size},1)], b[0; (1,{size}); ({size},1)]
"""


@pytest.mark.parametrize(
    ("dtype", "rows", "cols", "squares"),
    [("fp16", 32, 48, True), ("fp32", 16, 24, True), ("int32", 16, 8, True), ("fp32", 24, 16, False)],
)
def test_transpositions_by_squares(dtype: str, rows: int, cols: int, squares: bool) -> None:
    """16 columns of the target to a call, and as many rows as a block has elements; else by gathering."""
    line = f"transpose.{dtype} b[0; ({cols},{rows}); ({rows},1)], a[0; ({rows},{cols}); ({cols},1)]"
    graph = parse(SIDES.format(dtype=dtype, size=rows * cols, line=line))
    given = np.arange(rows * cols) % 2048
    kind = {"fp16": "float16", "fp32": "float32", "int32": "int32"}[dtype]
    kernel = check(graph, [given.astype(kind)])
    assert ("TransDataTo5HD<" in kernel.source) == squares and ("Gather(" in kernel.source) != squares


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("rows", "cols"), [(3, 200), (40, 64)])
def test_a_column_beside_a_tile(rows: int, cols: int, first: bool) -> None:
    """A block with the row's value is read again and again: row by row, or by columns where rows are many."""
    column, tile = f"m[0; ({rows},{cols}); (1,0)]", f"a[0; ({rows},{cols}); ({cols},1)]"
    operands = f"{column}, {tile}" if first else f"{tile}, {column}"
    lines = (
        f"m = iPointer(reg, fp32, {rows})\n"
        f"reduce.max.row.unit.fp32 m[0; ({rows},1); (1,1)], a[0; ({rows},{cols}); ({cols},1)]\n"
        f"binary.sub.fp32 b[0; ({rows},{cols}); ({cols},1)], {operands}"
    )
    pointer, *body = lines.split("\n")
    text = SIDES.format(dtype="fp32", size=rows * cols, line="\n".join(body))
    text = text.replace("move.dram", f"{pointer}\nmove.dram", 1)
    given = np.random.default_rng(5).standard_normal(rows * cols).astype("float32")
    kernel = check(parse(text), [given])
    assert "Brcb(" in kernel.source and "Copy(" not in kernel.source.replace("DataCopy(", "")
    assert kernel.source.count("for (int32_t") == (1 if rows < 10 else 0)
