# SPDX-License-Identifier: Apache-2.0
"""Several conditions as one expression: at least 1 where all of some expressions are, else at most 0.

A bound of a slice is one expression.  Where a box is empty unless ``m > i`` and ``n > j``, it is a multiple
of ``(-i + m - 1) / 24 + (-j + n - 1) / 24 + 1``: each quotient is 0 where its condition holds, else -1, as
long as ``m - i`` and ``n - j`` stay within -23..24.
"""

from __future__ import annotations

from collections.abc import Sequence

from .affine import Affine, affine
from .space import Space


def all_positive(exprs: Sequence[Affine], space: Space) -> Affine:
    """An expression that is 1 where all of some are positive, else at most 0."""
    total = affine(1)
    for expr in exprs:
        low, high = space.range(expr)
        total = total + (expr - 1) // max(high, 1 - low, 2)
    return total


def parts_of(expr: Affine, space: Space) -> list[Affine]:
    """What is all positive exactly where an expression is: several where its quotients tell, else itself."""
    quotients = [term for term in expr.terms if term.kind == "floordiv" and term.coeff == 1]
    if len(quotients) < max(2, len(expr.terms)):
        return [expr]
    most = [space.range(term.expr)[1] for term in quotients]
    if expr.constant + sum(most) != 1:
        return [expr]
    # positive only where every quotient is as great as it can be
    return [term.argument - int(term.divisor) * each + 1 for term, each in zip(quotients, most, strict=True)]
