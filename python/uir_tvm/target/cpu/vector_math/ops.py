# SPDX-License-Identifier: Apache-2.0
"""Elementary operations from which the vectorised functions are built, for scalars and vectors alike.

Everything here becomes one LLVM instruction per vector register: LLVM has no call to make and nothing to
scalarise. Comparisons are ordered (false for NaN), which the functions use to let NaN through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from tvm import tirx
from tvm.ir import Expr

Binder = Callable[[Expr], Expr]

_BINDER: ContextVar[Binder | None] = ContextVar("binder", default=None)
_AVX512: ContextVar[bool] = ContextVar("avx512", default=False)

#: ``x + MAGIC`` leaves the integer nearest to x in the low bits, for |x| < 2**22.
MAGIC = 1.5 * 2.0**23
#: The same for float64, |x| < 2**51.
MAGIC64 = 1.5 * 2.0**52


def element_dtype(x: Expr) -> str:
    """Name of the element type of ``x``, without its lanes."""
    return str(x.ty.dtype.with_lanes(1)) if lanes(x) > 1 else str(x.ty.dtype)


def lanes(x: Expr) -> int:
    """Number of lanes of ``x``; 1 for a scalar."""
    return int(x.ty.dtype.lanes)


def dtype_like(x: Expr, dtype: str) -> str:
    """``dtype`` with as many lanes as ``x`` has."""
    return dtype if lanes(x) == 1 else f"{dtype}x{lanes(x)}"


def const_like(x: Expr, value: float, dtype: str | None = None) -> Expr:
    """A constant of the lanes of ``x`` and of its element type, or of ``dtype``."""
    scalar = tirx.const(value, dtype or element_dtype(x))
    return scalar if lanes(x) == 1 else tirx.Broadcast(scalar, lanes(x))


def unknown_like(x: Expr, value: float) -> Expr:
    """`const_like` of what LLVM is not to know: it stays in memory where registers do not suffice.

    A multiply-add of x86 reads one operand from memory at no cost, but a constant that LLVM knows takes an
    instruction of its own there, and others are moved from register to register to make room.  Behind
    ``llvm.arithmetic.fence`` LLVM does not know it.  AVX-512 has registers for all of them.
    """
    known = const_like(x, value)
    if _AVX512.get() or lanes(x) == 1 or element_dtype(x) not in ("float32", "float64"):
        return known
    return tirx.call_llvm_pure_intrin(str(x.ty.dtype), "llvm.arithmetic.fence", known)


def let(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """``body`` of something that holds ``value``, so that using it twice does not compute it twice.

    What holds it is made by the binder of the surrounding `binding`; without one, it is the variable of a
    ``Let``, new at every call since TVM allows one binding per variable in a function. Bindings at the head
    of ``value`` are moved in front of this one.
    """
    if isinstance(value, tirx.Var | tirx.FloatImm | tirx.IntImm):
        return body(value)
    bind = _BINDER.get()
    if bind is not None:
        return body(bind(value))
    if isinstance(value, tirx.Let):
        return tirx.Let(value.var, value.value, let(value.body, body))
    variable = tirx.Var("v", value.ty)
    return tirx.Let(variable, value, body(variable))


@contextmanager
def binding(bind: Binder | None) -> Iterator[None]:
    """Make `let` hold its values by ``bind`` inside the ``with`` block; None leaves it as it is outside."""
    token = _BINDER.set(bind or _BINDER.get())
    try:
        yield
    finally:
        _BINDER.reset(token)


@contextmanager
def avx512(present: bool) -> Iterator[None]:
    """Say inside the ``with`` block whether the processor has AVX-512; outside of any it has not."""
    token = _AVX512.set(present)
    try:
        yield
    finally:
        _AVX512.reset(token)


def can_scale(x: Expr) -> bool:
    """Whether `scale` applies: AVX-512's whole vectors of float32."""
    return _AVX512.get() and lanes(x) == 16 and element_dtype(x) == "float32"


def scale(significand: Expr, exponent: Expr) -> Expr:
    """``significand * 2**exponent`` with one rounding, for whole numbers of any size (``vscalefps``).

    Where a result is smaller than the least normal number it takes tens of nanoseconds: zeros had better be
    chosen by a `tirx.Select`, which LLVM makes part of the instruction.
    """
    every, rounding = tirx.const(-1, "int16"), tirx.const(4, "int32")
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    dtype = str(significand.ty.dtype)
    return tirx.call_llvm_pure_intrin(dtype, name, significand, exponent, significand, every, rounding)


def bind_in_cells(statements: list[tirx.Stmt]) -> Binder:
    """A binder that appends to ``statements`` the store of each value to a local buffer of its own.

    They are small and of the default scope, which puts them on the stack, whence LLVM takes them into
    registers (those of scope "local" come from TVM's pool and stay in memory). TVM's analyser, which
    substitutes variables bound by ``Let`` or ``Bind`` into one another, cannot look through them: where it
    can, compiling takes time exponential in the length of a chain of values that each use the one before
    more than once (a dozen fused multiply-adds of a value by itself take 20 s).
    """

    def bind(value: Expr) -> Expr:
        width = lanes(value)
        cell = tirx.decl_buffer((width,), element_dtype(value), "cell")
        index = tirx.Ramp(0, 1, width) if width > 1 else 0
        statements.extend([tirx.AllocBuffer(cell), tirx.BufferStore(cell, value, [index])])
        return tirx.BufferLoad(cell, [index])

    return bind


def fma(a: Expr, b: Expr, c: Expr) -> Expr:
    """``a * b + c``, rounded once."""
    return tirx.call_llvm_pure_intrin(str(a.ty.dtype), "llvm.fma", a, b, c)


def nearest(x: Expr) -> Expr:
    """The integer nearest to ``x``, ties to even (``tirx.nearbyint`` does not vectorise)."""
    return tirx.call_llvm_pure_intrin(str(x.ty.dtype), "llvm.rint", x)


def horner(x: Expr, coefficients: Sequence[float]) -> Expr:
    """The polynomial with ``coefficients``, lowest order first, at ``x`` (a variable)."""
    value = const_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = fma(value, x, unknown_like(x, coefficient))
    return value


def at_least(x: Expr, low: float) -> Expr:
    """``max(x, low)``; NaN stays NaN: TVM's maximum is its second operand unless the first is greater."""
    return tirx.Max(const_like(x, low), x)


def at_most(x: Expr, high: float) -> Expr:
    """``min(x, high)``; NaN stays NaN."""
    return tirx.Min(const_like(x, high), x)


def bits(x: Expr) -> Expr:
    """The bit pattern of a float32 as int32, of a float64 as int64."""
    return tirx.reinterpret(dtype_like(x, element_dtype(x).replace("float", "int")), x)


def from_bits(x: Expr) -> Expr:
    """The float with the bit pattern ``x`` (int32 or int64)."""
    return tirx.reinterpret(dtype_like(x, element_dtype(x).replace("int", "float")), x)


def cast(x: Expr, dtype: str) -> Expr:
    """``x`` converted to element type ``dtype``."""
    return x if element_dtype(x) == dtype else tirx.Cast(dtype_like(x, dtype), x)


def shift_left(x: Expr, count: int) -> Expr:
    """``x << count`` on integers."""
    return tirx.shift_left(x, const_like(x, count))


def shift_right(x: Expr, count: int) -> Expr:
    """``x >> count`` on integers, the sign carried in."""
    return tirx.shift_right(x, const_like(x, count))


def mask(x: Expr, value: int) -> Expr:
    """``x & value`` on integers."""
    return tirx.bitwise_and(x, const_like(x, value))
