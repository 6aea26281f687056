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

from . import finite_field as field
from . import finite_functions as known
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
        Of a binary function the unary ones that take a constant on the right, and on the left; None: none.
    calls : tuple[str, ...]
        Intrinsics of TIR that are this function, by their names without the dialect.
    node : str
        The class of TIR expressions that is it; empty: none.
    residue : Callable, optional
        What it does to values of the finite field (see `finite_field`), parameters being values too; None: of
        it only is known that it is a function.
    by_number : bool
        Whether ``residue`` takes the parameter as the number that it is, and then as a value.
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
    scalar_forms: tuple[str | None, str | None] = (None, None)
    calls: tuple[str, ...] = ()
    node: str = ""
    residue: Callable[..., np.ndarray] | None = None
    by_number: bool = False


@attrs.frozen
class Reduction:
    """One reduction: the NumPy ufunc, its value over nothing by dtype, the class of its arithmetic.

    ``residue`` reduces values of the finite field along an axis.
    """

    name: str
    ufunc: np.ufunc
    kinds: frozenset[str]
    identity: Callable[[str], Any]
    work: str
    residue: Callable[[np.ndarray, int], np.ndarray]


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


def shift_left(x: np.ndarray, n: Any) -> np.ndarray:
    """x << n; by its width or more, or by a negative number, everything is shifted out."""
    return np.left_shift(x, n) if 0 <= n < 8 * x.dtype.itemsize else np.zeros_like(x)


def shift_right(x: np.ndarray, n: Any) -> np.ndarray:
    """x >> n, where all that is shifted out leaves copies of the sign."""
    inside = 0 <= n < 8 * x.dtype.itemsize
    return (
        np.right_shift(x, n if inside else x.dtype.type(8 * x.dtype.itemsize - 1))
        if (inside or x.dtype.kind == "i")
        else np.zeros_like(x)
    )


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


# fmt: off
#: Unary functions; ``divs``, ``pows``, ``shls`` and ``shrs`` take their parameter on the right, ``rsubs`` and
#: ``rdivs`` on the left; ``round`` takes halves to even.
UNARY: dict[str, Scalar] = _table(
    Scalar("copy", lambda x: x, ANY, work="convert", exact=True, residue=lambda x: x),
    Scalar("adds", lambda x, p: x + p, NUMBER, 1, work="add", exact=True, residue=field.add),
    Scalar("subs", lambda x, p: x - p, NUMBER, 1, work="add", exact=True, residue=field.sub),
    Scalar("muls", lambda x, p: x * p, NUMBER, 1, work="mul", exact=True, residue=field.mul),
    Scalar("divs", lambda x, p: x / p, FLOAT, 1, work="divide", exact=True, residue=field.div),
    Scalar("maxs", np.maximum, NUMBER, 1, work="add", exact=True, either_zero=True, residue=field.maximum),
    Scalar("mins", np.minimum, NUMBER, 1, work="add", exact=True, either_zero=True, residue=field.minimum),
    Scalar("pows", power, NUMBER, 1, wide=True, work="transcendental", residue=known.pows, by_number=True),
    Scalar("rsubs", lambda x, p: p - x, NUMBER, 1, work="add", exact=True,
           residue=lambda x, p: field.sub(p, x)),
    Scalar("rdivs", lambda x, p: p / x, FLOAT, 1, work="divide", exact=True,
           residue=lambda x, p: field.div(p, x)),
    Scalar("ands", lambda x, p: x & p, INTEGER, 1, work="logic", exact=True),
    Scalar("shls", shift_left, INTEGER, 1, work="logic", exact=True),
    Scalar("shrs", shift_right, INTEGER, 1, work="logic", exact=True),
    Scalar("exp", np.exp, wide=True, work="transcendental",
           calls=("exp",), residue=lambda x: field.exponential("exp", x)),
    Scalar("exp2", np.exp2, wide=True, work="transcendental",
           calls=("exp2",), residue=lambda x: field.exponential("exp2", x)),
    Scalar("log", np.log, wide=True, work="transcendental", calls=("log",)),
    Scalar("log2", np.log2, wide=True, work="transcendental", calls=("log2",)),
    Scalar("log1p", np.log1p, wide=True, work="transcendental", calls=("log1p",)),
    Scalar("sqrt", np.sqrt, work="divide", exact=True, calls=("sqrt",)),
    Scalar("rsqrt", lambda x: 1.0 / np.sqrt(x), wide=True, work="divide",
           calls=("rsqrt",), residue=known.rsqrt),
    Scalar("recip", lambda x: 1 / x, work="divide", residue=field.inverse),
    Scalar("abs", np.abs, NUMBER, work="add", exact=True, idempotent=True,
           calls=("fabs", "abs"), residue=known.absolute),
    Scalar("neg", lambda x: -x, SIGNED, work="add", exact=True, involution=True, residue=field.neg),
    Scalar("sin", np.sin, wide=True, work="transcendental", calls=("sin",)),
    Scalar("cos", np.cos, wide=True, work="transcendental", calls=("cos",)),
    Scalar("tan", np.tan, wide=True, work="transcendental", calls=("tan",)),
    Scalar("asin", np.arcsin, wide=True, work="transcendental", calls=("asin",)),
    Scalar("acos", np.arccos, wide=True, work="transcendental", calls=("acos",)),
    Scalar("atan", np.arctan, wide=True, work="transcendental", calls=("atan",)),
    Scalar("sinh", np.sinh, wide=True, work="transcendental", calls=("sinh",)),
    Scalar("cosh", np.cosh, wide=True, work="transcendental", calls=("cosh",)),
    Scalar("tanh", np.tanh, wide=True, work="transcendental", calls=("tanh",)),
    Scalar("asinh", np.arcsinh, wide=True, work="transcendental", calls=("asinh",)),
    Scalar("acosh", np.arccosh, wide=True, work="transcendental", calls=("acosh",)),
    Scalar("atanh", np.arctanh, wide=True, work="transcendental", calls=("atanh",)),
    Scalar("erf", erf, wide=True, work="transcendental", calls=("erf",)),
    Scalar("sigmoid", sigmoid, wide=True, work="transcendental", calls=("sigmoid",)),
    Scalar("relu", relu, NUMBER, work="add", exact=True, either_zero=True, idempotent=True,
           residue=known.relu),
    Scalar("leaky_relu", lambda x, p: np.where(x >= 0, x, x * p), FLOAT, 1, work="mul",
           residue=known.leaky_relu),
    Scalar("floor", np.floor, work="convert", exact=True, idempotent=True, calls=("floor",)),
    Scalar("ceil", np.ceil, work="convert", exact=True, idempotent=True, calls=("ceil",)),
    Scalar("round", np.rint, work="convert", exact=True, idempotent=True, calls=("round", "nearbyint")),
    Scalar("trunc", np.trunc, work="convert", exact=True, idempotent=True, calls=("trunc",)),
    Scalar("sign", np.sign, SIGNED, work="add", exact=True, idempotent=True, residue=known.sign),
    Scalar("not", np.invert, BITS, work="logic", exact=True, involution=True,
           calls=("bitwise_not",), node="BitwiseNot"),
    Scalar("isnan", np.isnan, result="bool", work="logic",
           calls=("isnan",), residue=lambda x: x == field.NAN),
    Scalar("isinf", np.isinf, result="bool", work="logic",
           calls=("isinf",), residue=lambda x: (x == field.POS_INF) | (x == field.NEG_INF)),
    Scalar("isfinite", np.isfinite, result="bool", work="logic",
           calls=("isfinite",), residue=lambda x: x >= 0),
)

#: Binary functions.  ``floordiv``/``mod`` round the quotient down, ``truncdiv``/``truncmod`` towards zero.
#: ``max`` and ``min`` give NaN where an operand is NaN.
BINARY: dict[str, Scalar] = _table(
    Scalar("add", np.add, NUMBER, work="add", exact=True, scalar_forms=("adds", "adds"),
           node="Add", residue=field.add),
    Scalar("sub", np.subtract, NUMBER, work="add", exact=True, scalar_forms=("subs", "rsubs"),
           node="Sub", residue=field.sub),
    Scalar("mul", np.multiply, NUMBER, work="mul", exact=True, scalar_forms=("muls", "muls"),
           node="Mul", residue=field.mul),
    Scalar("div", np.divide, FLOAT, work="divide", exact=True, scalar_forms=("divs", "rdivs"),
           node="Div", residue=field.div),
    Scalar("floordiv", floordiv, NUMBER, work="divide", node="FloorDiv"),
    Scalar("mod", np.mod, NUMBER, work="divide", node="FloorMod"),
    Scalar("truncdiv", truncdiv, NUMBER, work="divide"),
    Scalar("truncmod", np.fmod, NUMBER, work="divide", calls=("fmod",), node="Mod"),
    Scalar("max", np.maximum, NUMBER, work="add", exact=True, either_zero=True, scalar_forms=("maxs", "maxs"),
           node="Max", residue=field.maximum),
    Scalar("min", np.minimum, NUMBER, work="add", exact=True, either_zero=True, scalar_forms=("mins", "mins"),
           node="Min", residue=field.minimum),
    Scalar("pow", power, NUMBER, wide=True, work="transcendental", scalar_forms=("pows", None),
           calls=("pow",)),
    Scalar("atan2", np.arctan2, wide=True, work="transcendental", calls=("atan2",)),
    Scalar("and", np.bitwise_and, BITS, work="logic", exact=True, scalar_forms=("ands", "ands"),
           calls=("bitwise_and",), node="BitwiseAnd"),
    Scalar("or", np.bitwise_or, BITS, work="logic", exact=True, calls=("bitwise_or",), node="BitwiseOr"),
    Scalar("xor", np.bitwise_xor, BITS, work="logic", exact=True, calls=("bitwise_xor",), node="BitwiseXor"),
    Scalar("shl", np.left_shift, INTEGER, work="logic", scalar_forms=("shls", None),
           calls=("shift_left",), node="LShift"),
    Scalar("shr", np.right_shift, INTEGER, work="logic", scalar_forms=("shrs", None),
           calls=("shift_right",), node="RShift"),
)

#: Comparisons; false where an operand is NaN, but for ``ne``.
COMPARE: dict[str, Scalar] = _table(
    Scalar("eq", np.equal, ANY, result="bool", work="logic", exact=True,
           node="EQ", residue=known.ordered(np.equal)),
    Scalar("ne", np.not_equal, ANY, result="bool", work="logic", exact=True,
           node="NE", residue=known.ordered(np.not_equal, beside_nan=True)),
    Scalar("lt", np.less, ANY, result="bool", work="logic", exact=True,
           node="LT", residue=known.ordered(np.less)),
    Scalar("le", np.less_equal, ANY, result="bool", work="logic", exact=True,
           node="LE", residue=known.ordered(np.less_equal)),
    Scalar("gt", np.greater, ANY, result="bool", work="logic", exact=True,
           node="GT", residue=known.ordered(np.greater)),
    Scalar("ge", np.greater_equal, ANY, result="bool", work="logic", exact=True,
           node="GE", residue=known.ordered(np.greater_equal)),
)

# fmt: on


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
        Reduction("add", np.add, NUMBER, lambda _: 0, "add", field.total),
        Reduction("mul", np.multiply, NUMBER, lambda _: 1, "mul", field.product),
        Reduction("max", np.maximum, ANY, _lowest, "add", lambda x, axis: field.extreme(x, axis, True)),
        Reduction("min", np.minimum, ANY, _highest, "add", lambda x, axis: field.extreme(x, axis, False)),
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
