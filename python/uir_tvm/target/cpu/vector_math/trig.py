# SPDX-License-Identifier: Apache-2.0
"""sin and cos, for every finite argument.

``x = (n + f) pi / 2`` with n an integer, ``|f| <= 1/2``; n modulo 4 picks sin or cos of ``r = f pi / 2``
and its sign. The reduction is in float64: ``x (2 / pi)``, 2 / pi in two parts, with n subtracted inside an
fma, where nothing is lost. That serves up to ``|x| = 2**47``. A larger x is a multiple of a power of two,
``2**k``; only ``(2**k 2 / pi) mod 4`` then matters to ``n mod 4`` and f (Payne and Hanek, "Radian reduction
for trigonometric functions", 1983). Four windows, each with its own two constants, chosen by selection,
cover float32.

sin and cos of r are minimax polynomials from ``scripts/fit_vector_math.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tvm import tirx
from tvm.ir import Expr

from .ops import MAGIC64, bits, cast, const_like, fma, from_bits, horner, let, mask, shift_left

_SIN = (1.0, -0.16666653752326965, 0.008332101628184319, -0.00019506842363625765)
_COS = (1.0, -0.5, 0.04166664555668831, -0.001388729433529079, 2.4429415134363808e-05)
_HALF_PI = 1.5707963267948966
#: The first 240 bits of 2 / pi.
_TWO_OVER_PI = Fraction(0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBB, 2**240)
#: (k, smallest |x|): x is a multiple of 2**k there. Up to the next window, x times the high part is within
#: what MAGIC64 rounds to integers and x times the low part moves f by at most 0.052 (by search).
_WINDOWS = ((0, 0.0), (24, 2.0**47), (48, 2.0**74), (79, 2.0**102))


def _window(k: int) -> tuple[float, float]:
    """``((2**k 2 / pi) mod 4) 2**-k`` in two float64 parts.

    For k = 0 both parts are positive, so that x = -0 keeps its sign.
    """
    turned = _TWO_OVER_PI * 2**k
    turned = (turned - 4 * round(turned / 4)) / 2**k
    high = float(turned)
    if k == 0:
        high = math.nextafter(high, 0.0)
    return high, float(turned - Fraction(high))


def _by_window(x: Expr, values: Sequence[float]) -> Expr:
    """The one of ``values`` that belongs to the window of ``x``."""
    chosen = const_like(x, values[0])
    for (_, smallest), value in zip(_WINDOWS[1:], values[1:], strict=True):
        chosen = tirx.Select(tirx.abs(x) >= const_like(x, smallest), const_like(x, value), chosen)
    return chosen


def _reduce(x: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """``body(n, r)``: n as int32, right modulo 4, r as float32; infinity and NaN give r = NaN."""
    magic = const_like(x, MAGIC64, "float64")

    def split(x: Expr, high: Expr, low: Expr) -> Expr:
        def rest(shifted: Expr) -> Expr:
            # Negated after the subtraction: n = 0 must give -0, which leaves the sign of x = -0 alone.
            negated = (shifted - magic) * const_like(x, -1.0)
            f = fma(x, low, fma(x, high, negated))
            return let(
                cast(f * const_like(f, _HALF_PI), "float32"),
                lambda r: let(cast(bits(shifted), "int32"), lambda n: body(n, r)),
            )

        return let(fma(x, high, magic), rest)

    high, low = zip(*(_window(k) for k, _ in _WINDOWS), strict=True)
    return let(
        cast(x, "float64"),
        lambda x: let(_by_window(x, high), lambda h: let(_by_window(x, low), lambda m: split(x, h, m))),
    )


def _quadrant(n: Expr, r: Expr) -> Expr:
    """sin(n pi / 2 + r)."""

    def of(t: Expr) -> Expr:
        even = tirx.EQ(mask(n, 1), const_like(n, 0))
        return let(
            r * horner(t, _SIN),
            lambda s: let(horner(t, _COS), lambda c: signed(tirx.Select(even, s, c))),
        )

    def signed(value: Expr) -> Expr:
        return from_bits(tirx.bitwise_xor(bits(value), shift_left(mask(n, 2), 30)))

    return let(r * r, of)


def sin(x: Expr) -> Expr:
    """Sine of a float32 scalar or vector; source: see the module."""
    return _reduce(x, _quadrant)


def cos(x: Expr) -> Expr:
    """Cosine of a float32 scalar or vector, as ``sin(x + pi / 2)``; source: see the module."""
    return _reduce(x, lambda n, r: let(n + const_like(n, 1), lambda n: _quadrant(n, r)))
