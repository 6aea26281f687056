# SPDX-License-Identifier: Apache-2.0
"""tanh and erf: odd functions that saturate at one.

A rational function straight to such a function leaves the rounding of both its polynomials in the result.
Here the rational function is ``h``, ``|h| <= 1``, with ``f = 2 h / (1 + h**2)`` (for tanh that is ``h(x) =
tanh(x / 2)``; for erf the same equation defines it). A relative error d of h is one of ``d (1 - h**2) / (1
+ h**2)`` in f, next to nothing where f is near one: polynomials of low degree are enough, and f does not
exceed one.

``h = N / D``, ``N = x P(x**2)``, ``D = Q(x**2)`` gives ``f = 2 N D / (D**2 + N**2)``, with a single
division. ``P`` and ``Q`` are the minimax ones from ``scripts/fit_vector_math.py``; all coefficients are
positive, so that no term cancels another. Beyond the interval where float32 has not yet rounded f to one, x
is clamped.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Expr

from .ops import at_least, at_most, fma, horner, let

_TANH_LIMIT = 9.011
_TANH_P = (0.45860615372657776, 0.013656300492584705, 5.243797568255104e-05)
_TANH_Q = (0.9172123074531555, 0.1037469282746315, 0.001107050571590662, 1.12898101178871e-06)

_ERF_LIMIT = 3.84
_ERF_P = (0.4736696481704712, 0.1219732016324997, 0.013312901370227337, 0.0010294801322743297)
_ERF_Q = (
    0.8395575881004333,
    0.22880566120147705,
    0.04018321633338928,
    0.004924656357616186,
    8.00409252406098e-05,
)
#: Common factor of P and Q: keeps ``x P`` out of the denormals, so that a denormal x is rounded only once.
_SCALE = 2.0**24


def _saturating(x: Expr, limit: float, p: Sequence[float], q: Sequence[float]) -> Expr:
    def ratio(x: Expr, t: Expr) -> Expr:
        return let(
            x * horner(t, [_SCALE * c for c in p]),
            lambda n: let(horner(t, [_SCALE * c for c in q]), lambda d: (n + n) * d / fma(n, n, d * d)),
        )

    return let(
        x, lambda x: let(at_most(at_least(x, -limit), limit), lambda x: let(x * x, lambda t: ratio(x, t)))
    )


def tanh(x: Expr) -> Expr:
    """Hyperbolic tangent of a float32 scalar or vector; source: see the module."""
    return _saturating(x, _TANH_LIMIT, _TANH_P, _TANH_Q)


def erf(x: Expr) -> Expr:
    """Error function of a float32 scalar or vector; source: see the module."""
    return _saturating(x, _ERF_LIMIT, _ERF_P, _ERF_Q)
