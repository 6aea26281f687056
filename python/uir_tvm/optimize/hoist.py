# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant moves, fills, broadcasts and iotas run once, before their loop.

Before::

    for l in 4 { move.dram.reg w, g[0];  move.dram.reg t, x[64*l];  binary.mul t, t, w;  ... }

After::

    move.dram.reg w, g[0];  for l in 4 { move.dram.reg t, x[64*l];  binary.mul t, t, w;  ... }

An iOp is invariant in a loop when none of its slices depends on the loop variable, nothing in the loop writes
what it reads, and it writes reg memory whose readers see it alone, in the very iteration.  Its value gets a
pointer of its own where others use the same one.  Bounds of the last iteration's box are no hindrance: where
all of the source is there, the whole shape is made, and every reader keeps to its own box.  Exact: every
iteration would make the same value again (a loop runs at least once), and no reader can tell which of them
made it.  Memory that someone writes is loaded earlier only past a body without barriers: else the load might
come before the write that it waited for.
What is hoisted lives for the whole loop; where that does not fit, the loop stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..igraph.affine import Affine
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, IPointer, ISlice, Loop, walk_body
from ..igraph.sizes import known
from ..igraph.space import Space
from ..verify.access import GraphFacts
from .edit import edited, fresh_name, with_slices
from .figures import fits
from .flow import facts_of, flow_of
from .reaching_definitions import Flow
from .slices import UNBOUNDED, covers, span

#: What may be hoisted: iOps that only bring or make operands; what computes stays where its result is used.
HOISTED = frozenset({"move", "fill", "broadcast", "iota"})

#: iOps of the graph times iOps hoisted, at most: each needs all analyses of the graph anew.
WORK = 8192


def run(graph: IGraph) -> IGraph:
    """The graph with what is invariant in a loop before it; one iOp at a time, as long as it fits."""
    refused: set[str] = set()
    for _ in range(max(1, WORK // max(1, len(facts_of(graph).steps)))):
        made = _one(graph, refused)
        if made is None:
            break
        graph = made
    return graph


def _one(graph: IGraph, refused: set[str]) -> IGraph | None:
    """The graph with one iOp hoisted out of one loop; None where there is none."""
    facts, flow = facts_of(graph), flow_of(graph)
    for position, loop in _direct(graph.body, 0):
        if _key(facts, position) in refused or not _is_invariant(facts, flow, position, loop):
            continue
        made = _hoisted(graph, facts, flow, position, loop, _whole(facts, position))
        if fits(made):
            return made
        refused.add(_key(facts, position))
    return None


def _key(facts: GraphFacts, position: int) -> str:
    """Names one iOp in its loop, over all the graphs that hoisting others makes."""
    step = facts.steps[position]
    return f"{step.loops[-1].var}|{step.iop.target.pointer.name}|{step.iop.op}|{step.iop.target.offset}"


def _direct(body: Sequence[Any], at: int) -> Iterator[tuple[int, Loop]]:
    """(position, loop) of the iOps that stand in a loop's own body, inner loops first."""
    for node in body:
        count = sum(1 for _ in walk_body([node]))
        if isinstance(node, Loop):
            yield from _direct(node.body, at)
            inside = at
            for child in node.body:
                if isinstance(child, Loop):
                    inside += sum(1 for _ in walk_body([child]))
                else:
                    yield inside, node
                    inside += 1
        at += count


def _is_invariant(facts: GraphFacts, flow: Flow, position: int, loop: Loop) -> bool:
    step = facts.steps[position]
    iop = step.iop
    if iop.op not in HOISTED or iop.attrs.get("scope", "unit") != "unit":
        return False
    if (
        iop.target.pointer.level != "reg"
        or loop.extent < 2
        or _depends(_whole(facts, position), str(loop.var))
    ):
        return False
    uses = flow.uses.get(position, [])
    if not uses or not all(use.sole and use.access.operand != "target" for use in uses):
        return False
    inside = [s for s in facts.steps if any(str(n.var) == str(loop.var) for n in s.loops)]
    for source in iop.sources:
        name = str(source.pointer.name)
        written = [a for a in facts.by_pointer[name] if a.kind == "write"]
        if any(any(str(n.var) == str(loop.var) for n in a.loops) for a in written):
            return False
        barrier = any(spec_of(s.iop).barrier or s.is_group for s in inside)
        if written and barrier and source.pointer.level != "reg":
            return False
    return True


def _whole(facts: GraphFacts, position: int) -> IOp:
    """The iOp over the whole shapes of its slices where all of its sources is there; else itself."""
    iop = facts.steps[position].iop
    pieces = {"target": iop.target} | {f"source{k}": s for k, s in enumerate(iop.sources)}
    if all(piece.valid == UNBOUNDED for piece in pieces.values()):
        return iop
    whole = {key: piece.replace(rows=(None, None), cols=(None, None)) for key, piece in pieces.items()}
    if not all(_is_inside(piece, facts) for piece in whole.values()):
        return iop
    for source in iop.sources:
        if source.pointer.level == "reg" and not _made_whole(facts, source):
            return iop
    return with_slices(iop, whole)


def _is_inside(piece: ISlice, facts: GraphFacts) -> bool:
    """Whether a slice is at one place, within its pointer at all sizes."""
    low, high = span(piece)
    if not piece.offset.is_constant:
        return False
    start = int(piece.offset.constant)
    least = Space(known(facts.graph)).range(piece.pointer.elements)[0]
    return start + low >= 0 and start + high < least


def _made_whole(facts: GraphFacts, source: ISlice) -> bool:
    """Whether the one write of a reg pointer makes all of a slice, before all else."""
    writes = [a for a in facts.by_pointer[str(source.pointer.name)] if a.kind == "write"]
    if len(writes) != 1 or not writes[0].certain or writes[0].loops:
        return False
    return covers(writes[0].slice, source.replace(rows=(None, None), cols=(None, None)))


def _depends(iop: IOp, variable: str) -> bool:
    values = [v for piece in iop.slices() for v in (piece.offset, *piece.valid) if v is not None]
    values += [v for v in iop.attrs.values() if isinstance(v, Affine)]
    return any(variable in value.variables() for value in values)


def _hoisted(graph: IGraph, facts: GraphFacts, flow: Flow, position: int, loop: Loop, iop: IOp) -> IGraph:
    """The iOp before its loop, writing a pointer of its own unless it already has one."""
    pointer = iop.target.pointer
    uses = flow.uses.get(position, [])
    changes: dict[int, Any] = {}
    pointers = list(graph.pointers)
    alone = {position, *(use.access.position for use in uses)}
    if any(a.position not in alone or _rewrites(a, position) for a in facts.by_pointer[str(pointer.name)]):
        own = IPointer(fresh_name(graph, str(pointer.name)), "reg", pointer.dtype, pointer.size, "tmp")
        pointers.append(own)
        for use in uses:
            at, operand = use.access.position, use.access.operand
            before = changes.get(at, facts.steps[at].iop)
            changes[at] = with_slices(before, {operand: use.access.slice.replace(pointer=own)})
        iop = with_slices(iop, {"target": iop.target.replace(pointer=own)})
    changes[position] = None
    moved = edited(graph, changes, pointers)
    return moved.replace(body=_before(moved.body, loop, iop))


def _rewrites(access: Any, position: int) -> bool:
    """Whether another iOp than the one hoisted writes the pointer."""
    return bool(access.kind == "write" and access.position != position)


def _before(body: Sequence[Any], loop: Loop, iop: IOp) -> list[Any]:
    """The loop tree with an iOp in front of a loop (which goes if it held nothing else)."""
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            if str(node.var) == str(loop.var):
                out += [iop, node]
                continue
            inner = _before(node.body, loop, iop)
            out.append(Loop(node.var, node.extent, inner, node.attrs))
        else:
            out.append(node)
    return out
