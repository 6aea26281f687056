# SPDX-License-Identifier: Apache-2.0
"""Every scalar function and cast that the CUDA printer spells is what the interpreter computes."""

from __future__ import annotations

import os

import numpy as np
import pytest
import tvm_ffi
from uir_tvm.igraph.dtypes import DTYPES, numpy_of

from tests.conformance.cases import TOLERANCE

from . import scalar_kernels

literal = tvm_ffi.get_global_func("uir.codegen.cuda.scalar_literal")


#: A dtype of every kind and width; the others are spelled by the same rows of the table.
QUICK = ("fp64", "fp32", "fp16", "fp8e4m3", "int8", "int32", "uint64", "bool")
TESTED = tuple(DTYPES) if os.environ.get("UIR_TEST_ALL") else QUICK


def differing(got: np.ndarray, wanted: np.ndarray, relative: float) -> np.ndarray:
    """Where two arrays differ by more than an error relative to what is wanted (absolute below one)."""
    if np.dtype(got.dtype).kind in "iub":
        return got != wanted
    x, y = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= relative * np.maximum(1, np.abs(y))
    return ~((np.isnan(x) & np.isnan(y)) | (x == y) | near)


@pytest.mark.parametrize("dtype", TESTED)
def test_functions(dtype: str) -> None:
    """NaN, infinities, zeros, ties, integers that wrap, nothing over zero, shifts beyond the width."""
    # fp8 is rounded from fp32, whose errors are too small to show but at a tie, which no argument here meets
    for call, got, wanted in scalar_kernels.run(dtype, are_casts=False):
        bad = differing(got, wanted, TOLERANCE.get(dtype, 0.0))
        assert not bad.any(), f"{call}\n{got[bad][:4]} instead of {wanted[bad][:4]}"


@pytest.mark.parametrize("dtype", TESTED)
def test_casts(dtype: str) -> None:
    """Every rounding to every dtype, exactly; integers out of range saturate as the interpreter's do."""
    for call, got, wanted in scalar_kernels.run(dtype, are_casts=True):
        bad = differing(got, wanted, 0.0)
        assert not bad.any(), f"{call}\n{got[bad][:4]} instead of {wanted[bad][:4]}"


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("fp32", 0.1, "0.1f"),
        ("fp32", 2, "2.0f"),
        ("fp32", -np.inf, "-__int_as_float(0x7f800000)"),
        ("fp64", 1e300, "1e+300"),
        # 0.1 as fp16 holds it
        ("fp16", 0.1, "__float2half_rn(0.099975586f)"),
        ("bf16", 1.0, "__float2bfloat16_rn(1.0f)"),
        ("fp8e4m3", 0.3, "to_fp8e4m3(0.3125f)"),
        ("int8", -1, "int8_t(-1)"),
        ("int8", 300.0, "int8_t(127)"),
        ("int32", -(2**31), "(-2147483647 - 1)"),
        ("int64", -(2**63), "int64_t(-9223372036854775807LL - 1)"),
        ("uint32", 2**32 - 1, "4294967295u"),
        ("uint64", 5, "uint64_t(5u)"),
        ("bool", 2.0, "true"),
    ],
)
def test_literals(dtype: str, value: float, text: str) -> None:
    """A number is rounded to its dtype first, and spelled so that C++ reads the same one of the same type."""
    assert str(literal(dtype, value)) == text


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp8e5m2"])
def test_narrow_literals_are_rounded_as_numpy_does(dtype: str) -> None:
    """Also denormals and what overflows."""
    rng = np.random.default_rng(1)
    numbers = (rng.uniform(1, 2, 200) * 2.0 ** rng.integers(-30, 18, 200)).astype(np.float32)
    with np.errstate(over="ignore"):
        wanted = numbers.astype(numpy_of(dtype)).astype(np.float64)
    for number, one in zip(numbers, wanted, strict=True):
        digits = str(literal(dtype, float(number))).split("(", 1)[1][:-1]
        got = np.inf if "7f800000" in digits else float(digits.rstrip("f"))
        assert np.float32(got) == np.float32(one), number
