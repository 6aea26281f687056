# SPDX-License-Identifier: Apache-2.0
"""Elementwise iOps on vector cores equal the interpreter: functions, dtypes, tiles with tails, wide tiles."""

from __future__ import annotations

import re

import pytest

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
