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

Exact: a pointer's elements keep their values from the iOp that writes them to the last that reads them.
"""

from __future__ import annotations

from ..igraph.nodes import IGraph
from ..verify.addresses import ADDRESSES, PEAK
from ..verify.placement import MEMORIES, Interference
from .flow import facts_of


def run(graph: IGraph) -> IGraph:
    """The graph with the attributes ``addresses`` and ``peak``; ``graph`` itself where it has the same ones.

    Every reg and sram pointer that an iOp reads or writes has an address: a multiple of the hardware model's
    figure ``reg_align`` (``sram_align``), or of its ``vector_bytes``.
    """
    facts = facts_of(graph)
    addresses: dict[str, int] = {}
    peak: dict[str, int] = {}
    for level in MEMORIES:
        placed = Interference.of(facts, level).place()
        addresses |= placed.addresses
        peak[level] = placed.peak
    wanted = {ADDRESSES: dict(sorted(addresses.items())), PEAK: peak}
    attributes = dict(graph.attrs.items())
    if all(_plain(attributes.get(name)) == value for name, value in wanted.items()):
        return graph
    return graph.replace(attrs=attributes | wanted)


def forget(graph: IGraph) -> IGraph:
    """The graph without addresses, for passes that change what they rest on; itself where it has none."""
    attributes = {name: v for name, v in graph.attrs.items() if name not in (ADDRESSES, PEAK)}
    return graph if len(attributes) == len(graph.attrs) else graph.replace(attrs=attributes)


def _plain(value: object) -> object:
    items = getattr(value, "items", None)
    return None if items is None else {str(k): v for k, v in items()}
