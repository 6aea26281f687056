# SPDX-License-Identifier: Apache-2.0
"""How many elements, as an expression of a graph's sizes: sums over units and loops in closed form.

A tile of ``T`` rows of which those before ``n - T*pid`` hold data has ``clamp(n - T*pid, 0, T)`` of them.
Over ``E`` units that adds up to ``clamp(n, 0, T*E)``, which is ``n`` where there are enough units. Each
variable goes by one step of this rule; what it does not reach has no expression here, and is told at numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from ..errors import IGraphError
from ..igraph.affine import Affine, affine, var
from ..igraph.nodes import IGraph
from ..igraph.space import Space
from ..verify.region import PID, Axis, Region


@attrs.frozen(eq=False)
class SizedDomain:
    """The units and sizes of a graph.

    Parameters
    ----------
    units : Affine
        How many there are, in terms of sizes.
    space : Space
        What is known of the sizes.
    """

    units: Affine
    space: Space

    @staticmethod
    def of(graph: IGraph) -> SizedDomain:
        """That of a graph."""
        return SizedDomain(graph.parallel, Space({str(size.name): size for size in graph.sizes}))

    def elements(self, region: Region) -> Affine | None:
        """How often an element is touched through a region, over units and iterations; None: not known."""
        return self.volume((region.rows, region.cols), region.extents, region.every)

    def volume(self, axes: Sequence[Axis], extents: Mapping[str, int], every: int = 1) -> Affine | None:
        """The sum over units and loops of the product of the axes' lengths; None: not known.

        Parameters
        ----------
        axes : sequence of Axis
        extents : mapping of str to int
            Of every loop; ``pid`` too, of which the number here is the greatest.
        every : int
            Only units with ``pid % every == 0`` count.
        """
        try:
            return self._volume(axes, extents, every)
        except IGraphError:  # a product of two quotients, or numbers beyond 64 bits
            return None

    def _volume(self, axes: Sequence[Axis], extents: Mapping[str, int], every: int) -> Affine | None:
        left: dict[str, Affine] = {name: affine(count) for name, count in extents.items()}
        left[PID] = self.units
        found = affine(1)
        for axis in sorted(axes, key=lambda axis: axis.extent > 1):
            if every == 1 and self._holds_units(axis, left):
                continue
            length = self._length(axis, left, every)
            if length is None:
                return None
            found = found * length
        if PID in left and every > 1:
            if not self.space.is_multiple(left[PID], every):
                return None
            left[PID] = left[PID] // every
        for count in left.values():
            found = found * count
        return self._tidied(found)

    def _tidied(self, value: Affine) -> Affine:
        """The same without quotients that leave nothing: of sizes that are multiples of a number."""
        found = affine(int(value.constant))
        for term in value.terms:
            whole = term.kind == "floordiv" and term.coeff % term.divisor == 0
            if whole and self.space.is_multiple(term.argument, int(term.divisor)):
                found = found + term.argument * (int(term.coeff) // int(term.divisor))
            else:
                found = found + term.expr
        return found

    def _holds_units(self, axis: Axis, left: dict[str, Affine]) -> bool:
        """Whether an axis of one position says how many values of a variable take part, which are left."""
        if axis.extent != 1 or axis.lower or len(axis.upper) != 1:
            return False
        (bound,) = axis.upper
        for name in set(bound.variables()) & set(left):
            some = bound.without({name})
            rest = set(some.variables()) & set(left)
            if bound.is_linear_in(name) and bound.coefficient(name) == -1 and not rest:
                if not self._within(some, left[name]):
                    return False
                left[name] = some
                return True
        return False

    def _length(self, axis: Axis, left: dict[str, Affine], every: int) -> Affine | None:
        """The lengths of an axis, summed over its variables, which are `left` no more."""
        tile = affine(axis.extent)
        if any(not self._never_above(bound, affine(0), left) for bound in axis.lower):
            return None
        upper = [bound for bound in axis.upper if not self._never_above(tile, bound, left)]
        if not upper:
            return tile
        if len(upper) > 1:
            return None
        (bound,) = upper
        if any(name not in left and name not in self.space.variables for name in bound.variables()):
            return None  # another axis has the variable too: the sum of the product is no product of sums
        for name in sorted(set(bound.variables()) & set(left), key=lambda name: -bound.coefficient(name)):
            step = -bound.coefficient(name)
            if (name == PID and every > 1) or not bound.is_linear_in(name) or affine(step) != tile:
                return None
            tile = tile * left.pop(name)
            bound = bound.without({name})
        return bound if self._within(bound, tile) else None

    def _within(self, value: Affine, most: Affine) -> bool:
        """Whether it is proved that ``0 <= value <= most`` at all sizes."""
        return self._at_least_zero(value) and self._at_least_zero(most - value)

    def _never_above(self, value: Affine, other: Affine, left: Mapping[str, Affine]) -> bool:
        """Whether it is proved that one expression never exceeds another, for all units and iterations."""
        if set((value - other).variables()) & set(left):
            return False
        return self._at_least_zero(other - value)

    def _at_least_zero(self, value: Affine) -> bool:
        if set(value.variables()) - set(self.space.variables):
            return False
        if not value.is_affine:  # products of sizes: sums of such alone
            sizes_positive = all(self.space.range(var(name))[0] >= 0 for name in value.variables())
            return sizes_positive and all(
                part >= 0 for part in (value.constant, *(t.coeff for t in value.terms))
            )
        if self.space.range(value)[0] >= 0:
            return True
        # a whole number is at least 0 where so many of it are more than that many below
        times = math.lcm(
            *(t.divisor // math.gcd(t.divisor, t.coeff) for t in value.terms if t.kind == "floordiv")
        )
        return self.space.range(_in_remainders(value * times))[0] > -times


def _in_remainders(value: Affine) -> Affine:
    """The same with ``k * (e / k)`` as ``e - e % k``: what is above a multiple is then bounded."""
    found = affine(int(value.constant))
    for term in value.terms:
        if term.kind == "floordiv" and term.coeff % term.divisor == 0:
            inner = term.argument
            found = found + (inner - inner % int(term.divisor)) * (int(term.coeff) // int(term.divisor))
        else:
            found = found + term.expr
    return found
