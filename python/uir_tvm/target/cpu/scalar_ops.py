# SPDX-License-Identifier: Apache-2.0
"""The named functions of unary, binary, compare, cast and reduce iOps as TIR expressions.

Arguments are of the compute type, scalars or vectors, and may be used several times (they are variables or
constants).  ``max`` and ``min`` keep NaN as the interpreter does, integer division by zero gives zero, and
shifts by the width or more give zero (the sign for an arithmetic shift to the right).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx
from tvm.ir import Expr

from ...errors import CodegenError
from ...igraph.dtypes import dtype_of
from .elements import convert, element, like, type_of
from .vector_math import MATH, emit
from .vector_math.ops import let

Expression = Callable[..., Expr]


def is_float(x: Expr) -> bool:
    """Whether the element type is a float."""
    return type_of(x).startswith("float")


def ordered(x: Expr) -> Expr:
    """Whether a float is a number.  TVM takes ``x == x`` for true, and ``!=`` for false beside NaN."""
    return x <= like(x, np.inf)


def negated(condition: Expr) -> Expr:
    """Not ``condition``, held apart: TVM takes ``not (x <= y)`` for ``x > y``, which differs for NaN."""
    return let(
        tirx.Select(condition, like(condition, 0, "int8"), like(condition, 1, "int8")),
        lambda held: tirx.NE(held, like(held, 0)),
    )


def differ(a: Expr, b: Expr) -> Expr:
    """Exclusive or of two conditions (LLVM has no ``!=`` of them in TVM)."""
    return tirx.Or(tirx.And(a, tirx.Not(b)), tirx.And(tirx.Not(a), b))


def maximum(a: Expr, b: Expr) -> Expr:
    """The greater; NaN where either is."""
    larger = tirx.Select(a > b, a, b)
    return tirx.Select(ordered(a), larger, a) if is_float(a) else larger


def minimum(a: Expr, b: Expr) -> Expr:
    """The lesser; NaN where either is."""
    smaller = tirx.Select(a < b, a, b)
    return tirx.Select(ordered(a), smaller, a) if is_float(a) else smaller


def _at_least(x: Expr, low: Expr) -> Expr:
    return tirx.Select(low > x, low, x)


def _at_most(x: Expr, high: Expr) -> Expr:
    return tirx.Select(high < x, high, x)


def _relu(x: Expr) -> Expr:
    return _at_least(x, like(x, 0))


def _absolute(x: Expr) -> Expr:
    if type_of(x).startswith("uint"):
        return x
    return tirx.abs(x) if is_float(x) else tirx.Select(x < like(x, 0), like(x, 0) - x, x)


def _negative(x: Expr) -> Expr:
    # 0 - x would lose the sign of a zero
    return x * like(x, -1) if is_float(x) else like(x, 0) - x


def _sign(x: Expr) -> Expr:
    zero = like(x, 0)
    signed = tirx.Select(x > zero, like(x, 1), tirx.Select(x < zero, like(x, -1), zero))
    return tirx.Select(ordered(x), signed, x) if is_float(x) else signed


def _invert(x: Expr) -> Expr:
    return tirx.Not(x) if type_of(x) == "bool" else tirx.bitwise_not(x)


def _llvm(name: str) -> Expression:
    def call(*args: Expr) -> Expr:
        return tirx.call_llvm_pure_intrin(str(args[0].ty.dtype), name, *args)

    return call


def _is_infinite(x: Expr) -> Expr:
    return tirx.EQ(tirx.abs(x), like(x, np.inf))


def _is_finite(x: Expr) -> Expr:
    return tirx.abs(x) < like(x, np.inf)


def _power(x: Expr, y: Expr) -> Expr:
    if is_float(x):
        return emit("pow", x, y)
    if isinstance(y, tirx.IntImm | tirx.Broadcast):
        exponent = int(y.value if isinstance(y, tirx.IntImm) else y.value.value)
        if 0 <= exponent <= 64:
            return _whole_power(x, exponent)
    raise CodegenError(
        "uir-cpu raises integers to constant powers from 0 to 64 only.",
        where=f"pow on {type_of(x)}",
        remedy="cast the operands to a float dtype",
    )


def _whole_power(x: Expr, exponent: int) -> Expr:
    result, square = like(x, 1), x
    while exponent:
        if exponent & 1:
            result = result * square
        square, exponent = square * square, exponent >> 1
    return result


def _divisor(y: Expr) -> Expr:
    return tirx.Select(tirx.EQ(y, like(y, 0)), like(y, 1), y)


def _division(quotient: Expression) -> Expression:
    """Integer division and remainder with nothing over zero being zero."""

    def divide(x: Expr, y: Expr) -> Expr:
        return let(
            _divisor(y),
            lambda d: tirx.Select(tirx.EQ(y, like(y, 0)), like(x, 0), quotient(x, d)),
        )

    return divide


def _floor_quotient(x: Expr, y: Expr) -> Expr:
    quotient = tirx.truncdiv(x, y)
    if type_of(x).startswith("uint"):
        return quotient
    return let(
        quotient,
        lambda q: tirx.Select(
            tirx.And(tirx.NE(q * y, x), differ(x < like(x, 0), y < like(y, 0))), q - like(x, 1), q
        ),
    )


def _floor_remainder(x: Expr, y: Expr) -> Expr:
    return let(_floor_quotient(x, y), lambda q: x - q * y)


def _floordiv(x: Expr, y: Expr) -> Expr:
    return _llvm("llvm.floor")(x / y) if is_float(x) else _division(_floor_quotient)(x, y)


def _truncdiv(x: Expr, y: Expr) -> Expr:
    return _llvm("llvm.trunc")(x / y) if is_float(x) else _division(tirx.truncdiv)(x, y)


def _truncmod(x: Expr, y: Expr) -> Expr:
    return _remainder(x, y) if is_float(x) else _division(tirx.truncmod)(x, y)


def _mod(x: Expr, y: Expr) -> Expr:
    if not is_float(x):
        return _division(_floor_remainder)(x, y)

    def signed(rest: Expr) -> Expr:
        zero = like(x, 0)
        wrong = tirx.And(tirx.NE(rest, zero), differ(rest < zero, y < zero))
        return tirx.Select(wrong, rest + y, rest)

    return let(_remainder(x, y), signed)


def _remainder(x: Expr, y: Expr) -> Expr:
    """C's fmod, which TVM's LLVM code generator has no lowering of."""
    return tirx.call_pure_extern(type_of(x), "fmod" if type_of(x) == "float64" else "fmodf", x, y)


def _inverse_tanh(x: Expr) -> Expr:
    """C's atanh: TVM's lowering, log((1 + x) / (1 - x)) / 2, loses small x."""
    return tirx.call_pure_extern(type_of(x), "atanh" if type_of(x) == "float64" else "atanhf", x)


def _width(x: Expr) -> int:
    return int(x.ty.dtype.bits)


def _shift_left(x: Expr, y: Expr) -> Expr:
    inside = tirx.And(y >= like(y, 0), y < like(y, _width(y)))
    return tirx.Select(inside, tirx.shift_left(x, tirx.bitwise_and(y, like(y, _width(y) - 1))), like(x, 0))


def _shift_right(x: Expr, y: Expr) -> Expr:
    inside = tirx.And(y >= like(y, 0), y < like(y, _width(y)))
    last = like(y, _width(y) - 1)
    beyond = like(x, 0) if type_of(x).startswith("uint") else tirx.shift_right(x, last)
    return tirx.Select(inside, tirx.shift_right(x, tirx.bitwise_and(y, last)), beyond)


def _logical(on_bool: Expression, on_bits: Expression) -> Expression:
    return lambda x, y: on_bool(x, y) if type_of(x) == "bool" else on_bits(x, y)


def _mathematical(name: str) -> Expression:
    return lambda *args: emit(name, *args)


UNARY: dict[str, Expression] = {
    "copy": lambda x: x,
    "adds": lambda x, p: x + p,
    "subs": lambda x, p: x - p,
    "muls": lambda x, p: x * p,
    "divs": lambda x, p: x / p,
    "maxs": _at_least,
    "mins": _at_most,
    "pows": _power,
    "rsubs": lambda x, p: p - x,
    "rdivs": lambda x, p: p / x,
    "ands": tirx.bitwise_and,
    "shls": _shift_left,
    "shrs": _shift_right,
    **{name: _mathematical(name) for name in MATH},
    "sqrt": _llvm("llvm.sqrt"),
    "log1p": tirx.log1p,
    "tan": tirx.tan,
    "asin": tirx.asin,
    "acos": tirx.acos,
    "atan": tirx.atan,
    "sinh": tirx.sinh,
    "cosh": tirx.cosh,
    "asinh": tirx.asinh,
    "acosh": tirx.acosh,
    "atanh": _inverse_tanh,
    "recip": lambda x: like(x, 1) / x,
    "abs": _absolute,
    "neg": _negative,
    "relu": _relu,
    "leaky_relu": lambda x, p: tirx.Select(x >= like(x, 0), x, x * p),
    "floor": _llvm("llvm.floor"),
    "ceil": _llvm("llvm.ceil"),
    "round": _llvm("llvm.rint"),
    "trunc": _llvm("llvm.trunc"),
    "sign": _sign,
    "not": _invert,
    "isnan": lambda x: negated(ordered(x)),
    "isinf": _is_infinite,
    "isfinite": _is_finite,
}

BINARY: dict[str, Expression] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "floordiv": _floordiv,
    "mod": _mod,
    "truncdiv": _truncdiv,
    "truncmod": _truncmod,
    "max": maximum,
    "min": minimum,
    "pow": _power,
    "atan2": tirx.atan2,
    "and": _logical(tirx.And, tirx.bitwise_and),
    "or": _logical(tirx.Or, tirx.bitwise_or),
    "xor": _logical(differ, tirx.bitwise_xor),
    "shl": _shift_left,
    "shr": _shift_right,
}

_ORDER: dict[str, Expression] = {
    "eq": tirx.EQ,
    "ne": tirx.NE,
    "lt": tirx.LT,
    "le": tirx.LE,
    "gt": tirx.GT,
    "ge": tirx.GE,
}


def _comparison(name: str) -> Expression:
    def of(x: Expr, y: Expr) -> Expr:
        if type_of(x) == "bool":
            x, y = (tirx.Select(v, like(v, 1, "int32"), like(v, 0, "int32")) for v in (x, y))
        if name == "ne" and is_float(x):
            return negated(tirx.EQ(x, y))
        return _ORDER[name](x, y)

    return of


COMPARE: dict[str, Expression] = {name: _comparison(name) for name in _ORDER}

#: How two partial results of a reduction combine: (accumulator, new value).
COMBINE: dict[str, Expression] = {
    "add": lambda acc, x: acc + x,
    "mul": lambda acc, x: acc * x,
    "max": lambda acc, x: maximum(x, acc),
    "min": lambda acc, x: minimum(x, acc),
}

#: Functions that TVM emits as a call per element of the C library.
LIBRARY_CALLS = frozenset(
    {"log1p", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2"}
)


def needs_scalars(op: str, name: str, dtype: str) -> bool:
    """Whether an iOp can only be emitted one element at a time."""
    if op not in ("unary", "binary"):
        return False
    wide = dtype == "fp64" and name in (MATH.keys() - {"sqrt", "rsqrt"}) | {"pows"}
    remainder = name in ("mod", "truncmod") and dtype_of(dtype).kind == "float"
    return name in LIBRARY_CALLS or wide or remainder


# --- casts -----------------------------------------------------------------------------------------

_WHOLE: dict[str, Expression] = {
    "rint": _llvm("llvm.rint"),
    "floor": _llvm("llvm.floor"),
    "ceil": _llvm("llvm.ceil"),
    "trunc": lambda x: x,
    "round": _llvm("llvm.round"),
}


def cast(x: Expr, source: str, target: str, rounding: str | None) -> Expr:
    """A value of iGraph dtype ``source`` as one of ``target``, both in their compute types, not yet rounded.

    Raises
    ------
    CodegenError
        A directed rounding to a narrower float.
    """
    a, b = dtype_of(source), dtype_of(target)
    compute = element(target).compute
    if b.kind == "bool":
        if a.kind == "bool":
            return x
        return negated(tirx.EQ(x, like(x, 0)))  # NaN is not zero
    if a.kind == "bool":
        return tirx.Select(x, like(x, 1, compute), like(x, 0, compute))
    if a.kind == "float" and b.kind != "float":
        return _saturated(_WHOLE[rounding or "trunc"](x), b.numpy, b.tvm)
    if a.kind == "float" and b.bytes < a.bytes and rounding not in (None, "rint"):
        raise CodegenError(
            f"uir-cpu rounds {source} to {target} to the nearest only.",
            where=f"cast.{source}.{target} round={rounding}",
            need="round=rint",
            remedy="round before the cast",
        )
    return convert(x, compute)


def _saturated(x: Expr, to: Any, compute: str) -> Expr:
    """Truncate a float to an integer: NaN gives 0, what is out of range the nearest limit."""
    limits = np.iinfo(to)

    def of(x: Expr) -> Expr:
        low, high = like(x, float(limits.min)), like(x, float(limits.max))
        # false for NaN, which is converted as zero is
        inside = tirx.And(x > low, x < high)
        whole = convert(tirx.Select(inside, x, like(x, 0)), compute)
        above = tirx.Select(x >= high, like(x, limits.max, compute), whole)
        return tirx.Select(x <= low, like(x, limits.min, compute), above)

    return let(x, of)
