# SPDX-License-Identifier: Apache-2.0
"""Conditions on sizes that a model leaves open, and what those say that are equations of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from .open_size import OpenSize, at
from .open_terms import terms_text


@attrs.frozen
class Condition:
    """What holds of ``size`` (``==``, ``!=`` or ``>=`` 0) wherever what was made with it is used."""

    size: OpenSize
    relation: str

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it does for a number of each symbol."""
        number = at(self.size, sizes)
        return {"==": number == 0, "!=": number != 0, ">=": number >= 0}[self.relation]

    def __str__(self) -> str:
        left = [(monomial, factor) for monomial, factor in self.size.terms if factor > 0]
        right = [(monomial, -factor) for monomial, factor in self.size.terms if factor < 0]
        return f"{terms_text(tuple(left))} {self.relation} {terms_text(tuple(right))}"


def is_equation(size: OpenSize, symbols: Iterable[str]) -> bool:
    """Whether that a size is 0 says that a symbol is another one, or a number of at least 1."""
    if len(size.terms) != 2:
        return False
    known = [(names, factor) for names, factor in size.terms if names]
    if any(len(names) != 1 or names[0] not in symbols or abs(factor) != 1 for names, factor in known):
        return False
    if len(known) == 1:
        return -size.constant * known[0][1] >= 1
    return known[0][1] == -known[1][1]


def settled(conditions: Iterable[Condition]) -> dict[str, str | int]:
    """What equations (`is_equation`) say symbols to be: another one, or a number."""
    leaders: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for each in conditions:
        if each.relation != "==":
            continue
        names = sorted({leaders.get(name, name) for (name,), _ in (t for t in each.size.terms if t[0])})
        for other in names[1:]:
            leaders = {name: names[0] if to == other else to for name, to in leaders.items()}
            leaders[other] = names[0]
        if each.size.constant:
            factor = next(factor for monomial, factor in each.size.terms if monomial)
            numbers[names[0]] = -each.size.constant * factor
    moved = {leaders.get(name, name): number for name, number in numbers.items()}
    return {name: moved.get(to, to) for name, to in leaders.items()} | moved
