# SPDX-License-Identifier: Apache-2.0
"""Elementwise iOps on vector cores equal the interpreter: functions, dtypes, tiles with tails, wide tiles."""

from __future__ import annotations

import re

import pytest
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import make

from ...conformance.cases import Case, Operand, Operation
from ...conformance.shapes import SHAPES
from ..on_model import ASCEND, WIDE, case_of

#: Functions that are composed, a few of every formula; the others are one vector function each.
COMPOSED = (
    "exp2",
    "log1p",
    "sin",
    "tan",
    "acos",
    "atan",
    "asinh",
    "tanh",
    "erf",
    "sigmoid",
    "sign",
    "isnan",
    "pows",
)


def test_composed_functions_of_fp32_with_tails() -> None:
    ASCEND.agrees(case_of("unary", "fp32", "ragged", COMPOSED))


def test_binary_functions_of_fp32_with_tails() -> None:
    ASCEND.agrees(case_of("binary", "fp32", "ragged"))


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "int8", "int32", "uint8", "bool"])
def test_binary_functions_of_other_dtypes(dtype: str) -> None:
    ASCEND.agrees(case_of("binary", dtype, "strided"))


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "int8", "bool"])
def test_some_unary_functions_of_other_dtypes(dtype: str) -> None:
    names = ("copy", "not", "abs", "neg", "relu", "exp", "sigmoid", "adds", "rsubs")
    ASCEND.agrees(case_of("unary", dtype, "row", names))


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int32", "uint8"])
def test_comparisons(dtype: str) -> None:
    ASCEND.agrees(case_of("compare", dtype, "ragged"))


def test_a_wide_tile_is_worked_on_in_chunks() -> None:
    """Buffers of a formula of many steps are smaller than the tile: the text has a loop over chunks."""
    kernel = ASCEND.agrees(case_of("unary", "fp32", WIDE, ("atan", "erf")))
    assert "for (int32_t chunk" in kernel.source


def test_one_vector_function_is_one_call() -> None:
    """Nothing is printed beside the function itself: no fill, no copy, no work buffer."""
    graph, _ = case_of("unary", "fp32", WIDE, ("exp",)).build(ASCEND.hardware)
    source = ASCEND.lower(graph).source
    assert len(re.findall(r"\bExp\(", source)) == 1
    assert "work" not in source


def test_imprecise_functions_of_the_chip_are_not_printed() -> None:
    """Its documents say that Rsqrt and Reciprocal are off by 1e-4."""
    graph, _ = case_of("unary", "fp32", "row", ("rsqrt", "recip")).build(ASCEND.hardware)
    source = ASCEND.lower(graph).source
    assert "Div(" in source and "Rsqrt(" not in source and "Reciprocal(" not in source


@pytest.mark.parametrize(
    ("kind", "dtype", "why"), [("binary", "fp64", "no fp64"), ("compare", "fp8e4m3", "no fp8")]
)
def test_what_the_vector_core_lacks_is_refused(kind: str, dtype: str, why: str) -> None:
    graph, _ = case_of(kind, dtype, "row").build(ASCEND.hardware)
    with pytest.raises(CodegenError, match=why):
        ASCEND.lower(graph)


def test_integers_are_not_raised_to_powers_that_vary() -> None:
    whole = Operand("int32")
    power = Operation("pow", whole, (whole, whole), lambda t, a, b: make.binary("pow", t, a, b))
    graph, _ = Case("power", SHAPES["row"], (power,)).build(ASCEND.hardware)
    with pytest.raises(CodegenError, match="constant powers"):
        ASCEND.lower(graph)
