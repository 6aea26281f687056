# SPDX-License-Identifier: Apache-2.0
"""sigmoid, ``1 / (1 + exp(-x))``.

With ``e = exp(-|x|)`` it is ``1 / (1 + e)`` for x >= 0 and ``e / (1 + e)`` below: nothing overflows, and
the negative tail keeps its relative accuracy down to the denormals.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr

from .exp import exp_of_negative
from .ops import const_like, let


def sigmoid(x: Expr) -> Expr:
    """Logistic function of a float32 scalar or vector; source: see the module."""

    def of(x: Expr) -> Expr:
        one = const_like(x, 1.0)
        return let(
            exp_of_negative(const_like(x, -1.0) * tirx.abs(x)),
            lambda e: tirx.Select(x < const_like(x, 0.0), e, one) / (e + one),
        )

    return let(x, of)
