# SPDX-License-Identifier: Apache-2.0
"""Ranges of expressions in which sizes, and units up to a number that sizes decide, cancel."""

from __future__ import annotations

from ..igraph.affine import Affine, affine
from ..igraph.space import Space
from .sized_launch import PID, SizedLaunch


def range_at_launch(value: Affine, space: Space, launch: SizedLaunch) -> tuple[int, int]:
    """The least and the greatest value, or beyond, for all sizes at once.

    What grows with pid is greatest at the last unit, ``8*pid + 7 - 8*n`` of n units at ``pid = n - 1``; and
    quotients are taken apart, ``4*((n + 3) / 4) - n`` is ``3 - (n + 3) % 4``.
    """
    low, high = _tightest(value, space)
    step = value.coefficient(PID)
    if launch.pid_end is not None and step and value.is_linear_in(PID):
        last = _tightest(value.substitute({PID: launch.pid_end - 1}), space)
        first = _tightest(value.substitute({PID: 0}), space)
        if step > 0:
            low, high = max(low, first[0]), min(high, last[1])
        else:
            low, high = max(low, last[0]), min(high, first[1])
    return low, high


def _tightest(value: Affine, space: Space) -> tuple[int, int]:
    forms = [value] if value.is_linear else [space.fold(value), apart(value)]
    ranges = [space.range(form) for form in forms]
    return max(low for low, _ in ranges), min(high for _, high in ranges)


def apart(value: Affine) -> Affine:
    """The same with ``c*k*floor(e / k)`` as ``c*(e - e % k)``."""
    out = affine(value.constant)
    for term in value.terms:
        if term.kind == "floordiv" and term.coeff % term.divisor == 0:
            inner = apart(term.argument)
            out = out + (inner - inner % int(term.divisor)) * (int(term.coeff) // int(term.divisor))
        else:
            out = out + term.expr
    return out
