# SPDX-License-Identifier: Apache-2.0
"""The named scalar functions of unary, binary, compare and reduce iOps, with their NumPy meaning.

Accuracy of the reference: narrow floats (fp16, bf16, fp8) are computed in fp32 and rounded once;
functions marked ``wide`` are computed in fp64 and rounded once, hence correct to half an ULP of
fp32 and narrower but for rare ties, and to NumPy's own accuracy in fp64.  Integers wrap.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from .dtypes import dtype_of

FLOAT = frozenset({"float"})
SIGNED = frozenset({"float", "int"})
INTEGER = frozenset({"int", "uint"})
NUMBER = frozenset({"float", "int", "uint"})
BITS = frozenset({"int", "uint", "bool"})
ANY = frozenset({"float", "int", "uint", "bool"})


@attrs.frozen
class Scalar:
    """One named scalar function.

    Parameters
    ----------
    name : str
        As in the mnemonic.
    meaning : Callable
        On arrays of the compute type, then the parameters as scalars of that type.
    kinds : frozenset[str]
        Kinds of dtype that it takes.
    n_params : int
        Number of ``params`` (unary only).
    result : str
        ``same`` dtype as the operands, or ``bool``.
    wide : bool
        Whether the reference computes floats in fp64.
    """

    name: str
    meaning: Callable[..., Any]
    kinds: frozenset[str] = FLOAT
    n_params: int = 0
    result: str = "same"
    wide: bool = False


@attrs.frozen
class Reduction:
    """One reduction: the NumPy ufunc, and its value over nothing for each kind of dtype."""

    name: str
    ufunc: np.ufunc
    kinds: frozenset[str]
    identity: Callable[[str], Any]


_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function in fp64, to the accuracy of the C library (below 1 ULP)."""
    return np.asarray(_erf(x)).astype(np.float64)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow: exp is only taken of what is not positive."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def power(x: np.ndarray, y: Any) -> np.ndarray:
    """x ** y; a negative power of an integer is truncated (as 1 // x), where NumPy raises."""
    if np.asarray(x).dtype.kind not in "iu":
        return np.power(x, y)
    y = np.asarray(y)
    exact = np.power(x, np.maximum(y, 0).astype(x.dtype))
    inverse = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y & 1), 0)).astype(x.dtype)
    return np.where(y < 0, inverse, exact)


def truncdiv(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotient rounded towards zero; an integer over zero gives zero."""
    if x.dtype.kind not in "iu":
        return np.trunc(x / y)
    quotient = np.floor_divide(x, y)
    # numpy floors: one too low where signs differ and a remainder is left
    return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)


def floordiv(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """floor(x / y); an integer over zero gives zero."""
    return np.floor_divide(x, y) if x.dtype.kind in "iu" else np.floor(x / y)


def round_half_away(x: np.ndarray) -> np.ndarray:
    """The nearest integer, halves away from zero, as C's ``round``."""
    whole = np.trunc(x)
    # x - whole is exact, so 0.49999997 is not rounded up as floor(x + 0.5) would
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0).astype(x.dtype)


def _table(*rows: Scalar) -> dict[str, Scalar]:
    return {row.name: row for row in rows}


#: Unary functions; ``divs`` and ``pows`` take their parameter on the right, ``rsubs`` and ``rdivs`` on the
#: left; ``round`` takes halves to even.
UNARY: dict[str, Scalar] = _table(
    Scalar("copy", lambda x: x, ANY),
    Scalar("adds", lambda x, p: x + p, NUMBER, 1),
    Scalar("subs", lambda x, p: x - p, NUMBER, 1),
    Scalar("muls", lambda x, p: x * p, NUMBER, 1),
    Scalar("divs", lambda x, p: x / p, FLOAT, 1),
    Scalar("maxs", np.maximum, NUMBER, 1),
    Scalar("mins", np.minimum, NUMBER, 1),
    Scalar("pows", power, NUMBER, 1, wide=True),
    Scalar("rsubs", lambda x, p: p - x, NUMBER, 1),
    Scalar("rdivs", lambda x, p: p / x, FLOAT, 1),
    Scalar("exp", np.exp, wide=True),
    Scalar("exp2", np.exp2, wide=True),
    Scalar("log", np.log, wide=True),
    Scalar("log2", np.log2, wide=True),
    Scalar("log1p", np.log1p, wide=True),
    Scalar("sqrt", np.sqrt),
    Scalar("rsqrt", lambda x: 1.0 / np.sqrt(x), wide=True),
    Scalar("recip", lambda x: 1 / x),
    Scalar("abs", np.abs, NUMBER),
    Scalar("neg", lambda x: -x, SIGNED),
    Scalar("sin", np.sin, wide=True),
    Scalar("cos", np.cos, wide=True),
    Scalar("tan", np.tan, wide=True),
    Scalar("asin", np.arcsin, wide=True),
    Scalar("acos", np.arccos, wide=True),
    Scalar("atan", np.arctan, wide=True),
    Scalar("sinh", np.sinh, wide=True),
    Scalar("cosh", np.cosh, wide=True),
    Scalar("tanh", np.tanh, wide=True),
    Scalar("asinh", np.arcsinh, wide=True),
    Scalar("acosh", np.arccosh, wide=True),
    Scalar("atanh", np.arctanh, wide=True),
    Scalar("erf", erf, wide=True),
    Scalar("sigmoid", sigmoid, wide=True),
    Scalar("relu", lambda x: np.maximum(x, x.dtype.type(0)), NUMBER),
    Scalar("leaky_relu", lambda x, p: np.where(x >= 0, x, x * p), FLOAT, 1),
    Scalar("floor", np.floor),
    Scalar("ceil", np.ceil),
    Scalar("round", np.rint),
    Scalar("trunc", np.trunc),
    Scalar("sign", np.sign, SIGNED),
    Scalar("not", np.invert, BITS),
    Scalar("isnan", np.isnan, result="bool"),
    Scalar("isinf", np.isinf, result="bool"),
    Scalar("isfinite", np.isfinite, result="bool"),
)

#: Binary functions.  ``floordiv``/``mod`` round the quotient down, ``truncdiv``/``truncmod`` towards zero.
#: ``max`` and ``min`` give NaN where an operand is NaN.
BINARY: dict[str, Scalar] = _table(
    Scalar("add", np.add, NUMBER),
    Scalar("sub", np.subtract, NUMBER),
    Scalar("mul", np.multiply, NUMBER),
    Scalar("div", np.divide, FLOAT),
    Scalar("floordiv", floordiv, NUMBER),
    Scalar("mod", np.mod, NUMBER),
    Scalar("truncdiv", truncdiv, NUMBER),
    Scalar("truncmod", np.fmod, NUMBER),
    Scalar("max", np.maximum, NUMBER),
    Scalar("min", np.minimum, NUMBER),
    Scalar("pow", power, NUMBER, wide=True),
    Scalar("atan2", np.arctan2, wide=True),
    Scalar("and", np.bitwise_and, BITS),
    Scalar("or", np.bitwise_or, BITS),
    Scalar("xor", np.bitwise_xor, BITS),
    Scalar("shl", np.left_shift, INTEGER),
    Scalar("shr", np.right_shift, INTEGER),
)

#: Comparisons; false where an operand is NaN, but for ``ne``.
COMPARE: dict[str, Scalar] = _table(
    Scalar("eq", np.equal, ANY, result="bool"),
    Scalar("ne", np.not_equal, ANY, result="bool"),
    Scalar("lt", np.less, ANY, result="bool"),
    Scalar("le", np.less_equal, ANY, result="bool"),
    Scalar("gt", np.greater, ANY, result="bool"),
    Scalar("ge", np.greater_equal, ANY, result="bool"),
)


def _lowest(dtype: str) -> Any:
    """-inf, or the least integer (the most negative finite value of a float without infinities)."""
    row = dtype_of(dtype)
    if row.kind == "bool":
        return False
    if row.kind != "float":
        return np.iinfo(row.numpy).min
    return -448.0 if dtype == "fp8e4m3" else -np.inf


def _highest(dtype: str) -> Any:
    """inf, or the greatest integer (the greatest finite value of a float without infinities)."""
    row = dtype_of(dtype)
    if row.kind == "bool":
        return True
    if row.kind != "float":
        return np.iinfo(row.numpy).max
    return 448.0 if dtype == "fp8e4m3" else np.inf


#: Reductions: floats accumulate in their compute type (fp32 in fp32), sums pairwise as ``numpy.sum`` does.
REDUCE: dict[str, Reduction] = {
    row.name: row
    for row in (
        Reduction("add", np.add, NUMBER, lambda _: 0),
        Reduction("mul", np.multiply, NUMBER, lambda _: 1),
        Reduction("max", np.maximum, ANY, _lowest),
        Reduction("min", np.minimum, ANY, _highest),
    )
}


@functools.lru_cache(maxsize=4096, typed=True)
def _param(value: float, sign: float, stored: np.dtype, compute: np.dtype) -> Any:
    # the sign is part of the key because 0.0 == -0.0
    return np.asarray(value).astype(stored).astype(compute)[()]


def evaluate(
    scalar: Scalar, dtype: str, operands: Sequence[np.ndarray], params: Sequence[float] = ()
) -> np.ndarray:
    """A scalar function over arrays that are stored as ``dtype``.

    Parameters
    ----------
    operands : arrays of the NumPy type of ``dtype``, of one shape.
    params : numbers, rounded to ``dtype`` first, as an instruction would hold them.

    Returns
    -------
    numpy.ndarray
        Of the NumPy type of ``dtype``, or bool where ``scalar.result`` says so.
    """
    row = dtype_of(dtype)
    compute = np.dtype(np.float64) if scalar.wide and row.kind == "float" else row.compute
    args = [x.astype(compute, copy=False) for x in operands]
    args += [_param(p, math.copysign(1, p), row.numpy, compute) for p in params]
    with np.errstate(all="ignore"):
        result = np.asarray(scalar.meaning(*args))
        return result.astype(np.bool_ if scalar.result == "bool" else row.numpy, copy=False)


def reduce_array(reduction: Reduction, dtype: str, array: np.ndarray, axis: int) -> np.ndarray:
    """Reduce a 2-D array along ``axis``, keeping it with length 1; nothing gives the identity."""
    row = dtype_of(dtype)
    with np.errstate(all="ignore"):
        if array.shape[axis] == 0:
            shape = tuple(1 if k == axis else n for k, n in enumerate(array.shape))
            return np.full(shape, reduction.identity(dtype)).astype(row.numpy)
        operand = array.astype(row.compute, copy=False)
        # the dtype keeps NumPy from widening small integers
        result = reduction.ufunc.reduce(operand, axis=axis, dtype=row.compute, keepdims=True)
        return np.asarray(result).astype(row.numpy, copy=False)
