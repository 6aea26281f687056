# SPDX-License-Identifier: Apache-2.0
"""Lower bounds of polynomials in whole numbers of which ranges are known."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from .symbolic_shapes import Range

#: A product of names, each as often as its power.
Monomial = tuple[str, ...]
#: More names than this are looked at at their least values alone, not at both ends of their ranges.
MOST_ENDS = 4


def lower_bound(terms: Iterable[tuple[Monomial, int]], ranges: Mapping[str, Range]) -> int | None:
    """A number that a polynomial is never less than; None where none is found.

    Each name is written as its least value and more, or as its greatest and less. Where all factors of what
    is left are positive, the rest is a bound: ``n*m - n`` with n and m from 2 is ``2 + 2*s + t + s*t``.
    """
    given = list(terms)
    names = sorted({name for monomial, _ in given for name in monomial})
    both = len(names) <= MOST_ENDS
    ends = [(False, True) if both and ranges[name][1] is not None else (False,) for name in names]
    found: list[int] = []
    for chosen in itertools.product(*ends):
        moved = _moved(given, dict(zip(names, chosen, strict=True)), ranges)
        bound = moved.pop((), 0)
        if all(factor >= 0 for factor in moved.values()):
            found.append(bound)
    return max(found, default=None)


def _moved(
    terms: Iterable[tuple[Monomial, int]], at_greatest: Mapping[str, bool], ranges: Mapping[str, Range]
) -> dict[Monomial, int]:
    """The polynomial in how far names are from their ends, which is never negative."""
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        product: dict[Monomial, int] = {(): factor}
        for name in monomial:
            least, greatest = ranges[name]
            end, sign = (greatest, -1) if at_greatest[name] else (least, 1)
            assert end is not None
            step: dict[Monomial, int] = {}
            for known, number in product.items():
                step[known] = step.get(known, 0) + number * end
                longer = tuple(sorted((*known, name)))
                step[longer] = step.get(longer, 0) + number * sign
            product = step
        for known, number in product.items():
            total[known] = total.get(known, 0) + number
    return total
