# SPDX-License-Identifier: Apache-2.0
"""Identities of real numbers that are none of floats: by default nothing is folded by them, on any target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import uir_tvm
from tvm import relax
from uir_tvm.kernel_graph import build

from .programs import module

op = relax.op
INF, NAN = math.inf, math.nan
X = np.array(
    [0.0, -0.0, 1, -1, 2.5, -2.5, INF, -INF, NAN, 2e-38, -2e-38, 3e38, -3e38, 0.5, 7, -7], np.float32
)  # normal numbers: devices may flush denormal ones


def c(value: float) -> relax.Expr:
    return relax.const(value, "float32")


def f(value: float) -> np.float32:
    return np.float32(value)


def pow_(x: np.ndarray, k: float) -> np.ndarray:
    """C's pow (NumPy's takes a root for 0.5)."""

    def one(v: float) -> float:
        try:
            return math.pow(v, k)
        except (ValueError, ZeroDivisionError):
            return NAN if v < 0 else INF if k > 0 or math.copysign(1, v) > 0 or k % 2 != 1 else -INF

    return np.array([one(float(v)) for v in x], np.float32)


def twice(function: Callable[[Any, Any], relax.Expr], y: relax.Expr) -> relax.Expr:
    """A function of one value as both of its operands."""
    return function(y, y)


Case = tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]
#: The program, and what IEEE 754 (of pow: C) says it is.
ZEROS: dict[str, Case] = {
    "x * 0": (lambda x: op.multiply(x, c(0.0)), lambda x: x * f(0)),
    "0 * x": (lambda x: op.multiply(c(0.0), x), lambda x: f(0) * x),
    "x * -0": (lambda x: op.multiply(x, c(-0.0)), lambda x: x * f(-0.0)),
    "x * zeros": (lambda x: op.multiply(x, relax.const(np.zeros(16, np.float32))), lambda x: x * f(0)),
    "x * 0 + 1": (lambda x: op.add(op.multiply(x, c(0.0)), c(1.0)), lambda x: x * f(0) + f(1)),
    "x + 0": (lambda x: op.add(x, c(0.0)), lambda x: x + f(0)),
    "0 + x": (lambda x: op.add(c(0.0), x), lambda x: f(0) + x),
    "x - -0": (lambda x: op.subtract(x, c(-0.0)), lambda x: x - f(-0.0)),
    "0 / x": (lambda x: op.divide(c(0.0), x), lambda x: f(0) / x),
    "x / 0": (lambda x: op.divide(x, c(0.0)), lambda x: x / f(0)),
    "x / -0": (lambda x: op.divide(x, c(-0.0)), lambda x: x / f(-0.0)),
}
OTHERS: dict[str, Case] = {
    "x + -0": (lambda x: op.add(x, c(-0.0)), lambda x: x),
    "x - 0": (lambda x: op.subtract(x, c(0.0)), lambda x: x),
    "0 - x": (lambda x: op.subtract(c(0.0), x), lambda x: f(0) - x),
    "-0 - x": (lambda x: op.subtract(c(-0.0), x), lambda x: f(-0.0) - x),
    "x - x": (lambda x: op.subtract(x, x), lambda x: x - x),
    "y - y": (lambda x: twice(op.subtract, op.multiply(x, c(2.0))), lambda x: f(2) * x - f(2) * x),
    "y / y": (lambda x: twice(op.divide, op.abs(x)), lambda x: np.abs(x) / np.abs(x)),
    "y == y": (lambda x: twice(op.equal, op.abs(x)), lambda x: x == x),
    "2 x - 2 x": (
        lambda x: op.subtract(op.multiply(x, c(2.0)), op.multiply(x, c(2.0))),
        lambda x: f(2) * x - f(2) * x,
    ),
    "(x + 2) - x": (lambda x: op.subtract(op.add(x, c(2.0)), x), lambda x: x + f(2) - x),
    "x / x": (lambda x: op.divide(x, x), lambda x: x / x),
    "x * inf": (lambda x: op.multiply(x, c(INF)), lambda x: x * f(INF)),
    "x / inf": (lambda x: op.divide(x, c(INF)), lambda x: x / f(INF)),
    "x + inf": (lambda x: op.add(x, c(INF)), lambda x: x + f(INF)),
    "x * nan": (lambda x: op.multiply(x, c(NAN)), lambda x: x * f(NAN)),
    "x == x": (lambda x: op.equal(x, x), lambda x: x == x),
    "x != x": (lambda x: op.not_equal(x, x), lambda x: x != x),
    "x <= x": (lambda x: op.less_equal(x, x), lambda x: x <= x),
    "x < x": (lambda x: op.less(x, x), lambda x: x < x),
    "not x < 0": (lambda x: op.logical_not(op.less(x, c(0.0))), lambda x: ~(x < 0)),
    "isnan": (lambda x: op.isnan(x), np.isnan),
    "x ** 0": (lambda x: op.power(x, c(0.0)), lambda x: pow_(x, 0)),
    "x ** 1": (lambda x: op.power(x, c(1.0)), lambda x: pow_(x, 1)),
    "x ** 2": (lambda x: op.power(x, c(2.0)), lambda x: pow_(x, 2)),
    "x ** 3": (lambda x: op.power(x, c(3.0)), lambda x: x * x * x),
    "x ** 0.5": (lambda x: op.power(x, c(0.5)), lambda x: pow_(x, 0.5)),
    "x ** -0.5": (lambda x: op.power(x, c(-0.5)), lambda x: pow_(x, -0.5)),
    "x ** -1": (lambda x: op.power(x, c(-1.0)), lambda x: 1 / x),
    "x + 1 - 1": (lambda x: op.subtract(op.add(x, c(1.0)), c(1.0)), lambda x: x + f(1) - f(1)),
    "x + 3 * 2**22 - 3 * 2**22": (
        lambda x: op.add(op.add(x, c(12582912.0)), c(-12582912.0)),
        lambda x: x + f(12582912) + f(-12582912),
    ),
    "x + 3e38 + 3e38": (lambda x: op.add(op.add(x, c(3e38)), c(3e38)), lambda x: x + f(3e38) + f(3e38)),
    "x * 3e38 * 1e-30": (
        lambda x: op.multiply(op.multiply(x, c(3e38)), c(1e-30)),
        lambda x: x * f(3e38) * f(1e-30),
    ),
    "x * 2 / 2": (lambda x: op.divide(op.multiply(x, c(2.0)), c(2.0)), lambda x: x * f(2) / f(2)),
    "1 / (1 / x)": (lambda x: op.divide(c(1.0), op.divide(c(1.0), x)), lambda x: f(1) / (f(1) / x)),
    "where(x * 0 > -1, x, 5)": (
        lambda x: op.where(op.greater(op.multiply(x, c(0.0)), c(-1.0)), x, c(5.0)),
        lambda x: np.where(x * f(0) > -1, x, f(5)),
    ),
}


def results(cases: dict[str, Case], target: str) -> list[np.ndarray]:
    mod = module(
        {"x": (X.shape, "float32")}, lambda emit, x: tuple(emit(run(x)) for run, _ in cases.values())
    )
    return list(uir_tvm.compile(mod, target)(X))


@pytest.mark.parametrize(
    ("target", "cases"),
    [("uir-cpu", ZEROS | OTHERS), ("uir-cuda", ZEROS), ("uir-ascend", ZEROS), ("uir-bang", ZEROS)],
)
def test_floats_keep_their_meaning(target: str, cases: dict[str, Case]) -> None:
    """NaN, infinities and the signs of zeros, as IEEE 754 says."""
    with np.errstate(all="ignore"):
        expected = [meaning(X) for _, meaning in cases.values()]
    wrong = []
    for name, actual, want in zip(cases, results(cases, target), expected, strict=True):
        same = np.isclose(actual, want, rtol=2e-6, atol=0, equal_nan=True)
        if want.dtype != bool:
            same &= np.isnan(want) | (np.signbit(actual) == np.signbit(want))
        wrong += [f"{name} of {X[i]}: {actual[i]}, not {want[i]}" for i in np.flatnonzero(~same)]
    assert not wrong, "\n".join(wrong)


def test_integers_and_fast_math_fold() -> None:
    """x * 0 of integers is 0; with fast_math of floats too: the kernel has no zero to read."""

    def inputs(dtype: str, fast_math: bool) -> int:
        mod = module({"x": ((8,), dtype)}, lambda emit, x: emit(op.multiply(x, relax.const(0, dtype))))
        (node,) = build(mod, fast_math=fast_math).nodes
        return len(node.inputs)

    assert inputs("float32", False) == inputs("float16", False) == 2
    assert inputs("int32", False) == inputs("float32", True) == 1
