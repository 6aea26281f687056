# SPDX-License-Identifier: Apache-2.0
"""The named scalar functions of unary, binary, compare and reduce iOps, with their NumPy meaning.

Accuracy of the reference: narrow floats (fp16, bf16, fp8) are computed in fp32 and rounded once;
functions marked ``wide`` are computed in fp64 and rounded once, hence correct to half an ULP of
fp32 and narrower but for rare ties, and to NumPy's own accuracy in fp64.  Integers wrap.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
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


#: The classes of arithmetic, and what belongs to them.
WORK: Mapping[str, str] = {
    "add": "additions, subtractions, maxima, minima, signs",
    "mul": "multiplications",
    "divide": "divisions, remainders, square roots",
    "transcendental": "exponentials, logarithms, powers, trigonometry, hyperbolic functions, erf, sigmoid",
    "contract": "multiplications and additions of contractions: 2 M N K",
    "logic": "comparisons, choices, bits, tests for NaN and infinity",
    "convert": "casts, roundings to integers, copies between registers",
}


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
    work : str
        The class of arithmetic that it is: a key of `WORK`.
    exact : bool
        Whether IEEE 754 gives the result to the last bit, so that every target computes the constant we fold.
    either_zero : bool
        Whether a zero of either sign may come out where both are as large.
    involution : bool
        Whether f(f(x)) has the bits of x.
    idempotent : bool
        Whether f(f(x)) has the bits of f(x).
    scalar_forms : tuple[str, str], optional
        Of a binary function the unary ones that take a constant on the right, and on the left.
    """

    name: str
    meaning: Callable[..., Any]
    kinds: frozenset[str] = FLOAT
    n_params: int = 0
    result: str = "same"
    wide: bool = False
    work: str = attrs.field(kw_only=True)
    exact: bool = False
    either_zero: bool = False
    involution: bool = False
    idempotent: bool = False
    scalar_forms: tuple[str, str] | None = None


@attrs.frozen
class Reduction:
    """One reduction: the NumPy ufunc, its value over nothing by dtype, the class of its arithmetic."""

    name: str
    ufunc: np.ufunc
    kinds: frozenset[str]
    identity: Callable[[str], Any]
    work: str


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


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.maximum(x, x.dtype.type(0))


def _table(*rows: Scalar) -> dict[str, Scalar]:
    return {row.name: row for row in rows}


#: Unary functions; ``divs`` and ``pows`` take their parameter on the right, ``rsubs`` and ``rdivs`` on the
#: left; ``round`` takes halves to even.
UNARY: dict[str, Scalar] = _table(
    Scalar("copy", lambda x: x, ANY, work="convert", exact=True),
    Scalar("adds", lambda x, p: x + p, NUMBER, 1, work="add", exact=True),
    Scalar("subs", lambda x, p: x - p, NUMBER, 1, work="add", exact=True),
    Scalar("muls", lambda x, p: x * p, NUMBER, 1, work="mul", exact=True),
    Scalar("divs", lambda x, p: x / p, FLOAT, 1, work="divide", exact=True),
    Scalar("maxs", np.maximum, NUMBER, 1, work="add", exact=True, either_zero=True),
    Scalar("mins", np.minimum, NUMBER, 1, work="add", exact=True, either_zero=True),
    Scalar("pows", power, NUMBER, 1, wide=True, work="transcendental"),
    Scalar("rsubs", lambda x, p: p - x, NUMBER, 1, work="add", exact=True),
    Scalar("rdivs", lambda x, p: p / x, FLOAT, 1, work="divide", exact=True),
    Scalar("exp", np.exp, wide=True, work="transcendental"),
    Scalar("exp2", np.exp2, wide=True, work="transcendental"),
    Scalar("log", np.log, wide=True, work="transcendental"),
    Scalar("log2", np.log2, wide=True, work="transcendental"),
    Scalar("log1p", np.log1p, wide=True, work="transcendental"),
    Scalar("sqrt", np.sqrt, work="divide", exact=True),
    Scalar("rsqrt", lambda x: 1.0 / np.sqrt(x), wide=True, work="divide"),
    Scalar("recip", lambda x: 1 / x, work="divide"),
    Scalar("abs", np.abs, NUMBER, work="add", exact=True, idempotent=True),
    Scalar("neg", lambda x: -x, SIGNED, work="add", exact=True, involution=True),
    Scalar("sin", np.sin, wide=True, work="transcendental"),
    Scalar("cos", np.cos, wide=True, work="transcendental"),
    Scalar("tan", np.tan, wide=True, work="transcendental"),
    Scalar("asin", np.arcsin, wide=True, work="transcendental"),
    Scalar("acos", np.arccos, wide=True, work="transcendental"),
    Scalar("atan", np.arctan, wide=True, work="transcendental"),
    Scalar("sinh", np.sinh, wide=True, work="transcendental"),
    Scalar("cosh", np.cosh, wide=True, work="transcendental"),
    Scalar("tanh", np.tanh, wide=True, work="transcendental"),
    Scalar("asinh", np.arcsinh, wide=True, work="transcendental"),
    Scalar("acosh", np.arccosh, wide=True, work="transcendental"),
    Scalar("atanh", np.arctanh, wide=True, work="transcendental"),
    Scalar("erf", erf, wide=True, work="transcendental"),
    Scalar("sigmoid", sigmoid, wide=True, work="transcendental"),
    Scalar("relu", relu, NUMBER, work="add", exact=True, either_zero=True, idempotent=True),
    Scalar("leaky_relu", lambda x, p: np.where(x >= 0, x, x * p), FLOAT, 1, work="mul"),
    Scalar("floor", np.floor, work="convert", exact=True, idempotent=True),
    Scalar("ceil", np.ceil, work="convert", exact=True, idempotent=True),
    Scalar("round", np.rint, work="convert", exact=True, idempotent=True),
    Scalar("trunc", np.trunc, work="convert", exact=True, idempotent=True),
    Scalar("sign", np.sign, SIGNED, work="add", exact=True, idempotent=True),
    Scalar("not", np.invert, BITS, work="logic", exact=True, involution=True),
    Scalar("isnan", np.isnan, result="bool", work="logic"),
    Scalar("isinf", np.isinf, result="bool", work="logic"),
    Scalar("isfinite", np.isfinite, result="bool", work="logic"),
)

#: Binary functions.  ``floordiv``/``mod`` round the quotient down, ``truncdiv``/``truncmod`` towards zero.
#: ``max`` and ``min`` give NaN where an operand is NaN.
BINARY: dict[str, Scalar] = _table(
    Scalar("add", np.add, NUMBER, work="add", exact=True, scalar_forms=("adds", "adds")),
    Scalar("sub", np.subtract, NUMBER, work="add", exact=True, scalar_forms=("subs", "rsubs")),
    Scalar("mul", np.multiply, NUMBER, work="mul", exact=True, scalar_forms=("muls", "muls")),
    Scalar("div", np.divide, FLOAT, work="divide", exact=True, scalar_forms=("divs", "rdivs")),
    Scalar("floordiv", floordiv, NUMBER, work="divide"),
    Scalar("mod", np.mod, NUMBER, work="divide"),
    Scalar("truncdiv", truncdiv, NUMBER, work="divide"),
    Scalar("truncmod", np.fmod, NUMBER, work="divide"),
    Scalar("max", np.maximum, NUMBER, work="add", exact=True, either_zero=True,
           scalar_forms=("maxs", "maxs")),
    Scalar("min", np.minimum, NUMBER, work="add", exact=True, either_zero=True,
           scalar_forms=("mins", "mins")),
    Scalar("pow", power, NUMBER, wide=True, work="transcendental"),
    Scalar("atan2", np.arctan2, wide=True, work="transcendental"),
    Scalar("and", np.bitwise_and, BITS, work="logic", exact=True),
    Scalar("or", np.bitwise_or, BITS, work="logic", exact=True),
    Scalar("xor", np.bitwise_xor, BITS, work="logic", exact=True),
    Scalar("shl", np.left_shift, INTEGER, work="logic"),
    Scalar("shr", np.right_shift, INTEGER, work="logic"),
)

#: Comparisons; false where an operand is NaN, but for ``ne``.
COMPARE: dict[str, Scalar] = _table(
    Scalar("eq", np.equal, ANY, result="bool", work="logic", exact=True),
    Scalar("ne", np.not_equal, ANY, result="bool", work="logic", exact=True),
    Scalar("lt", np.less, ANY, result="bool", work="logic", exact=True),
    Scalar("le", np.less_equal, ANY, result="bool", work="logic", exact=True),
    Scalar("gt", np.greater, ANY, result="bool", work="logic", exact=True),
    Scalar("ge", np.greater_equal, ANY, result="bool", work="logic", exact=True),
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
        Reduction("add", np.add, NUMBER, lambda _: 0, "add"),
        Reduction("mul", np.multiply, NUMBER, lambda _: 1, "mul"),
        Reduction("max", np.maximum, ANY, _lowest, "add"),
        Reduction("min", np.minimum, ANY, _highest, "add"),
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
