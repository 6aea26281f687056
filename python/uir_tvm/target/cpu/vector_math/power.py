# SPDX-License-Identifier: Apache-2.0
"""sqrt, rsqrt and pow.

sqrt is the processor's. ``pow(x, y) = 2**(y log2|x|)``: a float32 logarithm would lose as many bits as the
exponent has (150 of relative error in the worst case), so the logarithm and the product are float64. With
``x = 2**e m`` and ``s = (m - 1) / (m + 1)``, ``log(m) = 2 s + s**3 P(s**2)``, ``P`` from
``scripts/fit_vector_math.py`` to 2**-42; what ``2**`` is taken of has an absolute error below 2**-33. The
special values are those of C's pow.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr

from .exp import exp2_split
from .log import split
from .ops import at_least, at_most, bits, cast, const_like, fma, from_bits, horner, let, mask, nearest

_LOG64 = (
    0.6666666671087731,
    0.3999998447221568,
    0.2857319667016704,
    0.22134712245268626,
    0.20127040455847867,
)
_LOG2_E = 1.4426950408889634


def sqrt(x: Expr) -> Expr:
    """Square root, correctly rounded."""
    return tirx.sqrt(x)


def rsqrt(x: Expr) -> Expr:
    """``1 / sqrt(x)``, two correctly rounded operations; rsqrt(0) = inf, rsqrt(-0) = -inf."""
    return const_like(x, 1.0) / tirx.sqrt(x)


def _log2_wide(x: Expr) -> Expr:
    """log2 of ``x >= 0`` in float64; NaN for NaN."""

    def join(e: Expr, m: Expr) -> Expr:
        one = const_like(m, 1.0, "float64")

        def series(s: Expr) -> Expr:
            return let(
                s * s,
                lambda u: fma(
                    fma(s * u, horner(u, _LOG64), s + s), const_like(u, _LOG2_E), cast(e, "float64")
                ),
            )

        return let(cast(m, "float64"), lambda m: let((m - one) / (m + one), series))

    infinity, minus_infinity = const_like(x, float("inf")), const_like(x, float("-inf"), "float64")
    return let(
        split(x, join),
        lambda value: tirx.Select(
            x < infinity,
            tirx.Select(x > const_like(x, 0.0), value, minus_infinity),
            cast(x, "float64"),
        ),
    )


def _exp2_wide(x: Expr) -> Expr:
    """2 to the float64 ``x``, as float32."""

    def of(x: Expr) -> Expr:
        return let(
            nearest(x),
            lambda n: let(cast(x - n, "float32"), lambda f: exp2_split(cast(n, "float32"), f)),
        )

    return let(at_most(at_least(x, -151.0), 128.5), of)


def _is_integer(y: Expr) -> Expr:
    return tirx.EQ(nearest(y), y)


def _with_sign(x: Expr, y: Expr, magnitude: Expr) -> Expr:
    """pow for an x of either sign, from that of |x|."""
    zero = const_like(x, 0.0)
    sign = mask(bits(x), -(2**31))
    even = tirx.Select(_is_integer(y * const_like(y, 0.5)), const_like(sign, 0), sign)
    sign = tirx.Select(_is_integer(y), even, const_like(sign, 0))
    finite = tirx.Select(x > const_like(x, float("-inf")), const_like(x, float("nan")), magnitude)
    undefined = tirx.Select(x < zero, finite, magnitude)
    return tirx.Select(_is_integer(y), from_bits(tirx.bitwise_xor(bits(magnitude), sign)), undefined)


def _with_units(x: Expr, y: Expr, value: Expr) -> Expr:
    """One where pow is one whatever the other argument, even NaN."""
    one = const_like(x, 1.0)
    minus_one_to_infinity = tirx.Select(
        tirx.EQ(x, const_like(x, -1.0)), tirx.EQ(tirx.abs(y), const_like(y, float("inf"))), tirx.EQ(x, one)
    )
    return tirx.Select(tirx.EQ(y, const_like(y, 0.0)), one, tirx.Select(minus_one_to_infinity, one, value))


#: Exponents for which a product or a root is quicker and more accurate. Roots of -0 and -inf are C's pow's.
_CONSTANT: dict[float, Callable[[Expr], Expr]] = {
    -1.0: lambda x: const_like(x, 1.0) / x,
    -0.5: lambda x: const_like(x, 1.0) / _root(x),
    0.5: lambda x: _root(x),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: let(x * x, lambda t: t * t),
}


def _root(x: Expr) -> Expr:
    infinity = const_like(x, float("inf"))
    return tirx.Select(tirx.EQ(x, const_like(x, float("-inf"))), infinity, tirx.abs(tirx.sqrt(x)))


def pow(x: Expr, y: Expr) -> Expr:
    """``x ** y`` of float32 scalars or vectors of equal lanes; source: see the module."""
    exponent = y.value if isinstance(y, tirx.Broadcast) else y
    if isinstance(exponent, tirx.FloatImm) and exponent.value in _CONSTANT:
        return let(x, _CONSTANT[exponent.value])

    def of(x: Expr, y: Expr) -> Expr:
        return let(
            let(
                let(tirx.abs(x), _log2_wide),
                lambda logarithm: _exp2_wide(cast(y, "float64") * logarithm),
            ),
            lambda magnitude: _with_units(x, y, _with_sign(x, y, magnitude)),
        )

    return let(x, lambda x: let(y, lambda y: of(x, y)))
