# SPDX-License-Identifier: Apache-2.0
"""What a pass is judged by: iOps, bytes to and from dram, syncs, peak memory."""

from __future__ import annotations

import math

import attrs
import numpy as np

from ..igraph.dtypes import bytes_of
from ..igraph.nodes import IGraph
from ..verify import capacity
from ..verify.access import Access, GraphFacts
from ..verify.region import Region
from .flow import facts_of

#: Points of a valid box's domain that are counted one by one; above it the whole shape is counted.
MAX_POINTS = 1 << 20


@attrs.frozen
class Figures:
    """Figures of one graph.

    Attributes
    ----------
    iops : int
        iOps that a unit runs, over all iterations (syncs too).
    bytes : int
        Bytes that all units move to and from dram, valid elements only; of a graph with sizes, at the
        greatest.
    syncs : int
        Syncs that a unit runs, over all iterations.
    reg, sram : int
        Bytes alive at once, per unit and per group.
    """

    iops: int
    bytes: int
    syncs: int
    reg: int
    sram: int

    @property
    def peak(self) -> int:
        """Bytes alive at once in reg and sram together."""
        return self.reg + self.sram

    def difference(self, other: Figures) -> str:
        """What differs in another graph, as text."""
        parts = [
            f"{name} {getattr(self, name)} -> {getattr(other, name)}"
            for name in ("iops", "bytes", "syncs", "reg", "sram")
            if getattr(self, name) != getattr(other, name)
        ]
        return ", ".join(parts) or "the same figures"


def figures(graph: IGraph) -> Figures:
    """The figures of a well-formed graph; asked again for the last one, as two passes do, they are known."""
    facts = facts_of(graph)
    if figures not in facts.memo:
        facts.memo[figures] = _counted(facts)
    found: Figures = facts.memo[figures]
    return found


def _counted(facts: GraphFacts) -> Figures:
    graph = facts.graph
    greatest = {str(s.name): s.high // s.multiple_of * s.multiple_of for s in graph.sizes}
    runs = [(step, math.prod(int(loop.extent) for loop in step.loops)) for step in facts.steps]
    moved = sum(
        _elements(access, access.region.at(greatest)) * bytes_of(access.slice.pointer.dtype)
        for access in facts.accesses
        if access.slice.pointer.level == "dram"
    )
    return Figures(
        iops=sum(count for _, count in runs),
        bytes=moved,
        syncs=sum(count for step, count in runs if step.spec.barrier),
        reg=peak_bytes(graph, "reg"),
        sram=peak_bytes(graph, "sram"),
    )


def peak_bytes(graph: IGraph, level: str) -> int:
    """Bytes of one level alive at once."""
    top = capacity.peak(facts_of(graph), level)
    return 0 if top is None else top.bytes


def fits(graph: IGraph) -> bool:
    """Whether what is alive at once fits the hardware model."""
    hardware = graph.hardware
    return all(peak_bytes(graph, level) <= getattr(hardware, f"{level}_bytes") for level in ("reg", "sram"))


def _elements(access: Access, region: Region) -> int:
    """Elements that all units touch, each time counted; data-dependent accesses count their target's."""
    if not access.certain and access.kind == "read":
        piece = access.iop.target
        every = region.num_envs(list(region.extents))
        return every * int(piece.rows) * int(piece.cols)
    everything = list(region.extents)
    if region.whole or region.num_envs(region.used) > MAX_POINTS:
        return region.num_points(everything) // region.every
    total = sum(_points(region, env) for env in region.grids(region.used, MAX_POINTS))
    others = [v for v in everything if v not in region.used]
    return total * math.prod(region.extents[v] for v in others)


def _points(region: Region, env: dict[str, np.ndarray]) -> int:
    r0, r1, c0, c1 = region.box(env)
    return int((np.maximum(r1 - r0, 0) * np.maximum(c1 - c0, 0)).sum())


__all__ = ["Figures", "figures", "fits", "peak_bytes"]
