# SPDX-License-Identifier: Apache-2.0
"""Scope promotion: temporary memory that one unit, or one group, has to itself comes closer to it.

Before::

    move.reg.dram m[64*pid], t;  sync.dram m, m;  move.dram.reg u[0], m[64*pid]

After::

    move.reg.reg m[0], t;  sync.dram x, x;  move.reg.reg u[0], m[0]

and the copies within reg go too (`store_load_forwarding`).  A temporary dram or sram pointer of which every
element is touched by one unit becomes a reg pointer of that unit's part; a dram pointer whose elements are
touched within one group each becomes a pointer in sram; where there is room for it.  Exact: `owner_parts`
proves that owners share no element, so that each finds in its own part what it put there.  In loops whose
every iteration reads only what it wrote itself, one iteration's part is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..igraph.nodes import IGraph, IOp, IPointer, ISlice
from ..verify import initialised
from ..verify.access import Access, GraphFacts
from ..verify.placement import sram_bytes
from . import dead
from .edit import edited, with_slices
from .figures import fits
from .flow import facts_of
from .held_memory import forward
from .owner_parts import PackedPart, part_of


def run(graph: IGraph) -> IGraph:
    """The graph with temporary memory as close as its accesses and the hardware model allow."""
    made = graph
    for pointer in graph.pointers:
        if pointer.level in ("dram", "sram") and not pointer.is_param:
            made = _promoted(made, str(pointer.name))
    if made is graph:
        return graph
    copied = forward(made, copies=True)
    return dead.run(copied) if fits(copied) else made


def _promoted(graph: IGraph, name: str) -> IGraph:
    """The graph with one pointer closer; ``graph`` itself where that is not proved, or does not fit."""
    facts = facts_of(graph)
    accesses = facts.by_pointer[name]
    if not accesses or any(a.operand == "buffer" for a in accesses) or _is_viewed(facts, name):
        return graph
    before = str(accesses[0].slice.pointer.level)
    for level, num_owners, units in _levels(graph, before):
        sharers = int(graph.num_units) if before == "sram" else num_owners
        # units of a group may be in different iterations: then each iteration needs its own part
        for own_loops in (_own_loops(accesses), []) if units == 1 else ([],):
            part = part_of(accesses, num_owners, units, sharers, own_loops)
            made = graph if part is None else _moved(graph, facts, accesses, part, level)
            if made is not graph and fits(made) and _is_written(made, name):
                return made
    return graph


def _levels(graph: IGraph, level: str) -> Iterator[tuple[str, int, int]]:
    """(level, owners, units of an owner) that are closer than ``level``, closest first."""
    yield "reg", int(graph.num_parallel), 1
    units = int(graph.num_units)
    if level == "dram" and sram_bytes(graph.hardware, units) and units <= graph.hardware.num_units:
        yield "sram", int(graph.num_groups), units


def _is_viewed(facts: GraphFacts, name: str) -> bool:
    return any(
        piece.pointer.name == name for step in facts.steps if step.spec.renames for piece in step.iop.slices()
    )


def _own_loops(accesses: Sequence[Access]) -> list[str]:
    """Loops around all accesses of which every iteration reads only what it wrote itself."""
    common = [str(loop.var) for loop in accesses[0].loops]
    for access in accesses[1:]:
        theirs = [str(loop.var) for loop in access.loops]
        common = [v for v, other in zip(common, theirs, strict=False) if v == other]
    writes = [a for a in accesses if a.kind == "write" and a.certain]
    reads = [a for a in accesses if a.kind == "read"]
    return [v for v in common if all(any(initialised.covers(w, r, within=v) for w in writes) for r in reads)]


def _moved(
    graph: IGraph, facts: GraphFacts, accesses: Sequence[Access], part: PackedPart, level: str
) -> IGraph:
    old = accesses[0].slice.pointer
    new = IPointer(old.name, level, old.dtype, part.size, "tmp")
    operands: dict[int, dict[str, ISlice]] = {}
    for access, (offset, stride) in zip(accesses, part.slices, strict=True):
        piece = access.slice.replace(pointer=new, offset=offset, stride=stride)
        operands.setdefault(access.position, {})[access.operand] = piece
    changes: dict[int, IOp] = {
        position: with_slices(facts.steps[position].iop, pieces) for position, pieces in operands.items()
    }
    changes |= _syncs(facts, graph.params, new)
    pointers = [new if p.name == old.name else p for p in graph.pointers]
    return edited(graph, changes, pointers)


def _syncs(facts: GraphFacts, params: Sequence[IPointer], new: IPointer) -> Mapping[int, IOp]:
    """The syncs that named the pointer, on a parameter where it is no shared memory any more."""
    named = params[0] if new.level == "reg" else new
    return {
        step.position: dead.sync_of(step.iop, named)
        for step in facts.steps
        if step.spec.barrier and step.iop.target.pointer.name == new.name
    }


def _is_written(graph: IGraph, name: str) -> bool:
    """Whether it is proved that the pointer is written before it is read, in the order of its own unit."""
    return all(fault.pointer != name for fault in initialised.check(facts_of(graph)))
