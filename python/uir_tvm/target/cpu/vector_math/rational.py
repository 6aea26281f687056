# SPDX-License-Identifier: Apache-2.0
"""tanh and erf: odd functions that saturate at one.

Both are ``x P(x**2) / Q(x**2)`` on the interval where float32 has not yet rounded them to one, with the minimax ``P``
and ``Q`` from ``scripts/fit_vector_math.py``; beyond it x is clamped. All coefficients are positive, so no term
cancels another, and the quotient is formed before x is multiplied in, so that denormals and signed zeros come out
right.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.tirx import PrimExpr

from .ops import at_least, at_most, horner, let

_TANH_LIMIT = 9.01
_TANH_P = (1.0, 0.13382689654827118, 0.0034974918235093355, 2.0637809939216822e-05, 1.3389720443512942e-08)
_TANH_Q = (1.0, 0.46716010570526123, 0.02588440664112568, 0.0003288633597549051, 7.79191339006502e-07)

_ERF_LIMIT = 3.92
_ERF_P = (
    1.1283791065216064,
    0.20612454414367676,
    0.054599519819021225,
    0.0043717012740671635,
    0.000286802533082664,
    1.7798440694605233e-06,
)
_ERF_Q = (
    1.0,
    0.5160048007965088,
    0.12039744108915329,
    0.016199639067053795,
    0.0012871973449364305,
    3.538213422871195e-05,
)


def _odd_rational(x: PrimExpr, limit: float, p: Sequence[float], q: Sequence[float]) -> PrimExpr:
    return let(
        at_most(at_least(x, -limit), limit),
        lambda x: let(x * x, lambda t: x * (horner(t, p) / horner(t, q))),
    )


def tanh(x: PrimExpr) -> PrimExpr:
    """Hyperbolic tangent of a float32 scalar or vector; source: see the module."""
    return let(x, lambda x: _odd_rational(x, _TANH_LIMIT, _TANH_P, _TANH_Q))


def erf(x: PrimExpr) -> PrimExpr:
    """Error function of a float32 scalar or vector; source: see the module."""
    return let(x, lambda x: _odd_rational(x, _ERF_LIMIT, _ERF_P, _ERF_Q))
