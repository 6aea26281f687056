# SPDX-License-Identifier: Apache-2.0
"""Whether instances of two accesses meet in an element: exactly, with the point that shows it.

The question has three answers of rising cost: intervals of the addresses that do not overlap; a join of
the elements that both sides touch, listed with NumPy; a sample of isl's set of pairs of instances.  The
join comes first where it is small, and again, with a higher limit, where isl gives up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import attrs
import islpy
import numpy as np

from ..igraph import points
from . import isl
from .decide import Decision, TooMany, decide
from .happens_before import Pairing
from .region import PID, Region
from .sized_launch import SizedLaunch

#: Points of both sides, and pairs of them, up to which the join comes before isl: a few milliseconds.
FEW_POINTS = 1 << 14
FEW_PAIRS = 1 << 18
#: Pairs after which the join is given up, and pairs looked at in one go.
MAX_PAIRS = 50_000_000
CHUNK = 1 << 20


@attrs.frozen
class Units:
    """Pairs of units u (first side) and v (second side).

    Attributes
    ----------
    joined, apart : tuple of int
        Sizes s for which ``u // s`` and ``v // s`` are equal, and for which they differ.
    same : bool
        Whether u and v are one unit; otherwise they are two.
    """

    joined: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()
    same: bool = False


@attrs.frozen
class Meeting:
    """One element with an instance of each side that touches it: values of pid and the loops in use."""

    element: int
    first: dict[str, int]
    second: dict[str, int]


def meet(first: Region, second: Region, pairing: Pairing, units: Units) -> Decision[Meeting]:
    """Some pair of instances that touches one element.

    Parameters
    ----------
    first, second : Region
        Of one pointer.
    pairing : Pairing
        Which instances go together.
    units : Units
        Which units do.

    Returns
    -------
    Decision[Meeting]
    """
    return decide(_Question(first, second, pairing, units), FEW_POINTS)


def span(region: Region) -> tuple[int, int]:
    """The least and the greatest address of a region or beyond."""
    low, high = region.space.range(region.offset)
    for axis in (region.rows, region.cols):
        reach = (axis.extent - 1) * axis.stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def _spans(region: Region) -> list[tuple[int, int]]:
    """The least and the greatest index of each dimension, or beyond; of the address where that is all."""
    if region.coordinates is None:
        return []
    return [span(region.along(k)) for k in range(len(region.coordinates))]


@attrs.frozen(eq=False)
class _Side:
    """One region with the variables that matter and the values that are fixed."""

    region: Region
    fixed: dict[str, int]

    @property
    def variables(self) -> list[str]:
        return [PID, *(v for v in self.region.used if v != PID)]

    @property
    def num_points(self) -> int:
        per_env = self.region.rows.extent * self.region.cols.extent
        return per_env * math.prod(self.region.extents[v] for v in self.variables if v not in self.fixed)

    def points(self) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Chunks of (values of the variables, address), a point of the region each."""
        region = self.region
        chunk = max(CHUNK // (region.rows.extent * region.cols.extent), 1)
        for env in points.chunks(self.variables, region.extents, chunk, self.fixed):
            address, valid = region.places(env)
            at = np.nonzero(valid)[0]
            yield {name: values[at] for name, values in env.items()}, address[valid]


class _Question:
    def __init__(self, first: Region, second: Region, pairing: Pairing, units: Units) -> None:
        self.pairing, self.units = pairing, units
        fixed = dict(pairing.first_at), dict(pairing.second_at)
        self.first = _Side(first, {v: x for v, x in fixed[0].items() if v in first.used})
        self.second = _Side(second, {v: x for v, x in fixed[1].items() if v in second.used})
        both = set(first.used) & set(second.used) - {PID}
        self.equal = [v for v in pairing.equal if v in both]
        self.carried = pairing.carried

    @property
    def launch(self) -> SizedLaunch:
        return self.first.region.launch

    @property
    def num_points(self) -> int:
        return self.first.num_points + self.second.num_points

    def excluded(self) -> bool:
        a, b = _spans(self.first.region), _spans(self.second.region)
        once = self.carried is not None and self.first.region.extents[self.carried] < 2
        return once or any(x[1] < y[0] or y[1] < x[0] for x, y in zip(a, b, strict=False))

    # -- the join ---------------------------------------------------------------------------------

    def by_points(self, few: bool) -> Meeting | None:
        """Lists the points of both sides and joins them on the address and the loops that are equal."""
        a, b = self._table(self.first), self._table(self.second)
        b_order = np.argsort(b["key"], kind="stable")
        b = {name: column[b_order] for name, column in b.items()}
        low = np.searchsorted(b["key"], a["key"], side="left")
        count = np.searchsorted(b["key"], a["key"], side="right") - low
        kept = np.flatnonzero(count)
        low, count = low[kept], count[kept]
        if int(count.sum()) > (FEW_PAIRS if few else MAX_PAIRS):
            raise TooMany
        ends = np.cumsum(count)
        start = 0
        while start < len(kept):
            before = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, before + CHUNK, side="right")), start + 1)
            rows = np.repeat(np.arange(start, stop), count[start:stop])
            x = kept[rows]
            y = np.arange(len(rows)) - (ends[rows] - count[rows] - before) + low[rows]
            found = np.flatnonzero(self._related(a, b, x, y))
            if len(found):
                at_x, at_y = int(x[found[0]]), int(y[found[0]])
                return Meeting(int(a["address"][at_x]), _row(a, at_x), _row(b, at_y))
            start = stop
        return None

    def _table(self, side: _Side) -> dict[str, np.ndarray]:
        """Columns key, address, and the variables by name, one row for each that can make a difference."""
        scale = math.prod(side.region.extents[v] for v in self.equal)
        low, high = span(side.region)
        if max(abs(low), abs(high)) * scale >= 1 << 62:
            raise TooMany
        chunks = []
        for env, address in side.points():
            key = address.copy()
            for v in self.equal:
                key = key * side.region.extents[v] + env[v]
            columns = {"key": key, "address": address, **{f"={v}": x for v, x in env.items()}}
            chunks.append(self._distinct(columns))
        return {name: np.concatenate([c[name] for c in chunks]) for name in chunks[0]}

    def _distinct(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = ["key", f"={PID}"]
        if f"={self.carried}" in columns:
            names.append(f"={self.carried}")
        order = np.lexsort([columns[n] for n in reversed(names)])
        if not len(order):
            return columns
        ordered = np.stack([columns[n][order] for n in names])
        new = np.concatenate([[True], (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)])
        return {n: c[order[new]] for n, c in columns.items()}

    def _related(
        self, a: dict[str, np.ndarray], b: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        u, v = a[f"={PID}"][x], b[f"={PID}"][y]
        good = (u == v) if self.units.same else (u != v)
        for size in self.units.joined:
            good &= u // size == v // size
        for size in self.units.apart:
            good &= u // size != v // size
        if self.carried is not None:
            last = self.first.region.extents[self.carried] - 1
            name = f"={self.carried}"
            p = a[name][x] if name in a else None
            q = b[name][y] if name in b else None
            if p is not None and q is not None:
                good &= p < q
                if self.pairing.within is not None:
                    good &= q <= p + self.pairing.within
            elif p is not None:
                good &= p < last
            elif q is not None:
                good &= q > 0
        return good

    # -- isl --------------------------------------------------------------------------------------

    def counterexamples(self) -> list[Callable[[], islpy.Set]]:
        """As `decide.Question`."""
        return [self.all_of_them]

    def all_of_them(self) -> islpy.Set:
        """The pairs of instances."""
        ours, theirs = isl.IslNames(self.first.region, "x"), isl.IslNames(self.second.region, "y")
        clauses = [
            *self._clauses(self.first, ours),
            *self._clauses(self.second, theirs),
            *(f"{a} = {b}" for a, b in self._places(ours, theirs)),
            *self._unit_clauses(ours.of[PID], theirs.of[PID]),
            *(f"{ours.of[v]} = {theirs.of[v]}" for v in self.equal),
            *self._carried_clauses(ours, theirs),
        ]
        dims = [
            *(ours.of[v] for v in self.first.variables),
            *(theirs.of[v] for v in self.second.variables),
            *(ours.row, ours.col, theirs.row, theirs.col),
        ]
        inner = isl.quantified([*ours.inner, *theirs.inner])
        text = f"{isl.header(self.launch)}{{ [{', '.join(dims)}] : {inner}{' and '.join(clauses)} }}"
        return isl.read_set(text)

    def _places(self, ours: isl.IslNames, theirs: isl.IslNames) -> Iterator[tuple[str, str]]:
        """The numbers that are equal where both are in one element."""
        both = isl.place(self.first.region, ours), isl.place(self.second.region, theirs)
        return zip(*both, strict=True)

    def at(self, sizes: Mapping[str, int]) -> _Question:
        """The same at given sizes."""
        return _Question(self.first.region.at(sizes), self.second.region.at(sizes), self.pairing, self.units)

    def by_isl(self) -> Meeting | None:
        """A sample of the set of pairs of instances."""
        point = isl.sample(self.all_of_them())
        if point is None:
            return None
        n, m = len(self.first.variables), len(self.second.variables)
        x = dict(zip(self.first.variables, point[:n], strict=True))
        y = dict(zip(self.second.variables, point[n : n + m], strict=True))
        row, col = point[n + m : n + m + 2]
        region = self.first.region
        base = region.offset.evaluate(x)
        return Meeting(base + row * region.rows.stride + col * region.cols.stride, x, y)

    def _clauses(self, side: _Side, names: isl.IslNames) -> list[str]:
        return [
            *isl.constraints(side.region, names, side.variables),
            *(f"{names.of[v]} = {value}" for v, value in side.fixed.items()),
        ]

    def _unit_clauses(self, u: str, v: str) -> list[str]:
        def sets(size: int) -> tuple[str, str]:
            return f"floor({u}/{size})", f"floor({v}/{size})"

        joined = [" = ".join(sets(s)) for s in self.units.joined]
        apart = ["({0} < {1} or {0} > {1})".format(*sets(s)) for s in self.units.apart]
        differ = [] if apart else [f"({u} < {v} or {u} > {v})"]
        return [*joined, *apart, *([f"{u} = {v}"] if self.units.same else differ)]

    def _carried_clauses(self, ours: isl.IslNames, theirs: isl.IslNames) -> list[str]:
        v = self.carried
        if v is None:
            return []
        p = ours.of[v] if v in self.first.variables else None
        q = theirs.of[v] if v in self.second.variables else None
        if p and q:
            within = self.pairing.within
            return [f"{p} < {q}" if within is None else f"{p} < {q} <= {p} + {within}"]
        return [f"{p} < {self.first.region.extents[v] - 1}"] if p else [f"{q} > 0"] if q else []


def _row(table: dict[str, np.ndarray], at: int) -> dict[str, int]:
    return {name[1:]: int(column[at]) for name, column in table.items() if name.startswith("=")}
