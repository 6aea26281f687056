# SPDX-License-Identifier: Apache-2.0
"""tanh and erf: odd functions that saturate at one.

A rational function straight to such a function leaves the rounding of both its polynomials in the result.
Here the rational function is ``h``, ``|h| <= 1``, with ``f = 2 h / (1 + h**2)`` (for tanh that is ``h(x) =
tanh(x / 2)``; for erf the same equation defines it). A relative error d of h is one of ``d (1 - h**2) / (1
+ h**2)`` in f, next to nothing where f is near one: polynomials of low degree are enough, and f does not
exceed one.

``h = N / D``, ``N = x P(x**2)``, ``D = Q(x**2)`` gives ``f = 2 N D / (D**2 + N**2)``, with a single
division. ``P`` and ``Q`` are the minimax ones from ``scripts/fit_vector_math.py``; all coefficients but
one small one are positive, so that hardly a term cancels another. Beyond the interval where float32 has not
yet rounded f to one, x is clamped.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Expr

from .ops import at_least, at_most, fma, horner, let

#: Limits: points beyond the interval of the fit, or at its end, where the computed value is one exactly.
_TANH_LIMIT = 9.011
_TANH_P = (0.46123170852661133, 0.0137344840914011, 5.2737774240085855e-05)
_TANH_Q = (0.9224634170532227, 0.10434088855981827, 0.0011133874068036675, 1.1354067055435735e-06)

_ERF_LIMIT = 4.0
_ERF_P = (
    0.49376875162124634,
    0.08811889588832855,
    0.010272825136780739,
    0.0005166563205420971,
    -2.495304670446785e-06,
)
_ERF_Q = (
    0.8751823306083679,
    0.16933535039424896,
    0.034461092203855515,
    0.002948824083432555,
    2.2404918126994744e-05,
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
