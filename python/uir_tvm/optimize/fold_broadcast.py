# SPDX-License-Identifier: Apache-2.0
"""A column or row that is broadcast is read where it lies, by strides of zero, not copied over a tile first.

Before::

    broadcast.row b[0; (4,32); (32,1)], m[0; (4,1); (1,1)]
    binary.sub t[0; (4,32); (32,1)], t[0; (4,32); (32,1)], b[0; (4,32); (32,1)]

After::

    binary.sub t[0; (4,32); (32,1)], t[0; (4,32); (32,1)], m[0; (4,32); (1,0)]

A device says in figures of its hardware model, `spread_<dtype>`, which binary functions take such an operand
at no cost, and in `spread_col_<dtype>` which take a row for all rows alone.  One operand of an iOp at most is
read so.

Exact: every reader of the broadcast value reads it alone, over the very same elements, in the same run of the
same loops, and what was broadcast still holds its elements there.
"""

from __future__ import annotations

from ..igraph.iops import spec_of
from ..igraph.iops_scalar import BINARY
from ..igraph.nodes import IGraph, IOp, ISlice
from ..verify.access import GraphFacts
from .edit import Change, edited, with_slices
from .flow import facts_of, flow_of
from .reaching_definitions import Flow, Use
from .slices import UNBOUNDED, place, valid


def run(graph: IGraph) -> IGraph:
    """The graph without broadcasts that all their readers can do without; itself where there are none."""
    figures = graph.hardware.figures
    names = {
        key.removeprefix("spread_"): set(str(value).split())
        for key, value in ((str(key), value) for key, value in figures.items())
        if key.startswith("spread_")
    }
    if not names:
        return graph
    facts, flow = facts_of(graph), flow_of(graph)
    changes: dict[int, Change] = {}
    for step in facts.steps:
        uses = flow.uses.get(step.position, [])
        if not uses or not _is_spread(step.iop):
            continue
        if not all(_can_read(facts, flow, step.position, use, names) for use in uses):
            continue
        if any(use.access.position in changes for use in uses):
            continue  # its other operand is read so already
        for use in uses:
            made = _strided(step.iop, use.access.slice)
            changes[use.access.position] = with_slices(use.access.iop, {str(use.access.operand): made})
        changes[step.position] = None
    return edited(graph, changes)


def _is_spread(iop: IOp) -> bool:
    """Whether an iOp broadcasts within a unit, in reg, from one place of all iterations."""
    return (
        spec_of(iop).leads == "source0"
        and str(iop.attrs.get("scope", "unit")) == "unit"
        and all(str(piece.pointer.level) == "reg" for piece in iop.slices())
        and iop.target.rows * iop.target.cols > iop.sources[0].rows * iop.sources[0].cols
    )


def _can_read(facts: GraphFacts, flow: Flow, position: int, use: Use, names: dict[str, set[str]]) -> bool:
    """Whether a reader of a broadcast value can read what was broadcast."""
    broadcast, reader = facts.steps[position], facts.steps[use.access.position]
    iop, piece = reader.iop, use.access.slice
    dtype, axis = str(iop.dtype), str(broadcast.iop.attrs["axis"])
    taken = names.get(dtype, set()) | names.get(f"{axis}_{dtype}", set())
    if not use.sole or spec_of(iop).names is not BINARY or str(iop.name) not in taken:
        return False
    if [str(n.var) for n in broadcast.loops] != [str(n.var) for n in reader.loops]:
        return False
    target = broadcast.iop.target
    if place(piece) != place(target) or valid(target) not in (UNBOUNDED, valid(piece), valid(iop.target)):
        return False
    if sum(place(source) == place(piece) for source in iop.sources) > 1:
        return False
    if any(0 in source.stride and source.rows * source.cols > 1 for source in iop.sources):
        return False
    name = str(broadcast.iop.sources[0].pointer.name)
    return not any(
        access.kind == "write" and position < access.position <= reader.position
        for access in facts.by_pointer[name]
    )


def _strided(broadcast: IOp, piece: ISlice) -> ISlice:
    """What a broadcast reads, in the shape of what it writes."""
    source = broadcast.sources[0]
    by_row = str(broadcast.attrs["axis"]) == "row"
    stride = (int(source.row_stride), 0) if by_row else (0, int(source.col_stride))
    return piece.replace(pointer=source.pointer, offset=source.offset, stride=stride)
