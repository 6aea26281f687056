# SPDX-License-Identifier: Apache-2.0
"""Which units and iterations of a graph to interpret, so that it takes no longer than it may."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, Loop, walk_body

#: Seconds of the interpreter for one iOp, and for one element that it writes (measured on a server core; the
#: field costs about as much as special values do).
PER_IOP, PER_ELEMENT, PER_PRODUCT = 3e-5, 6e-8, 3e-9


@attrs.frozen
class SamplePlan:
    """What to run.

    Parameters
    ----------
    units : tuple of int or None
        The pids; None = all.
    iterations : Mapping[str, tuple[int, ...]]
        By loop variable, the only iterations.
    seconds : float
        What it is estimated to take.
    """

    units: tuple[int, ...] | None
    iterations: Mapping[str, tuple[int, ...]]
    seconds: float

    @property
    def whole(self) -> bool:
        """Whether everything runs."""
        return self.units is None and not self.iterations

    def __str__(self) -> str:
        units = "all units" if self.units is None else f"units {', '.join(map(str, self.units))}"
        loops = "".join(f", {name} in {{{', '.join(map(str, v))}}}" for name, v in self.iterations.items())
        return units + loops


def plan(graph: IGraph, budget: float) -> SamplePlan:
    """First, middle and last units, then iterations of outer loops, until the estimate is within ``budget``.

    A graph whose units or iterations hand values on through dram runs as a whole, whatever that takes.

    Parameters
    ----------
    budget : float
        Seconds.
    """
    everything = SamplePlan(None, {}, cost(graph))
    if everything.seconds <= budget or _passes_through_dram(graph):
        return everything
    units = _some_units(graph)
    share = len(units) / graph.num_parallel
    chosen: dict[str, tuple[int, ...]] = {}
    seconds = everything.seconds * share
    for loop in _loops(graph.body):
        if seconds <= budget:
            break
        few = _neighbours(int(loop.extent))
        if len(few) < int(loop.extent) and _deals_out(loop):
            chosen[str(loop.var)] = few
            seconds = cost(graph, {name: len(v) for name, v in chosen.items()}) * share
    return SamplePlan(None if len(units) == graph.num_parallel else units, chosen, seconds)


def cost(graph: IGraph, trips: Mapping[str, int] | None = None) -> float:
    """Seconds that the interpreter takes, about; ``trips`` overrides the extents of loops by variable."""
    trips = trips or {}
    total = 0.0
    for iop, loops in graph.walk():
        times = math.prod(trips.get(str(loop.var), int(loop.extent)) for loop in loops)
        total += times * _seconds(iop)
    return total * graph.num_parallel


def _seconds(iop: IOp) -> float:
    if spec_of(iop).barrier:
        return PER_IOP
    elements = max(piece.rows * piece.cols for piece in iop.slices())
    products = iop.target.rows * iop.target.cols * iop.sources[0].cols if spec_of(iop).is_product else 0
    return PER_IOP + elements * PER_ELEMENT + products * PER_PRODUCT


def _ends(extent: int) -> tuple[int, ...]:
    return tuple(sorted({0, extent // 2, extent - 1}))


def _neighbours(extent: int) -> tuple[int, ...]:
    """The ends with those beside them, and the middle."""
    return tuple(sorted({0, min(1, extent - 1), extent // 2, max(extent - 2, 0), extent - 1}))


def _some_units(graph: IGraph) -> tuple[int, ...]:
    """The first, middle and last units; whole groups where their units work together."""
    together = any(p.level == "sram" for p in graph.pointers) or any(
        spec_of(iop).barrier or iop.attrs.get("scope") == "group" for iop, _ in graph.walk()
    )
    if not together:
        return _ends(graph.num_parallel)
    size = int(graph.num_units)
    return tuple(g * size + u for g in _ends(int(graph.num_groups)) for u in range(size))


def _passes_through_dram(graph: IGraph) -> bool:
    read, written = set(), set()
    for iop, _ in graph.walk():
        if spec_of(iop).barrier and iop.attrs.get("scope") == "dram":
            return True
        if not spec_of(iop).touches:
            continue
        read |= {str(s.pointer.name) for s in iop.sources if s.pointer.level == "dram"}
        written |= {str(t.pointer.name) for t in iop.targets if t.pointer.level == "dram"}
        if spec_of(iop).by_data == "target":
            return True
    return bool(read & written)


def _loops(body: Sequence[Any]) -> list[Loop]:
    """All loops, outer ones first."""
    found, level = [], [node for node in body if isinstance(node, Loop)]
    while level:
        found += level
        level = [child for loop in level for child in loop.body if isinstance(child, Loop)]
    return found


def _deals_out(loop: Loop) -> bool:
    """Whether the iterations write different places of dram, and nothing else leaves them."""
    stores = [
        target
        for iop, _ in walk_body(loop.body)
        if spec_of(iop).touches
        for target in iop.targets
        if target.pointer.level == "dram"
    ]
    return bool(stores) and all(str(loop.var) in target.offset.variables() for target in stores)
