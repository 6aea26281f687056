# SPDX-License-Identifier: Apache-2.0
"""Variants of a kernel for all sizes: the same function for parts of its sizes, chosen when it is launched.

Each is scheduled for the representatives of its ranges, taken through all stages and proved under its ranges
alone.  The kernel itself stays as what serves the rest.  Which there are: one for each value that the recipe
names (`Recipe.apart`), and those of the target's ranges (`schedule.size_ranges`) that are faster by the model
(`explain.analytic`) than what would run in their place.  One that cannot be made is logged, and absent.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Callable, Iterator, Sequence

import attrs
from tvm import tirx

from .bound_kernel import symbols_in
from .igraph.nodes import HardwareModel, IGraph, ISlice, map_iops
from .igraph.rewrite import map_slices
from .igraph.sizes import at
from .igraph.space import Size, Space
from .igraph.tir_sizes import narrowed, sizes_of
from .schedule.size_ranges import SIZE_RANGES, SizeRanges, size_ranges, tile_sizes
from .schedules import RECIPES
from .stages import STAGES, KernelRecord, StageContext, Variant
from .verify.handed_sizes import handed_fault

log = logging.getLogger(__name__)

#: What reckons the seconds of a graph. It is made for reports, above the stages, which know it by name alone.
MODEL = "uir_tvm.explain.analytic"

#: The stage that makes a schedule.
SCHEDULE = STAGES[0].name
#: The bounds of a slice that is valid as a whole.
_ALL = (None, None)

#: Takes a function of a name through the stages; not beyond its schedule, where that is the known one.
Build = Callable[[tirx.PrimFunc, str, tirx.PrimFunc | None], KernelRecord]


def variants_of(record: KernelRecord, context: StageContext, build: Build) -> tuple[Variant, ...]:
    """The variants of a kernel, in the order in which a launch asks for them.

    Parameters
    ----------
    record : KernelRecord
        Of the kernel for all sizes.
    context : StageContext
    build : callable
        Takes the function of a variant through the stages.
    """
    func = record.products["prim_func"]
    wanted = context.options.variants
    if wanted == "none" or not symbols_in(func) or record.recipe not in RECIPES.heroes:
        return ()
    made = _Maker(record, func, build)
    named = tuple(made.named())
    space = SIZE_RANGES.get(str(context.hardware.kind)) if wanted == "faster" else None
    return named if space is None else (*named, *made.faster(context.hardware, space))


@attrs.frozen(eq=False)
class _Maker:
    """Makes variants of one kernel."""

    whole: KernelRecord
    func: tirx.PrimFunc
    build: Build

    def named(self) -> Iterator[Variant]:
        """Those that the recipe names: one value of a variable each."""
        sizes = {str(variable.name): size for variable, size in sizes_of(self.func).items()}
        for variable, value in RECIPES[self.whole.recipe].apart(self.func).items():
            size = sizes.get(str(variable.name))
            if size is None or not (size.low <= value < size.high) or value % size.multiple_of:
                continue
            made = self._made((Size(str(size.name), value, value),))
            if made is not None:
                yield made

    def faster(self, hw: HardwareModel, space: SizeRanges) -> list[Variant]:
        """Those of the parts of its sizes that are faster than what would run in their place."""
        parts = size_ranges(self.func, hw, space)
        kept: list[tuple[float, Variant]] = []
        unpaid: set[Size] = set()
        bounding = tile_sizes(self.func, hw)
        for place in range(len(parts) - 1, -1, -1):
            sizes = parts[place]
            if len(sizes) > 1 and sizes[0] in unpaid:
                continue
            before = next((each for _, each in kept if _within(sizes, each.sizes)), None)
            other = self.whole if before is None else before.record
            # one schedule makes one kernel, but for bounds of tiles and groups that units take in turn or not
            bounds = [
                [size for size in part if size.name in bounding]
                for part in (sizes, () if before is None else before.sizes)
            ]
            alike = bounds[0] == bounds[1] and _as_dealt(other, sizes) and space.gain > 1
            made = self._made(sizes, other.products[SCHEDULE] if alike else None)
            if made is None:
                continue
            found = [_ratio(other, made.record, point, space) for point in _points(sizes, parts[:place])]
            gain = math.prod(found) ** (1 / len(found))
            log.debug("%s: modelled %.2f times as fast for %s", self.whole.name, gain, made.condition)
            if gain >= space.gain:
                kept.insert(0, (gain, made))
            elif len(sizes) == 1:
                unpaid.add(sizes[0])  # nor does it for few rows of that length
        most = sorted((gain for gain, _ in kept), reverse=True)[: space.most]
        return [each for gain, each in kept if gain in most][: space.most]

    def _made(self, sizes: tuple[Size, ...], known: tirx.PrimFunc | None = None) -> Variant | None:
        """The variant of a part; None where none can be made of it, or where its schedule is known."""
        name = "_".join((self.whole.name, *(f"{size.name}_{size.high}" for size in sizes)))
        record = self.build(narrowed(self.func, sizes), name, known)
        made = Variant(sizes, record)
        if record.refusal is None and record.igraph is None:
            log.debug("%s: no other schedule for %s", self.whole.name, made.condition)
            return None
        fault = "" if record.refusal is None else record.fallback
        if not fault and self.whole.igraph is not None and record.igraph is not None:
            whole = {str(size.name): size for size in sizes_of(self.func).values()}
            fault = str(handed_fault(whole, sizes, self.whole.igraph, record.igraph) or "")
        if not fault:
            return made
        log.info("%s has no variant for %s: %s", self.whole.name, made.condition, fault)
        return None


def _as_dealt(record: KernelRecord, sizes: Sequence[Size]) -> bool:
    """Whether units take groups in turn for some sizes as they do for all that a kernel is for."""
    graph = record.igraph
    if graph is None or graph.groups is None:
        return True
    places = int(graph.hardware.num_groups) * int(graph.hardware.num_units) // int(graph.num_units)
    own = {str(size.name): size for size in graph.sizes}
    most = Space({**own, **{str(size.name): size for size in sizes}}).range(graph.groups)[1]
    return (most > places) == (int(graph.num_groups) > places)


def _within(sizes: tuple[Size, ...], others: tuple[Size, ...]) -> bool:
    """Whether a call that lies in some ranges lies in others too."""
    known = {str(size.name): size for size in sizes}
    return all(
        str(other.name) in known
        and other.low <= known[str(other.name)].low
        and known[str(other.name)].high <= other.high
        for other in others
    )


def _points(sizes: tuple[Size, ...], smaller: Sequence[tuple[Size, ...]]) -> Iterator[dict[str, int]]:
    """Sizes at which a part is compared: its greatest, and two between that and what smaller parts serve."""
    for quarters in (4, 3, 2):
        point = {}
        for size in sizes:
            below = [
                int(other.high)
                for part in smaller
                for other in part
                if other.name == size.name and other.high < size.high
            ]
            least = max([int(size.low) - 1, *below])
            step = int(size.multiple_of)
            between = least + -(-(int(size.high) - least) * quarters // 4)
            point[str(size.name)] = max(between // step * step, step)
        yield point


def _ratio(one: KernelRecord, other: KernelRecord, point: dict[str, int], space: SizeRanges) -> float:
    """How many times as long the one takes as the other at some sizes, by the model."""
    first, second = (_seconds(each, point, space) for each in (one, other))
    return first / second


def _seconds(record: KernelRecord, point: dict[str, int], space: SizeRanges) -> float:
    graph = record.optimized
    assert graph is not None, record.name
    there = at(graph, {str(size.name): point.get(str(size.name), size.usual) for size in graph.sizes})
    seconds = importlib.import_module(MODEL).seconds
    return float(seconds(_whole_tiles(there) if space.whole_tiles else there))


def _whole_tiles(graph: IGraph) -> IGraph:
    """The graph as a core runs it whose instructions take what is on chip whole, with what is not there."""

    def whole(piece: ISlice) -> ISlice:
        return piece if str(piece.pointer.level) == "dram" else piece.replace(rows=_ALL, cols=_ALL)

    return graph.replace(body=map_iops(graph.body, lambda iop: map_slices(iop, whole)))


__all__ = ["MODEL", "variants_of"]
