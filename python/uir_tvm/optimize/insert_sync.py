# SPDX-License-Identifier: Apache-2.0
"""Syncs: the least set of the least scope that leaves no two units racing.

Before::

    for k in 2 {
      move s[mine], a[k]
      move r, s[theirs]
    }

After::

    for k in 2 {
      move s[mine], a[k]
      sync.sram s, s
      move r, s[theirs]
      sync.sram s, s
    }

Every conflict between units (`verify.races`: two accesses, the loop that carries them, the kind of pair of
units) is cut by a barrier in some gaps of the loop tree and not in others, which is asked exactly.  The
syncs are the cheapest set of gaps that cuts all: a sync costs as often as it runs, one of scope dram as
much as many of scope sram.  What other barriers make redundant together goes again, so that without any
one of them there is a race.

Barriers within group forms count; syncs of scope reg order the pipes of a unit, which is the printers'
matter, and stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..errors import VerifyError
from ..igraph import make
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, IPointer, Loop
from ..igraph.rewrite import without
from ..igraph.sizes import whole_slice
from ..igraph.text import print_iop, print_slice
from ..verify.access import Access, GraphFacts
from ..verify.happens_before import Barrier, Place
from ..verify.races import Conflict, Races, analysis
from .cover import WeightedSet, cheapest
from .edit import edited
from .flow import facts_of

#: What one execution of a sync costs against that of others.
WEIGHTS = {"sram": 1, "dram": 1000}


@attrs.frozen
class _Gap:
    """A sync that may be placed: before node ``place[-1] // 2`` of the body that ``place[:-1]`` leads to."""

    barrier: Barrier
    scope: str
    runs: int
    held: int

    @property
    def weight(self) -> int:
        """What it costs; of equal ones the one across which the fewest pointers hold values."""
        return WEIGHTS[self.scope] * self.runs * 1024 + min(self.held, 1023)


def run(graph: IGraph, keep: bool = False) -> IGraph:
    """The graph with the syncs it needs.

    Parameters
    ----------
    graph : IGraph
        One that keeps the verifier's rules but for races.
    keep : bool
        Whether the syncs that stand stay, and only what they lack is added; otherwise those between units
        are placed anew.  The graph itself comes back where what it has is as good.

    Raises
    ------
    VerifyError
        Two units race within one iOp, where no sync can stand.
    """
    if int(graph.num_parallel) == 1 and (keep or not _has_syncs(graph)):
        return graph
    given = analysis(facts_of(graph))
    open_now = list(given.conflicts())
    # what the data decides, and nothing has ordered so far, is left to the data
    exempt = {_identity(c) for c in open_now if c.up_to_data}
    if keep:
        return _completed(graph, given, exempt)
    bare = _without_syncs(graph)
    made = _completed(bare, given if bare is graph else Races(GraphFacts(bare)), exempt)
    faulty = any(not c.up_to_data for c in open_now)
    return graph if not faulty and _cost(graph) <= _cost(made) else made


def thinned(graph: IGraph) -> IGraph:
    """The graph without those of its syncs that the others make needless; `run` where all do not suffice.

    For a pass that knows where barriers had better stand, but not which of them are needed.
    """
    races = analysis(facts_of(graph))

    def serves(barriers: Sequence[Barrier]) -> bool:
        return all(conflict.up_to_data for conflict in races.conflicts(barriers))

    kept = list(races.order.barriers)
    if not serves(kept):
        return run(graph)
    iops = [iop for iop, _ in graph.walk()]
    needless: set[int] = set()
    for barrier in reversed(kept[:]):
        position = barrier.position
        if position is None or not _is_between_units(iops[position]):
            continue
        rest = [b for b in kept if b is not barrier]
        if serves(rest):
            kept = rest
            needless.add(position)
    return edited(graph, dict.fromkeys(needless))


def _identity(conflict: Conflict) -> tuple[object, ...]:
    """What a conflict is known by in a graph with other syncs, where positions differ."""
    a, b = conflict.first, conflict.second
    return (str(conflict.pointer.name), *map(_text, (a, b)), conflict.pairing.carried, conflict.relation)


def _text(access: Access) -> str:
    return f"{access.kind} {print_slice(access.slice)} in {print_iop(access.iop)}"


def _has_syncs(graph: IGraph) -> bool:
    return any(_is_between_units(iop) for iop, _ in graph.walk())


def _is_between_units(iop: IOp) -> bool:
    return spec_of(iop).barrier and iop.attrs["scope"] != "reg"


def _without_syncs(graph: IGraph) -> IGraph:
    return graph.replace(body=without(graph.body, _is_between_units)) if _has_syncs(graph) else graph


def _cost(graph: IGraph) -> int:
    return sum(
        WEIGHTS[iop.attrs["scope"]] * math.prod(int(n.extent) for n in loops)
        for iop, loops in graph.walk()
        if _is_between_units(iop)
    )


def _completed(graph: IGraph, races: Races, exempt: set[tuple[object, ...]]) -> IGraph:
    """The graph with the cheapest syncs that leave no conflict open."""
    chosen: list[_Gap] = []
    for_pointer: dict[_Gap, IPointer] = {}

    def still_open(gaps: Sequence[_Gap]) -> Iterator[Conflict]:
        barriers = [*races.order.barriers, *(g.barrier for g in gaps)]
        return (c for c in races.conflicts(barriers) if _identity(c) not in exempt)

    if next(still_open([]), None) is None:
        return graph
    gaps = _gaps(graph, _held(races))
    # One round is enough unless a conflict was narrowed to other instances than those asked about.
    while conflicts := list(still_open(chosen)):
        cuts = [_cut_by(races, conflicts, chosen, gap) for gap in gaps]
        _refuse_hopeless(races, conflicts, cuts)
        picked = cheapest([WeightedSet(g.weight, c) for g, c in zip(gaps, cuts, strict=True)], len(conflicts))
        for k in picked:
            first = (cuts[k] & -cuts[k]).bit_length() - 1
            for_pointer[gaps[k]] = conflicts[first].pointer
            chosen.append(gaps[k])
    for gap in sorted(chosen, key=lambda g: -g.weight):
        rest = [g for g in chosen if g is not gap]
        if next(still_open(rest), None) is None:
            chosen = rest
    chosen = _lowered(chosen, gaps, for_pointer, lambda gaps: next(still_open(gaps), None) is None)
    return graph.replace(body=_placed(graph.body, chosen, for_pointer)) if chosen else graph


def _lowered(
    chosen: Sequence[_Gap],
    gaps: Sequence[_Gap],
    for_pointer: dict[_Gap, IPointer],
    serves: Callable[[Sequence[_Gap]], bool],
) -> list[_Gap]:
    """The chosen gaps with the least scope that serves beside the others."""
    out = list(chosen)
    for k, gap in enumerate(out):
        for other in gaps:
            if other.barrier.place == gap.barrier.place and other.weight < gap.weight:
                if serves([*out[:k], other, *out[k + 1 :]]):
                    for_pointer[other] = for_pointer[gap]
                    out[k] = gap = other
    return out


def _held(races: Races) -> list[tuple[Place, Place]]:
    """Where each pointer on chip is first written and last used."""
    out = []
    for pointer in races.facts.graph.pointers:
        accesses = races.facts.by_pointer[str(pointer.name)]
        if accesses and pointer.level != "dram":
            places = [races.order.place(a) for a in accesses]
            out.append((min(places), max(places)))
    return out


def _gaps(graph: IGraph, held: Sequence[tuple[Place, Place]]) -> list[_Gap]:
    """Every sync that might be placed, the later of one body first: so late the fewest iOps wait."""
    sizes = {"sram": int(graph.num_units), "dram": int(graph.num_parallel)}
    scopes: dict[str, int] = {}
    for scope, size in sizes.items():  # the least scope of each size
        if size > 1 and size not in scopes.values():
            scopes[scope] = size

    def inside(body: Sequence[Any], prefix: Place, runs: int) -> Iterator[_Gap]:
        for k in range(len(body), -1, -1):
            if 0 < k < len(body) or prefix:  # a sync at either end of the graph orders nothing
                place = (*prefix, 2 * k)
                across = sum(first < place < last for first, last in held)
                for scope, size in scopes.items():
                    yield _Gap(Barrier(place, size), scope, runs, across)
            if k and isinstance(node := body[k - 1], Loop):
                yield from inside(node.body, (*prefix, 2 * k - 1), runs * int(node.extent))

    return list(inside(graph.body, (), 1))


def _cut_by(races: Races, conflicts: Sequence[Conflict], chosen: Sequence[_Gap], gap: _Gap) -> int:
    """Which conflicts a sync in the gap settles, as bits."""
    bits = 0
    standing = [*races.order.barriers, *(g.barrier for g in chosen), gap.barrier]
    for k, conflict in enumerate(conflicts):
        joined = conflict.relation.joined
        if gap.barrier.size in joined:
            places = [b.place for b in standing if b.size in joined]
            if races.reopened(conflict, places).excluded:
                bits |= 1 << k
    return bits


def _refuse_hopeless(races: Races, conflicts: Sequence[Conflict], cuts: Sequence[int]) -> None:
    for k, conflict in enumerate(conflicts):
        if not any(cut >> k & 1 for cut in cuts):
            error: VerifyError = races.race(conflict).error()
            raise error


def _placed(body: Sequence[Any], chosen: Sequence[_Gap], for_pointer: Mapping[_Gap, IPointer]) -> list[Any]:
    syncs: dict[Place, list[IOp]] = {}
    for gap in chosen:
        pointer = for_pointer[gap]
        whole = whole_slice(pointer)
        syncs.setdefault(gap.barrier.place, []).append(make.sync(whole, whole, gap.scope))

    def inside(body: Sequence[Any], prefix: Place) -> list[Any]:
        out: list[Any] = []
        for k in range(len(body) + 1):
            out.extend(syncs.get((*prefix, 2 * k), ()))
            if k < len(body):
                node = body[k]
                if isinstance(node, Loop):
                    node = Loop(node.var, node.extent, inside(node.body, (*prefix, 2 * k + 1)), node.attrs)
                out.append(node)
        return out

    return inside(body, ())
