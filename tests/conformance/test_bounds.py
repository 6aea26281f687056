# SPDX-License-Identifier: Apache-2.0
"""Every scalar function of floats is within its stated error on every target, over the whole range.

Arguments take every binade with denormals, both zeros, infinities, NaN and the places where formulas cancel
(`bound_points`).  References are float64.  ``UIR_TEST_ALL=1`` takes twenty times as many arguments.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.igraph.accuracy import ACCURACY, EXCEPTIONS, LEAST_NORMAL, Accuracy, accuracy_of
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.igraph.iops import BINARY, UNARY
from uir_tvm.target.registry import TARGETS

from tests.as_programs import run_igraph

from .bound_points import PARAMS, arguments, functions_of, graph_of, second_arguments

#: Bits of the mantissa, least exponent of a normal number, exponent of what is beyond the largest.
FORMAT = {"fp32": (23, -126, 128), "fp16": (10, -14, 16), "bf16": (7, -126, 128)}
SEEDS = range(20 if os.environ.get("UIR_TEST_ALL") else 1)
#: Quotients that are rounded to fp32 before they become whole, or exact: both are meant.
QUOTIENTS = ("floordiv", "truncdiv")
REMAINDERS = ("mod", "truncmod")


def reference(name: str, args: list[np.ndarray], dtype: str, width: type = np.float64) -> np.ndarray:
    """Exact values, of arguments in ``width``."""
    row = (BINARY if len(args) > 1 else UNARY)[name]
    params = [width(np.asarray(p, numpy_of(dtype))) for p in PARAMS.get(name, [3.0] * row.n_params)]
    return np.asarray(row.meaning(*(a.astype(width) for a in args), *params))


def ulps(got: np.ndarray, want: np.ndarray, dtype: str, absolute: float) -> np.ndarray:
    """Error in ULP of the exact value; infinity counts as the number after the largest."""
    mantissa, least, most = FORMAT[dtype]
    a, b = (np.clip(v.astype(np.float64), -(2.0**most), 2.0**most) for v in (got, want))
    exponent = np.maximum(np.frexp(b)[1] - 1, least)
    error = np.maximum(np.abs(a - b) - absolute, 0) / np.exp2(exponent - float(mantissa))
    error[np.isnan(b)] = 0.0
    error[np.isnan(a) != np.isnan(b)] = np.inf
    return error


def errors(name: str, args: list[np.ndarray], got: np.ndarray, dtype: str, row: Accuracy) -> np.ndarray:
    """ULP of every element, zero where nothing is promised."""
    want = reference(name, args, dtype)
    if want.dtype == bool:
        return np.where(got.astype(bool) == want, 0.0, np.inf)
    rounded = want.astype(numpy_of(dtype)) if row.ulp == 0 else want
    held = np.ones(want.shape, bool)
    if row.most < np.inf:
        scale = np.abs(args[0].astype(np.float64))
        if name in REMAINDERS:
            scale = np.trunc(scale / np.abs(args[1].astype(np.float64)))
        held = scale <= row.most
    rounded = np.where(held | np.isnan(rounded.astype(np.float64)), rounded, np.nan)
    error = ulps(got, rounded, dtype, row.absolute)
    if name in QUOTIENTS:
        once = reference(name, args, dtype, np.float32).astype(np.float64)
        error = np.minimum(error, ulps(got, once, dtype, row.absolute))
    if row.most < np.inf and name in REMAINDERS:
        # about the limit the quotient may be rounded to either side
        error[np.abs(scale - row.most) <= 2] = 0.0
    if row.signed_zero:
        zero = (want == 0) & (got.astype(np.float64) == 0)
        error[zero & (np.signbit(want) != np.signbit(got.astype(np.float32)))] = np.inf
    if row.normal:
        for a in args:
            error[np.abs(a.astype(np.float64)) < LEAST_NORMAL] = 0.0
    return error


@pytest.mark.parametrize("binary", [False, True], ids=["unary", "binary"])
@pytest.mark.parametrize("dtype", FORMAT)
@pytest.mark.parametrize("target", TARGETS)
def test_functions_are_within_their_bounds(target: str, dtype: str, binary: bool) -> None:
    """One kernel computes all functions of a dtype; each is compared with float64."""
    names = functions_of(dtype, binary)
    graph = graph_of(names, binary, dtype, hardware.get(None, TARGETS[target].kind))
    wrong = []
    for seed in SEEDS:
        x = arguments(dtype, seed)
        args = [x, second_arguments(x, seed + 1)] if binary else [x]
        found = run_igraph(graph, target, *args)
        for name, got in zip(names, found, strict=True):
            row = accuracy_of(target, name, dtype)
            with np.errstate(all="ignore"):
                error = errors(name, args, got, dtype, row)
            at = int(error.argmax())
            if error[at] > max(row.ulp, 1e-9):
                given = ", ".join(f"{a[at]!r}" for a in args)
                with np.errstate(all="ignore"):
                    want = reference(name, args, dtype)[at]
                error_of = f"{error[at]:.3g} of {row.ulp} ULP, seed {seed}"
                wrong.append(f"{name}({given}) = {got[at]!r}, exactly {want!r}: {error_of}")
    assert not wrong, "\n".join(wrong)


def test_every_row_is_of_a_function() -> None:
    """Of every target and function one bound is stated, and every exception says why."""
    assert set(EXCEPTIONS) == set(TARGETS)
    assert set(ACCURACY) <= set(UNARY) | set(BINARY)
    for rows in EXCEPTIONS.values():
        assert set(rows) <= set(UNARY) | set(BINARY)
        assert all(row.why for row in rows.values())
