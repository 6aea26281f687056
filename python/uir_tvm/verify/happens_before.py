# SPDX-License-Identifier: Apache-2.0
"""Happens-before on the loop tree: which instances of two accesses no barrier separates.

All units run one loop tree of constant extents, so the n-th instance of a barrier is the same event in
every unit, and the moment of an instance is a vector: the place in each body on the way down, interleaved
with the loop variables.  A *place* is the constant part of it, a tuple: node k of a body is ``2*k + 1``,
the gap before it ``2*k``, and an access ends with its phase within the iOp.  A group form has three
phases: 1 before its barrier, 2 the barrier of its set of units, 3 after it.

Between an instance of one access and a later one of another lies no barrier exactly if, along the loops
between them, nothing that is left to run holds one.  Which loops these are depends on the outermost
common loop in which the two instances differ (it *carries* the pair), and for each such case what remains
is a conjunction: some loops around the first are in their last iteration, some around the second in their
first, and the carrying loop goes on by exactly one where its body holds a barrier.  `pairings` lists these
conjunctions; together they are exact, there is no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

import attrs

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, Loop
from .access import Access, GraphFacts

#: A point of the loop tree, loop variables left out.
Place = tuple[int, ...]

#: The phase of the barrier within a group form, and of every sync.
BARRIER_PHASE = 2


@attrs.frozen
class Barrier:
    """A barrier at a place.

    Attributes
    ----------
    place : tuple of int
        An iOp's or a gap's.
    size : int
        Units u and v meet where ``u // size == v // size``.
    position : int, optional
        Of the iOp among those of the graph; None for a candidate that stands in a gap.
    """

    place: Place
    size: int
    position: int | None = None


@attrs.frozen
class Pairing:
    """Pairs of instances of two accesses, the first not later than the second.

    Attributes
    ----------
    equal : tuple of str
        Common loops that have the same value in both.
    carried : str, optional
        The common loop whose value is less in the first; those inside it are free.
    within : int, optional
        How much less it is at most (1: the iterations follow each other); None: any number.
    first_at, second_at : tuple of (loop variable, value)
        Loops around one of them that have this value.
    """

    equal: tuple[str, ...] = ()
    carried: str | None = None
    within: int | None = None
    first_at: tuple[tuple[str, int], ...] = ()
    second_at: tuple[tuple[str, int], ...] = ()


@attrs.frozen
class Relation:
    """Pairs of different units u and v, by the sizes of sets that they share.

    Attributes
    ----------
    joined : frozenset of int
        Sizes s for which ``u // s == v // s``.
    apart : frozenset of int
        Sizes for which it is not.
    """

    joined: frozenset[int]
    apart: frozenset[int]

    def conditions(self) -> tuple[list[int], list[int]]:
        """(joined, apart) without those that follow from others."""
        joined = [s for s in self.joined if not any(s % t == 0 for t in self.joined if t != s)]
        apart = [s for s in self.apart if not any(t % s == 0 for t in self.apart if t != s)]
        return sorted(joined), sorted(apart)


class Order:
    """Places and barriers of one program."""

    def __init__(self, facts: GraphFacts) -> None:
        self.facts = facts
        self.paths: list[Place] = list(_paths(facts.graph.body))
        #: (variable, extent) of the loops around every iOp, outermost first.
        self.loops = [[(str(n.var), int(n.extent)) for n in step.loops] for step in facts.steps]

    def place(self, access: Access) -> Place:
        """The place of an access."""
        return (*self.paths[access.position], access.phase)

    @cached_property
    def barriers(self) -> list[Barrier]:
        """Every barrier between units that the graph has, in program order."""
        out = []
        for step, path in zip(self.facts.steps, self.paths, strict=True):
            size = barrier_size(self.facts.graph, step.iop)
            if size > 1:
                out.append(Barrier((*path, BARRIER_PHASE), size, step.position))
        return out

    def relations(self, barriers: Sequence[Barrier], within_group: bool) -> Iterator[Relation]:
        """The kinds of pairs of units that ``barriers`` treat alike; those of one group alone if asked."""
        units, group = self.facts.num_parallel, int(self.facts.graph.num_units)
        sizes = sorted({b.size for b in barriers} | {group, units} - {1})
        always = {units, group} if within_group else {units}
        for joined in _upward_closed(sizes):
            if joined >= always - {1} and (not within_group or group > 1):
                yield Relation(joined, frozenset(sizes) - joined)

    def pairings(self, first: Access, second: Access, barriers: Sequence[Place]) -> Iterator[Pairing]:
        """The pairs of instances, ``first`` before ``second`` or at the same moment, with none of
        ``barriers`` strictly between; not carried ones first, then from the outermost loop inwards."""
        p, q = self.place(first), self.place(second)
        common = self.common(first, second)
        names = [v for v, _ in common]
        n = len(common)
        if p[n:] <= q[n:] and not any(b[:n] == p[:n] and p[n:] < b[n:] < q[n:] for b in barriers):
            fixed = (
                self._ends(first, p, n, barriers, last=True),
                self._ends(second, q, n, barriers, last=False),
            )
            yield Pairing(tuple(names), None, None, *fixed)
        for k in range(1, n + 1):
            inside = [b[k:] for b in barriers if b[:k] == p[:k]]
            if common[k - 1][1] < 2 or any(b > p[k:] or b < q[k:] for b in inside):
                continue
            fixed = (
                self._ends(first, p, k, barriers, last=True),
                self._ends(second, q, k, barriers, last=False),
            )
            yield Pairing(tuple(names[: k - 1]), names[k - 1], 1 if inside else None, *fixed)

    def common(self, a: Access, b: Access) -> list[tuple[str, int]]:
        """(variable, extent) of the loops that enclose both, outermost first."""
        out = []
        for x, y in zip(self.loops[a.position], self.loops[b.position], strict=False):
            if x[0] != y[0]:
                break
            out.append(x)
        return out

    def _ends(
        self, access: Access, place: Place, level: int, barriers: Sequence[Place], last: bool
    ) -> tuple[tuple[str, int], ...]:
        """The loops around the access, inside ``level``, that hold a barrier: it is in their last (or first)
        iteration, else the barrier would run in a later (or ran in an earlier) one."""
        return tuple(
            (v, extent - 1 if last else 0)
            for j, (v, extent) in enumerate(self.loops[access.position][level:], level + 1)
            if any(b[:j] == place[:j] for b in barriers)
        )


def barrier_size(graph: IGraph, iop: IOp) -> int:
    """How many units meet in ``iop``: 1 where it is no barrier between units."""
    if spec_of(iop).barrier:
        return {"sram": int(graph.num_units), "dram": int(graph.num_parallel)}.get(iop.attrs["scope"], 1)
    return int(iop.attrs["group_size"]) if iop.attrs.get("scope") == "group" else 1


def _paths(body: Sequence[object], prefix: Place = ()) -> Iterator[Place]:
    for k, node in enumerate(body):
        path = (*prefix, 2 * k + 1)
        if isinstance(node, Loop):
            yield from _paths(node.body, path)
        else:
            yield path


def _upward_closed(sizes: Sequence[int]) -> Iterator[frozenset[int]]:
    """The sets of sizes that two units may share: with a size also its multiples, the most first."""
    for count in range(len(sizes), -1, -1):
        for chosen in combinations(sizes, count):
            shared = frozenset(chosen)
            if all(t in shared for s in chosen for t in sizes if t % s == 0):
                yield shared
