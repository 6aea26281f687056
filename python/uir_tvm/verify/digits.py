# SPDX-License-Identifier: Apache-2.0
"""Variables as sums of digits: what quotients and remainders say of them becomes linear.

``700*(64*(pid / 11) + i) + 64*(pid % 11) + j`` with ``pid = 11*q + r`` is ``700*(64*q + i) + 64*r + j``.  isl takes
seconds for the one with a size for the number of units, milliseconds for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from ..igraph.affine import Affine, Term, affine, var
from ..igraph.space import Space


@attrs.frozen(eq=False)
class Digits:
    """How some variables are sums of digits.

    Attributes
    ----------
    sums : mapping of str to Affine
        variable -> the sum of its digits, each with its radix.
    extents : mapping of str to int
        digit -> how many values it has.
    space : Space
        What is known of the digits, of the other variables and of sizes.
    """

    sums: Mapping[str, Affine]
    extents: Mapping[str, int]
    space: Space

    @staticmethod
    def of(values: Sequence[Affine], extents: Mapping[str, int], space: Space) -> Digits:
        """The digits that quotients and remainders in some expressions cut; none of a variable that is not cut, or
        not by radices of which each divides the next."""
        cuts: dict[str, set[int]] = {}
        for value in values:
            for name, radix in _cuts(value):
                cuts.setdefault(name, set()).add(radix)
        sums, digits = {}, {}
        for name, found in cuts.items():
            radices = sorted(r for r in found if name in extents and 1 < r < extents[name])
            if not radices or any(high % low for low, high in zip(radices, radices[1:], strict=False)):
                continue
            total = affine(0)
            ends = [*radices, -(-extents[name] // radices[-1]) * radices[-1]]
            for k, (low, high) in enumerate(zip([1, *radices], ends, strict=True)):
                digits[f"{name}.{k}"] = high // low
                total = total + var(f"{name}.{k}") * low
            sums[name] = total
        return Digits(sums, digits, Space({**space.variables, **digits}) if digits else space)

    def within(self, value: Affine) -> Affine:
        """An expression in digits."""
        return self._simple(value.substitute(self.sums)) if self.sums else value

    def _simple(self, value: Affine) -> Affine:
        if value.is_linear:
            return value
        out = affine(value.constant)
        for term in value.terms:
            if term.kind == "var":
                out = out + term.expr
            else:
                inner = self._simple(term.argument)
                divided = self.space.floordiv if term.kind == "floordiv" else self.space.mod
                out = out + divided(inner, int(term.divisor)) * int(term.coeff)
        return out


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
