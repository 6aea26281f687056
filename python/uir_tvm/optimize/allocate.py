# SPDX-License-Identifier: Apache-2.0
"""Addresses of reg and sram: as few bytes as the live ranges allow, outputs in the place of dying inputs.

Before::

    move t, x; unary.exp u, t; binary.add w, u, t; move y, w

After, the addresses being bytes from the start of the unit's reg (the group's sram)::

    attr addresses = {t: 0, u: 128, w: 0}
    attr peak = {reg: 256, sram: 0}
    move t, x; unary.exp u, t; binary.add w, u, t; move y, w

The body stays as it is: a pointer is still a memory of its own, and its address says which others it shares
bytes with.  What shares bytes is never alive at once (`verify.placement` says when it is not), so a target
may lay the pointers out so, and one that names registers may ignore it.  A target whose pipes run at the
same time orders accesses by bytes, not by names: what follows in a place waits for what was there.

What is loaded before a loop that has iterations in flight lies apart from all that was alive before, where
that takes little more room: else the first tile would wait for what its constants are used for::

    move a, g;  broadcast b, a;  move t, x;  for k in 8 [stages=2] {...}     t not in the place of a

Exact: a pointer's elements keep their values from the iOp that writes them to the last that reads them.
"""

from __future__ import annotations

from ..igraph.nodes import IGraph
from ..verify.access import GraphFacts
from ..verify.addresses import ADDRESSES, PEAK
from ..verify.live_ranges import STAGED
from ..verify.placement import MEMORIES, Interference, Placement
from .flow import facts_of

#: What part of a unit's memory in use may be taken beside the least.
MORE = 8


def run(graph: IGraph) -> IGraph:
    """The graph with the attributes ``addresses`` and ``peak``; ``graph`` itself where it has the same ones.

    Every reg and sram pointer that an iOp reads or writes has an address: a multiple of the hardware model's
    figure ``reg_align`` (``sram_align``), or of its ``vector_bytes``.
    """
    facts = facts_of(graph)
    addresses: dict[str, int] = {}
    peak: dict[str, int] = {}
    for level in MEMORIES:
        placed = _placed(facts, level)
        addresses |= placed.addresses
        peak[level] = placed.peak
    wanted = {ADDRESSES: dict(sorted(addresses.items())), PEAK: peak}
    attributes = dict(graph.attrs.items())
    if all(_plain(attributes.get(name)) == value for name, value in wanted.items()):
        return graph
    return graph.replace(attrs=attributes | wanted)


def _placed(facts: GraphFacts, level: str) -> Placement:
    """The addresses of a level: what leads into a loop apart if there is room, else with the least peak."""
    memory = Interference.of(facts, level)
    least = memory.place()
    leading = _leading(facts) if level == "reg" else set()
    if not leading:
        return least
    limit = min(least.peak + least.peak // MORE, int(facts.graph.hardware.reg_bytes))
    apart = memory.from_start(leading).place(enough=least.peak)
    return apart if apart.peak <= limit else least


def _leading(facts: GraphFacts) -> set[str]:
    """The pointers that are loaded before the first loop of several stages, outside of all loops."""
    staged = next((k for k, step in enumerate(facts.steps) if any(STAGED in n.attrs for n in step.loops)), 0)
    return {
        str(step.iop.target.pointer.name)
        for step in facts.steps[:staged]
        if not step.loops
        and step.iop.op == "move"
        and str(step.iop.target.pointer.level) == "reg"
        and str(step.iop.sources[0].pointer.level) == "dram"
    }


def forget(graph: IGraph) -> IGraph:
    """The graph without addresses, for passes that change what they rest on; itself where it has none."""
    attributes = {name: v for name, v in graph.attrs.items() if name not in (ADDRESSES, PEAK)}
    return graph if len(attributes) == len(graph.attrs) else graph.replace(attrs=attributes)


def _plain(value: object) -> object:
    items = getattr(value, "items", None)
    return None if items is None else {str(k): v for k, v in items()}
