# SPDX-License-Identifier: Apache-2.0
"""How many elements: exact sums over pid and loops of what valid boxes hold, in bounded time.

The size of a box is a product of lengths, each a function of pid and loop variables.  Lengths that share no
variable are independent, so the sum of the product is the product of their sums; what is left is summed by
evaluation at every value of the variables that it depends on, which are few: a box without bounds depends on
none.  Above `LIMIT` values the answer is an upper bound, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..igraph.affine import Affine
from ..igraph.points import chunks
from ..verify.region import PID, Axis, Region
from ..verify.tiling import tiling_of

#: Values of variables (or addresses) looked at for one answer: a second or so of NumPy.
LIMIT = 1 << 24
#: Values looked at together.
CHUNK = 1 << 18


@attrs.frozen
class Count:
    """A number of elements or operations.

    Parameters
    ----------
    value : int
    exact : bool
        False: it is no more than that.
    """

    value: int
    exact: bool = True

    def __add__(self, other: Count) -> Count:
        return Count(self.value + other.value, self.exact and other.exact)

    def times(self, factor: int) -> Count:
        """So many of them."""
        return Count(self.value * factor, self.exact)

    def at_most(self) -> Count:
        """The same number as an upper bound."""
        return Count(self.value, False)


NONE = Count(0)


def total(counts: Iterable[Count]) -> Count:
    """The sum."""
    return sum(counts, NONE)


@attrs.frozen(eq=False)
class _Factor:
    """One factor of the product: the length of an axis, whether it has any, or whether a unit takes part."""

    variables: frozenset[str]
    lower: tuple[Affine, ...]
    upper: tuple[Affine, ...]
    extent: int
    indicator: bool = False
    every: int = 1

    def values(self, env: Mapping[str, np.ndarray]) -> np.ndarray:
        """The factor at each point."""
        if self.every > 1:
            return (env[PID] % self.every == 0).astype(np.int64)
        low, high = np.int64(0), np.int64(self.extent)
        for bound in self.lower:
            low = np.maximum(low, bound.values(env))
        for bound in self.upper:
            high = np.minimum(high, bound.values(env))
        length = np.maximum(high - low, 0)
        return np.asarray(length > 0 if self.indicator else length, np.int64)


def _factor(axis: Axis, indicator: bool = False) -> _Factor:
    lower, upper = axis.lower, axis.upper
    variables = frozenset(name for e in (*lower, *upper) for name in e.variables())
    return _Factor(variables, lower, upper, axis.extent, indicator)


def volume(
    axes: Sequence[Axis], extents: Mapping[str, int], *, every: int = 1, where: Sequence[Axis] = ()
) -> Count:
    """The sum over pid and loops of the product of the axes' lengths.

    Parameters
    ----------
    axes : sequence of Axis
    extents : mapping of str to int
        Every variable of the domain, ``pid`` among them, and how many values it has.
    every : int
        Only units with ``pid % every == 0`` count.
    where : sequence of Axis
        Points where one of these is empty do not count.
    """
    factors = [_factor(axis) for axis in axes] + [_factor(axis, indicator=True) for axis in where]
    if every > 1:
        factors.append(_Factor(frozenset({PID}), (), (), 1, every=every))
    value, exact = 1, True
    free = set(extents)
    for variables, members in _independent(factors):
        free -= variables
        part = _sum(members, sorted(variables, key=list(extents).index), extents)
        value, exact = value * part.value, exact and part.exact
    value *= math.prod(extents[v] for v in free)
    return Count(value, exact or value == 0)


def _independent(factors: Iterable[_Factor]) -> Iterator[tuple[frozenset[str], list[_Factor]]]:
    """Factors grouped so that groups share no variable."""
    groups: list[tuple[frozenset[str], list[_Factor]]] = []
    for factor in factors:
        variables, members = factor.variables, [factor]
        apart = []
        for known, others in groups:
            if known & variables:
                variables, members = variables | known, members + others
            else:
                apart.append((known, others))
        groups = [*apart, (variables, members)]
    yield from groups


def _sum(factors: Sequence[_Factor], variables: Sequence[str], extents: Mapping[str, int]) -> Count:
    points = math.prod(extents[v] for v in variables)
    if points > LIMIT:
        return Count(points * math.prod(1 if f.indicator else f.extent for f in factors), False)
    value = 0
    for env in chunks(variables, extents, CHUNK):
        product: Any = np.ones(len(next(iter(env.values()))) if env else 1, np.int64)
        for factor in factors:
            product = product * factor.values(env)
        value += int(product.sum())
    return Count(value)


def elements(region: Region, where: Region | None = None) -> Count:
    """How often an element is touched through a region, over all units and iterations.

    Parameters
    ----------
    region : Region
    where : Region, optional
        Only where this box is not empty.
    """
    axes = () if where is None else (where.rows, where.cols)
    return volume((region.rows, region.cols), region.extents, every=region.every, where=axes)


def distinct(regions: Iterable[Region], size: int) -> Count:
    """How many different addresses the regions reach together, of a pointer of ``size`` elements."""
    unique = {r.key: r for r in regions if r.rows.extent > 0 and r.cols.extent > 0}
    if not unique:
        return NONE
    for region in unique.values():
        known = _as_tiling(region)
        if known is not None and (known == size or len(unique) == 1):
            return Count(known)
    points = sum(region.num_points(region.used) for region in unique.values())
    if points > LIMIT or size > LIMIT:
        return Count(min(points, size), False)
    mark = np.zeros(size, np.bool_)
    for region in unique.values():
        _mark(region, mark)
    return Count(int(mark.sum()))


def _as_tiling(region: Region) -> int | None:
    """The number of addresses where the region is seen to reach each once; None where it is not."""
    # units that do the same as others add no address: only what the region depends on counts
    used = attrs.evolve(region, extents={v: region.extents[v] for v in region.used})
    tiling = tiling_of(used)
    return None if tiling is None else math.prod(extent for _, extent in tiling.digits)


def _mark(region: Region, mark: np.ndarray) -> None:
    chunk = max(CHUNK // max(region.rows.extent * region.cols.extent, 1), 1)
    for env in region.grids(region.used, chunk):
        address, valid = region.places(env)
        mark[address[valid]] = True
