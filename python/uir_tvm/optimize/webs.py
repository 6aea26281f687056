# SPDX-License-Identifier: Apache-2.0
"""Webs: the values that a reg pointer holds in turn, each with all that writes it and all that reads it.

    unary.exp b, a;  reduce.add s, b;  move b, c   ->   unary.exp b, a;  reduce.add s, b;  move b_1, c

Writes that one read may see belong to one web (`reaching_definitions`), and so do an accumulator's.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ..igraph.nodes import IGraph, IOp, IPointer
from .edit import edited, fresh_name, with_slices
from .flow import facts_of, flow_of
from .reaching_definitions import Flow


@attrs.define(eq=False)
class Web:
    """One value of a pointer: the iOps that write it, and the operands (position, name) that read it."""

    pointer: str
    writes: set[int] = attrs.field(factory=set)
    reads: set[tuple[int, str]] = attrs.field(factory=set)

    @property
    def positions(self) -> set[int]:
        """Where it is written and read."""
        return self.writes | {position for position, _ in self.reads}


def rename(graph: IGraph) -> IGraph:
    """The graph with a pointer for every value in reg; ``graph`` itself where each pointer holds one.

    Reuse of memory matters where memory has addresses; registers that a compiler names it would only tie
    together.  Values that one pointer holds at once, at several places, stay together.
    """
    flow = flow_of(graph)
    found: list[Web] = []
    for pointer in graph.pointers:
        accesses = flow.facts.by_pointer[str(pointer.name)]
        if str(pointer.level) == "reg" and all(a.slice.offset.is_constant for a in accesses):
            found += _in_turn(webs_of(flow, str(pointer.name)))[1:]
    return with_pointers(graph, found)


def _in_turn(webs: list[Web]) -> list[Web]:
    """The webs, those that are alive at once joined; each begins where the one before it has ended."""
    out: list[Web] = []
    for web in sorted(webs, key=lambda web: min(web.positions, default=0)):
        if out and min(web.positions) < max(out[-1].positions):
            out[-1].writes |= web.writes
            out[-1].reads |= web.reads
        else:
            out.append(web)
    return out


def webs_of(flow: Flow, name: str) -> list[Web]:
    """The values of a pointer in program order; one where they cannot be told apart."""
    accesses = flow.facts.by_pointer.get(name, ())
    whole = [Web(name)]
    named = (s for step in flow.facts.steps if not step.spec.touches for s in step.iop.slices())
    if any(str(piece.pointer.name) == name for piece in named):
        return whole
    if any(a.operand != "target" and not str(a.operand).startswith("source") for a in accesses):
        return whole
    web_of: dict[int, Web] = {a.position: Web(name, {a.position}) for a in accesses if a.kind == "write"}
    seen: dict[tuple[int, str], list[int]] = {}
    for position in web_of:
        for use in flow.uses.get(position, ()):
            seen.setdefault((use.access.position, str(use.access.operand)), []).append(position)
    for access in accesses:
        if access.kind != "read":
            continue
        key = (access.position, str(access.operand))
        if key not in seen:
            return whole  # something that no iOp wrote
        first, *others = [*seen[key], *([access.position] if access.operand == "target" else [])]
        web = web_of[first]
        for other in (web_of[origin] for origin in others):
            if other is not web:
                web.writes |= other.writes
                web.reads |= other.reads
                web_of |= dict.fromkeys(other.writes, web)
        if access.operand != "target":
            web.reads.add(key)
    return list({id(web): web for _, web in sorted(web_of.items())}.values())


def with_pointers(graph: IGraph, webs: Iterable[Web]) -> IGraph:
    """The graph with a new pointer for each of some webs; ``graph`` itself where there are none."""
    facts = facts_of(graph)
    changes: dict[int, IOp] = {}
    pointers = list(graph.pointers)
    taken: set[str] = set()
    for web in webs:
        old = graph.pointer(web.pointer)
        new = IPointer(fresh_name(graph, web.pointer, taken), old.level, old.dtype, old.size, "tmp")
        pointers.append(new)
        for position, operand in [*((at, "target") for at in web.writes), *web.reads]:
            iop = changes.get(position, facts.steps[position].iop)
            piece = iop.target if operand == "target" else iop.sources[int(operand.removeprefix("source"))]
            changes[position] = with_slices(iop, {operand: piece.replace(pointer=new)})
    return edited(graph, changes, pointers) if changes else graph
