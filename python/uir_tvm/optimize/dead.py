# SPDX-License-Identifier: Apache-2.0
"""Dead iOps go, and with them pointers that nobody names and loops that hold nothing.

Before::

    fill t [0.0];  move.dram.reg t, x;  unary.exp u, t;  move.reg.dram y, t

After::

    move.dram.reg t, x;  move.reg.dram y, t

An iOp lives if it writes a parameter, or what a living iOp may read.  Exact: what goes has no way to a
parameter.  Which reads a write of reg memory meets, `reaching_definitions` says over all loops, so that a
value which is always overwritten first dies as well; of sram and temporary dram, a read of the same memory by
any unit at any time keeps a write alive.  Syncs stay; one that names a pointer which goes names a parameter
instead, since a sync orders the accesses to all memory whatever it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..igraph.nodes import IGraph, IOp, IPointer
from ..igraph.rewrite import loop_variables, pointers_of, without
from ..igraph.sizes import whole_slice
from ..verify.access import Access, GraphFacts
from .edit import edited
from .flow import facts_of, flow_of
from .reaching_definitions import Flow
from .slices import span


def run(graph: IGraph) -> IGraph:
    """The graph with nothing in it that no parameter depends on."""
    facts = facts_of(graph)
    living = _living(facts, flow_of(graph))
    changes: dict[int, IOp | None] = {
        step.position: None for step in facts.steps if step.spec.touches and step.position not in living
    }
    named = {
        str(piece.pointer.name)
        for step in facts.steps
        if step.position in living
        for piece in step.iop.slices()
    }
    changes |= _resynced(facts, graph.params, named)
    made = _without_empty_loops(edited(graph, changes))
    return _without_unnamed(made)


def _living(facts: GraphFacts, flow: Flow) -> set[int]:
    """Positions of the iOps that a parameter depends on."""
    makers: dict[int, list[int]] = {}  # position of a reader -> positions of what it may see
    for position, uses in flow.uses.items():
        for use in uses:
            makers.setdefault(use.access.position, []).append(position)
    living: set[int] = set()
    found = [s.position for s in facts.steps if any(_leaves(a) for a in s.accesses)]
    while found:
        position = found.pop()
        if position in living:
            continue
        living.add(position)
        found += makers.get(position, ())
        for access in facts.steps[position].accesses:
            if access.kind == "read" and access.slice.pointer.level != "reg":
                found += _shared_makers(facts, access)
    return living


def _leaves(access: Access) -> bool:
    return access.kind == "write" and access.slice.pointer.is_param


def _shared_makers(facts: GraphFacts, read: Access) -> Iterator[int]:
    """The iOps that may write, on any unit and in any iteration, what is read of sram or dram."""
    low, high = _reach(read)
    for write in facts.by_pointer[str(read.slice.pointer.name)]:
        if write.kind == "write" and write.position != read.position:
            first, last = _reach(write)
            if first <= high and low <= last:
                yield write.position


def _reach(access: Access) -> tuple[int, int]:
    """Least and greatest address over all units and iterations."""
    low, high = access.region.space.range(access.region.offset)
    first, last = span(access.slice)
    return low + first, high + last


def _resynced(facts: GraphFacts, params: Sequence[IPointer], named: set[str]) -> dict[int, IOp | None]:
    """Syncs whose pointer nobody accesses any more, on a parameter."""
    out: dict[int, IOp | None] = {}
    for step in facts.steps:
        if step.spec.barrier and params:
            pointer = step.iop.target.pointer
            if not pointer.is_param and str(pointer.name) not in named:
                out[step.position] = sync_of(step.iop, params[0])
    return out


def sync_of(sync: IOp, pointer: IPointer) -> IOp:
    """The sync naming another pointer."""
    whole = whole_slice(pointer)
    return IOp("sync", "", pointer.dtype, [whole], [whole], sync.attrs)


def _without_empty_loops(graph: IGraph) -> IGraph:
    body = without(graph.body, lambda _: False)
    same = list(loop_variables(body)) == list(loop_variables(graph.body))
    return graph if same else graph.replace(body=body)


def _without_unnamed(graph: IGraph) -> IGraph:
    named = pointers_of(graph.body)
    kept = [p for p in graph.pointers if p.is_param or str(p.name) in named]
    return graph if len(kept) == len(graph.pointers) else graph.replace(pointers=kept)
