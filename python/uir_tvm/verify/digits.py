# SPDX-License-Identifier: Apache-2.0
"""Variables as sums of digits: what quotients and remainders say of them becomes linear.

``700*(64*(pid / 11) + i) + 64*(pid % 11) + j`` with ``pid = 11*q + r`` is ``700*(64*q + i) + 64*r + j``.
isl takes seconds for the one with a size for the number of units, milliseconds for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from ..igraph.affine import Affine, Term, affine, var
from ..igraph.space import Size, Space


@attrs.frozen(eq=False)
class Digits:
    """How variables are sums of digits, and what quotients and remainders are left.

    Attributes
    ----------
    sums : mapping of str to Affine
        variable -> the sum of its digits, each with its radix.
    ranges : mapping of str to (int, int)
        digit -> its least and its greatest value.
    parts : mapping of (str, int) to (str, str)
        (expression, divisor) -> the digits that are its quotient and its remainder.
    equations : sequence of (Affine, Affine)
        What says so: an expression, and the sum of its two digits.
    space : Space
        What is known of the digits, of the other variables and of sizes.
    """

    sums: Mapping[str, Affine]
    ranges: dict[str, tuple[int, int]]
    parts: dict[tuple[str, int], tuple[str, str]]
    equations: list[tuple[Affine, Affine]]
    space: Space

    @staticmethod
    def of(values: Sequence[Affine], extents: Mapping[str, int], space: Space) -> Digits:
        """The digits for some expressions."""
        sums, ranges = _sums(values, extents)
        found = Digits(sums, ranges, {}, [], Space(space.variables))
        for name, (_, high) in ranges.items():
            found.space.bind(name, high + 1)
        for value in values:
            found._linear(found.within(value), set(extents) | set(ranges))
        return found

    def within(self, value: Affine) -> Affine:
        """An expression in digits."""
        if not self.ranges or (value.is_linear and not self.sums):
            return value
        return self._linear(value.substitute(self.sums), set())

    def _linear(self, value: Affine, cut: set[str]) -> Affine:
        """An expression with digits for its quotients and remainders, new ones for those of ``cut``."""
        if value.is_linear:
            return value
        out = affine(value.constant)
        for term in value.terms:
            if term.kind == "var":
                out = out + term.expr
                continue
            inner, by = self._linear(term.argument, cut), int(term.divisor)
            is_quotient = term.kind == "floordiv"
            simple = self.space.floordiv(inner, by) if is_quotient else self.space.mod(inner, by)
            left = [t for t in simple.terms if t.kind == str(term.kind)]
            if len(left) == 1 and not left[0].argument.is_linear:
                left = []  # a quotient of a quotient
            if len(left) == 1 and (pair := self._parts_of(left[0], cut)) is not None:
                simple = simple - left[0].expr + var(pair[0 if is_quotient else 1]) * int(left[0].coeff)
            out = out + simple * int(term.coeff)
        return out

    def _parts_of(self, term: Term, cut: set[str]) -> tuple[str, str] | None:
        """The digits of the expression that a term divides; None where it has none."""
        inner, by = term.argument, int(term.divisor)
        key = (str(inner), by)
        if key not in self.parts and cut & set(inner.variables()):
            low, high = self.space.range(inner)
            pair = f"quotient {len(self.parts)}", f"remainder {len(self.parts)}"
            for name, ends in zip(pair, ((low // by, high // by), (0, by - 1)), strict=True):
                self.ranges[name] = ends
                self.space.bind(name, Size(name, *ends))
            self.parts[key] = pair
            self.equations.append((inner, var(pair[0]) * by + var(pair[1])))
            cut |= set(pair)
        return self.parts.get(key)


def _sums(
    values: Sequence[Affine], extents: Mapping[str, int]
) -> tuple[dict[str, Affine], dict[str, tuple[int, int]]]:
    """The digits that quotients and remainders cut variables into: none of a variable that is not cut,
    or not by radices of which each divides the next.
    """
    cuts: dict[str, set[int]] = {}
    for value in values:
        for name, radix in _cuts(value):
            cuts.setdefault(name, set()).add(radix)
    sums: dict[str, Affine] = {}
    ranges: dict[str, tuple[int, int]] = {}
    for name, found in cuts.items():
        radices = sorted(r for r in found if name in extents and 1 < r < extents[name])
        if not radices or any(high % low for low, high in zip(radices, radices[1:], strict=False)):
            continue
        total = affine(0)
        ends = [*radices, -(-extents[name] // radices[-1]) * radices[-1]]
        for k, (low, high) in enumerate(zip([1, *radices], ends, strict=True)):
            ranges[f"{name}.{k}"] = (0, high // low - 1)
            total = total + var(f"{name}.{k}") * low
        sums[name] = total
    return sums, ranges


def _cuts(value: Affine) -> Iterator[tuple[str, int]]:
    for term in value.terms:
        if term.kind != "var":
            yield from _cuts(term.argument)
            window = _window(term)
            if window is not None:
                name, low, high = window
                yield from ((name, radix) for radix in (low, high) if radix is not None)


def _window(term: Term) -> tuple[str, int, int | None] | None:
    """(v, low, high) of ``v``, ``v // low``, ``v % high`` or ``(v // low) % (high / low)``."""
    if term.kind == "var":
        return str(term.var), 1, None
    inner, divisor = term.argument, int(term.divisor)
    if inner.constant or len(inner.terms) != 1 or inner.terms[0].coeff != 1:
        return None
    window = _window(inner.terms[0])
    if window is None:
        return None
    name, low, high = window
    return (name, low, low * divisor) if term.kind == "mod" else (name, low * divisor, high)
