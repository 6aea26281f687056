# SPDX-License-Identifier: Apache-2.0
"""exp and exp2.

With ``n = round(x / ln 2)`` and ``r = x - n ln 2`` (Cody and Waite: ln 2 in two parts, each product within
an fma), ``exp(x) = 2**n e**r``, ``|r| <= ln(2) / 2``. ``e**r = 1 + r + r**2 P(r)`` with the minimax ``P``
from ``scripts/fit_vector_math.py``. ``2**n`` is applied as two factors of about ``2**(n/2)``, either of
which is a normal number: the last product overflows to infinity and underflows gradually by itself, with
one rounding. AVX-512 scales in one instruction (`ops.scale`), which is told where the result is zero.
Of arguments up to zero ``2**(n + 64)`` is a normal number, and the polynomial that of ``2**-64 e**r``: one
product scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr

from .ops import (
    MAGIC,
    at_least,
    at_most,
    bits,
    can_scale,
    const_like,
    fma,
    from_bits,
    horner,
    let,
    nearest,
    scale,
    shift_left,
    shift_right,
    unknown_like,
)

LOG2_E = 1.4426950408889634
#: ln 2 in two float32 parts.
LN2_HIGH, LN2_LOW = 0.693147182464599609375, -1.904654299957767e-09
_EXP = (1.0, 1.0, 0.499992311000824, 0.16667111217975616, 0.04189017415046692, 0.008312814868986607)
_EXP2 = (
    1.0,
    0.6931471824645996,
    0.24022647738456726,
    0.05550359934568405,
    0.009618505835533142,
    0.0013390806270763278,
    0.0001532646274426952,
)
#: exp(89) > 2**128 overflows; at -176, n = -254, of which either half is the biased exponent of zero.
#: Zero times anything is exact, while a product that underflows (as from -104 on) takes CPUs many cycles:
#: what a mask made -inf is to cost no more than what it kept.
_LOWEST, _HIGHEST = -176.0, 89.0
_LOWEST2, _HIGHEST2 = -254.0, 128.5
#: exp of less is zero: less than half of the least denormal.
_ZERO_BELOW = -104.0
#: Added to n, the low bits of MAGIC then hold n + 254, of which either half is a biased exponent.
_BIASED = MAGIC + 254.0
#: For n <= 0: the low bits of MAGIC then hold the biased exponent of ``2**(n + 64)``.
_RAISED = MAGIC + 127.0 + 64.0
#: There n = -191, of which that exponent is zero's.
_LOWEST_RAISED = -132.4
#: Of ``2**-64 e**r``: only exponents differ, so every step rounds as that of ``e**r`` does.
_LOWERED_EXP = tuple(coefficient * 2.0**-64 for coefficient in _EXP)


def scale_by_power_of_two(significand: Expr, biased: Expr) -> Expr:
    """``significand * 2**n``, with ``biased = n + _BIASED`` as float32, for -254 <= n <= 254."""

    def power(biased: Expr) -> Expr:
        return from_bits(shift_left(biased, 23))

    def by_halves(whole: Expr) -> Expr:
        return let(shift_right(whole, 1), lambda half: significand * power(half) * power(whole - half))

    return let(bits(biased), by_halves)


def _rest(x: Expr, n: Expr) -> Expr:
    return fma(n, unknown_like(x, -LN2_LOW), fma(n, unknown_like(x, -LN2_HIGH), x))


def _reduced(x: Expr, bias: float, polynomial: Sequence[float], scaled: Callable[[Expr, Expr], Expr]) -> Expr:
    """``scaled(polynomial(r), n + bias)`` of an ``x`` that lies within its limits or is NaN."""
    return let(
        fma(x, unknown_like(x, LOG2_E), const_like(x, bias)),
        lambda biased: let(
            _rest(x, biased - const_like(x, bias)),
            lambda r: let(horner(r, polynomial), lambda p: scaled(p, biased)),
        ),
    )


def _scaled(x: Expr) -> Expr:
    """exp of an ``x`` up to _HIGHEST or NaN; what is computed for those whose exp is zero is not used."""

    def of(n: Expr) -> Expr:
        return let(_rest(x, n), lambda r: let(horner(r, _EXP), lambda p: scale(p, n)))

    magic = const_like(x, MAGIC)
    result = let(fma(x, const_like(x, LOG2_E), magic) - magic, of)
    zero = const_like(x, 0.0)
    return let(result, lambda held: tirx.Select(x < const_like(x, _ZERO_BELOW), zero, held))


def _raised(lowered: Expr, biased: Expr) -> Expr:
    """``2**(n + 64) lowered``, with ``biased = n + _RAISED`` as float32, -191 <= n <= 0; zero for -191."""
    return lowered * from_bits(shift_left(bits(biased), 23))


def exp(x: Expr) -> Expr:
    """``e**x`` of a float32 scalar or vector; source: see the module."""
    if can_scale(x):
        return let(x, lambda x: let(at_most(x, _HIGHEST), _scaled))
    limited = at_most(at_least(x, _LOWEST), _HIGHEST)
    return let(limited, lambda x: _reduced(x, _BIASED, _EXP, scale_by_power_of_two))


def exp_of_negative(x: Expr) -> Expr:
    """``e**x`` for ``x <= 0`` or NaN: the bits of `exp` by fewer instructions."""
    if can_scale(x):
        return let(x, _scaled)
    return let(at_least(x, _LOWEST_RAISED), lambda x: _reduced(x, _RAISED, _LOWERED_EXP, _raised))


def exp2_split(n: Expr, f: Expr) -> Expr:
    """``2**(n + f)`` for an integer n in [-254, 128] and ``|f| <= 1/2``, both float32."""
    return let(f, lambda f: scale_by_power_of_two(horner(f, _EXP2), n + const_like(n, _BIASED)))


def exp2(x: Expr) -> Expr:
    """``2**x`` of a float32 scalar or vector: as `exp`, with the exact reduction ``f = x - round(x)``."""

    def of(x: Expr) -> Expr:
        return let(nearest(x), lambda n: exp2_split(n, x - n))

    return let(x, lambda x: let(at_most(at_least(x, _LOWEST2), _HIGHEST2), of))
