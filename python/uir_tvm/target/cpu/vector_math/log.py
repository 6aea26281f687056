# SPDX-License-Identifier: Apache-2.0
"""log and log2.

``x = 2**e m`` with ``m`` in [2/3, 4/3), cut out of the bit pattern; a denormal is first multiplied by
``2**23``. ``log(m) = f + f**2 P(f)``, ``f = m - 1`` exact, with the minimax ``P`` from
``scripts/fit_vector_math.py``. Where ``e = 0`` the result is log(m) alone, so that it keeps its relative
accuracy around x = 1; elsewhere ``|e ln 2| > 1.5 |log(m)|`` and little cancels.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr

from .ops import bits, cast, const_like, fma, from_bits, horner, let, mask

_LOG = (
    -0.49999937415122986,
    0.33333200216293335,
    -0.250077486038208,
    0.20011073350906372,
    -0.1641702950000763,
    0.13997134566307068,
    -0.1538359820842743,
    0.14020581543445587,
)
_LN2 = 0.6931471805599453
#: log2(e) in two float32 parts.
_LOG2_E_HIGH, _LOG2_E_LOW = 1.44269502162933349609375, 1.925963033500e-08
_TWO_THIRDS_BITS = 0x3F2AAAAB
_EXPONENT_BITS = -0x800000
_SMALLEST_NORMAL = 2.0**-126


def split(x: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """``body(e, m)`` where ``x = 2**e m``, e an integer in float32, m in [2/3, 4/3), for finite x > 0."""

    def cut(pattern: Expr) -> Expr:
        return let(
            mask(pattern - const_like(pattern, _TWO_THIRDS_BITS), _EXPONENT_BITS),
            lambda exponent: let(
                fma(
                    cast(exponent, "float32"),
                    const_like(x, 2.0**-23),
                    tirx.Select(denormal, const_like(x, -23.0), const_like(x, 0.0)),
                ),
                lambda e: let(from_bits(pattern - exponent), lambda m: body(e, m)),
            ),
        )

    denormal = x < const_like(x, _SMALLEST_NORMAL)
    return let(bits(tirx.Select(denormal, x * const_like(x, 2.0**23), x)), cut)


def with_special_values(x: Expr, value: Expr) -> Expr:
    """``value`` for finite, positive x; elsewhere (zero, negative, infinity, NaN) what a logarithm is."""
    zero, infinity = const_like(x, 0.0), const_like(x, float("inf"))
    outside = tirx.Select(tirx.EQ(x, zero), const_like(x, float("-inf")), const_like(x, float("nan")))
    return let(value, lambda value: tirx.Select(x < infinity, tirx.Select(x > zero, value, outside), x))


def log(x: Expr) -> Expr:
    """Natural logarithm of a float32 scalar or vector; source: see the module."""

    def join(e: Expr, m: Expr) -> Expr:
        return let(
            m - const_like(m, 1.0),
            lambda f: fma(e, const_like(f, _LN2), fma(horner(f, _LOG), f * f, f)),
        )

    return let(x, lambda x: with_special_values(x, split(x, join)))


def log2(x: Expr) -> Expr:
    """Base 2 logarithm of a float32 scalar or vector: ``e + log2(e) log(m)``, exact at powers of two."""

    def join(e: Expr, m: Expr) -> Expr:
        def scaled(f: Expr) -> Expr:
            return let(
                fma(horner(f, _LOG), f * f, f),
                lambda y: fma(y, const_like(y, _LOG2_E_HIGH), fma(y, const_like(y, _LOG2_E_LOW), e)),
            )

        return let(m - const_like(m, 1.0), scaled)

    return let(x, lambda x: with_special_values(x, split(x, join)))
