# SPDX-License-Identifier: Apache-2.0
"""Reductions, broadcasts, conversions, transpositions and indices on vector cores equal the interpreter."""

from __future__ import annotations

import pytest

from ...conformance.shapes import ShapeClass
from .on_model import WIDE, agrees, case_of, without

#: Rows of 1024 dense elements: BlockReduce twice, then one repeat a row.
DENSE = ShapeClass("dense", 5, 1024, (1024, 1))


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "int8", "int32", "bool"])
def test_reductions_with_tails(dtype: str) -> None:
    agrees(case_of("reduce", dtype, "ragged"))


@pytest.mark.parametrize("shape", [DENSE, WIDE], ids=lambda shape: shape.name)
def test_reductions_of_long_rows(shape: ShapeClass) -> None:
    case = case_of("reduce", "fp32", shape)
    # a product of a thousand numbers around one is no test of its last bits
    agrees(without(case, lambda name: name == "mul_row"))


def test_dense_rows_shrink_eightfold() -> None:
    kernel = agrees(case_of("reduce", "fp32", DENSE, ("add_row",)))
    assert kernel.source.count("BlockReduceSum(") == 2
    assert kernel.source.count("WholeReduceSum(") == 1


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int64", "bool"])
def test_moving_elements(dtype: str) -> None:
    agrees(case_of("place", dtype, "ragged"))


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int8", "int32", "int64", "bool"])
def test_casts(dtype: str) -> None:
    # this chip has no fp64
    agrees(without(case_of("cast", dtype, "ragged"), lambda name: name == "cast_fp64"))


@pytest.mark.parametrize(("dtype", "shape"), [("fp32", "ragged"), ("int64", "strided"), ("fp16", "row")])
def test_gather_and_scatter(dtype: str, shape: str) -> None:
    agrees(case_of("indexed", dtype, shape))
