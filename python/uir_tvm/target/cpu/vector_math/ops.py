# SPDX-License-Identifier: Apache-2.0
"""Elementary operations from which the vectorised functions are built, for scalars and vectors alike.

Everything here becomes one LLVM instruction per vector register: LLVM has no call to make and nothing to scalarise.
Comparisons are ordered (false for NaN), which the functions use to let NaN through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.tirx import PrimExpr

#: ``x + MAGIC`` leaves the integer nearest to x in the low bits, for |x| < 2**22.
MAGIC = 1.5 * 2.0**23
#: The same for float64, |x| < 2**51.
MAGIC64 = 1.5 * 2.0**52


def element_dtype(x: PrimExpr) -> str:
    """Name of the element type of ``x``, without its lanes."""
    return str(x.ty.dtype.with_lanes(1)) if lanes(x) > 1 else str(x.ty.dtype)


def lanes(x: PrimExpr) -> int:
    """Number of lanes of ``x``; 1 for a scalar."""
    return int(x.ty.dtype.lanes)


def dtype_like(x: PrimExpr, dtype: str) -> str:
    """``dtype`` with as many lanes as ``x`` has."""
    return dtype if lanes(x) == 1 else f"{dtype}x{lanes(x)}"


def const_like(x: PrimExpr, value: float, dtype: str | None = None) -> PrimExpr:
    """A constant of the lanes of ``x`` and of its element type, or of ``dtype``."""
    scalar = tirx.const(value, dtype or element_dtype(x))
    return scalar if lanes(x) == 1 else tirx.Broadcast(scalar, lanes(x))


def let(value: PrimExpr, body: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
    """``body`` of a variable bound to ``value``, so that using it twice does not compute it twice.

    The variable is new at every call: TVM allows one binding per variable in a function.
    """
    if isinstance(value, tirx.Var | tirx.FloatImm | tirx.IntImm):
        return body(value)
    variable = tirx.Var("v", value.ty)
    return tirx.Let(variable, value, body(variable))


def fma(a: PrimExpr, b: PrimExpr, c: PrimExpr) -> PrimExpr:
    """``a * b + c``, rounded once."""
    return tirx.call_llvm_pure_intrin(str(a.ty.dtype), "llvm.fma", a, b, c)


def horner(x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """The polynomial with ``coefficients``, lowest order first, at ``x`` (a variable)."""
    value = const_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = fma(value, x, const_like(x, coefficient))
    return value


def at_least(x: PrimExpr, low: float) -> PrimExpr:
    """``max(x, low)``; NaN stays NaN."""
    bound = const_like(x, low)
    return tirx.Select(x < bound, bound, x)


def at_most(x: PrimExpr, high: float) -> PrimExpr:
    """``min(x, high)``; NaN stays NaN."""
    bound = const_like(x, high)
    return tirx.Select(x > bound, bound, x)


def bits(x: PrimExpr) -> PrimExpr:
    """The bit pattern of a float32 as int32, of a float64 as int64."""
    return tirx.reinterpret(dtype_like(x, element_dtype(x).replace("float", "int")), x)


def from_bits(x: PrimExpr) -> PrimExpr:
    """The float with the bit pattern ``x`` (int32 or int64)."""
    return tirx.reinterpret(dtype_like(x, element_dtype(x).replace("int", "float")), x)


def cast(x: PrimExpr, dtype: str) -> PrimExpr:
    """``x`` converted to element type ``dtype``."""
    return x if element_dtype(x) == dtype else tirx.Cast(dtype_like(x, dtype), x)


def shift_left(x: PrimExpr, count: int) -> PrimExpr:
    """``x << count`` on integers."""
    return tirx.shift_left(x, const_like(x, count))


def shift_right(x: PrimExpr, count: int) -> PrimExpr:
    """``x >> count`` on integers, the sign carried in."""
    return tirx.shift_right(x, const_like(x, count))


def mask(x: PrimExpr, value: int) -> PrimExpr:
    """``x & value`` on integers."""
    return tirx.bitwise_and(x, const_like(x, value))
