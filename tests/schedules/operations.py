# SPDX-License-Identifier: Apache-2.0
"""The scalar functions and reductions of random functions: in te on elements, in NumPy on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import te, tirx


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


#: Scalar functions of floats: (te, NumPy).
FLOAT_UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "neg": (lambda x: -x, lambda x: -x),
    "abs": (tirx.abs, np.abs),
    "half": (lambda x: x * 0.5 + 0.25, lambda x: x * 0.5 + 0.25),
    "relu": (lambda x: tirx.max(x, like(x, 0)), lambda x: np.maximum(x, 0)),
    "clipped exp": (lambda x: tirx.exp(tirx.min(x, like(x, 2))), lambda x: np.exp(np.minimum(x, 2))),
    "tanh": (tirx.tanh, np.tanh),
    "sigmoid": (tirx.sigmoid, _logistic),
    "erf": (tirx.erf, lambda x: np.vectorize(math.erf, otypes=[np.float64])(x)),
    "root": (lambda x: tirx.sqrt(tirx.abs(x) + 0.25), lambda x: np.sqrt(np.abs(x) + 0.25)),
    "reciprocal root": (lambda x: tirx.rsqrt(x * x * 0.1 + 1.0), lambda x: 1 / np.sqrt(x * x * 0.1 + 1)),
    "log": (lambda x: tirx.log(tirx.abs(x) + 1.0), lambda x: np.log(np.abs(x) + 1)),
}
FLOAT_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    "mul": (lambda a, b: a * b * 0.25, lambda a, b: a * b * 0.25),
    "div": (lambda a, b: a / (tirx.abs(b) + 0.5), lambda a, b: a / (np.abs(b) + 0.5)),
    "max": (tirx.max, np.maximum),
    "min": (tirx.min, np.minimum),
}
INT_UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "neg": (lambda x: like(x, 0) - x, lambda x: -x),
    "abs": (tirx.abs, np.abs),
    "third": (lambda x: tirx.floordiv(x, like(x, 3)), lambda x: x // 3),
    "rest": (lambda x: tirx.floormod(x, like(x, 7)), lambda x: x % 7),
    "bits": (lambda x: x & like(x, 0x55), lambda x: x & 0x55),
    "shift": (lambda x: x >> like(x, 1), lambda x: x >> 1),
}
INT_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    # the factors are cut to a byte, so that no chain overflows
    "mul": (lambda a, b: (a & like(a, 63)) * (b & like(b, 63)), lambda a, b: (a & 63) * (b & 63)),
    "max": (tirx.max, np.maximum),
    "min": (tirx.min, np.minimum),
    "xor": (lambda a, b: a ^ b, np.bitwise_xor),
}
COMPARE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "gt": (lambda a, b: a > b, np.greater),
    "le": (lambda a, b: a <= b, np.less_equal),
    "eq": (lambda a, b: tirx.EQ(a, b), np.equal),
}
REDUCE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (te.sum, np.sum),
    "max": (te.max, np.max),
    "min": (te.min, np.min),
}


def like(x: Any, value: float) -> Any:
    return tirx.const(value, x.ty.dtype if hasattr(x, "ty") else x.dtype)


def scalars(dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return (INT_UNARY, INT_BINARY) if "int" in dtype else (FLOAT_UNARY, FLOAT_BINARY)
