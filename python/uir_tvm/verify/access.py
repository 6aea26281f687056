# SPDX-License-Identifier: Apache-2.0
"""What every iOp of a graph touches: the reads and writes on which bounds, coverage and races are decided."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal

import attrs
import islpy

from ..igraph.affine import Affine
from ..igraph.iops import IOpSpec, problems, spec_of
from ..igraph.iops_reads import Read
from ..igraph.nodes import IGraph, IOp, ISlice, Loop
from ..igraph.once import once
from ..igraph.space import Size
from . import isl
from .region import Region, region_of
from .seen import Seen, Standing, seen_in
from .sized_launch import SizedLaunch


@attrs.frozen(slots=False, eq=False)
class Access:
    """One read or write of memory by one iOp.

    Attributes
    ----------
    iop, loops
        The iOp and its enclosing loops, outermost first.
    position : int
        Its place among the iOps of the graph, in program order; an iOp reads before it writes.
    slice : ISlice
        The operand as written.
    kind : str
        ``read`` or ``write``.
    region : Region
        The elements, as a function of pid and loops.
    certain : bool
        False where the data decides which of the elements (gather, scatter).
    operand : str
        ``target``, ``source0``, ``source1``, ... or ``buffer``.
    phase : int
        Of a group form 1 before the barrier of its units and 3 after it, else 0.
    """

    iop: IOp
    loops: tuple[Loop, ...]
    position: int
    slice: ISlice
    kind: Literal["read", "write"]
    region: Region
    certain: bool = True
    operand: str = "target"
    phase: int = 0

    @property
    def variables(self) -> list[str]:
        """pid and the loop variables, outermost first."""
        return list(self.region.extents)

    @once
    def relation(self) -> islpy.Map:
        """``{ [pid, loop variables...] -> [address] }`` in this thread's isl context."""
        return isl.relation(self.region, self.variables)


#: The fields of an `Access` from its slice on.
_Part = tuple[ISlice, Literal["read", "write"], Region, bool, str, int]


@attrs.frozen(slots=False, eq=False)
class Step:
    """One iOp where it stands.

    ``seen`` has what was found out about it in an earlier graph.
    """

    iop: IOp
    loops: tuple[Loop, ...]
    position: int
    domain: Standing
    seen: Seen

    @property
    def extents(self) -> Mapping[str, int]:
        """How many values pid and the loops around it have."""
        return self.domain.extents

    @property
    def launch(self) -> SizedLaunch:
        """The sizes of the graph."""
        return self.seen.launch

    @once
    def memo(self) -> dict[str, Any]:
        """What rules found out about the iOp in this domain, by whatever names they agree on."""
        return self.seen.find(("iop", self.iop.__chandle__(), id(self.domain)), (self.iop, self.domain), dict)

    @property
    def known(self) -> dict[str, int | Size]:
        """What is known of pid, the loops around it and the sizes."""
        return {**self.extents, **{str(size.name): size for size in self.launch.sizes}}

    @once
    def spec(self) -> IOpSpec:
        """Its row of the table of iOps."""
        return spec_of(self.iop)

    @once
    def is_group(self) -> bool:
        """Whether units join in it."""
        return self.iop.attrs.get("scope") == "group"

    @property
    def leaders(self) -> int:
        """Group size of a group form, 1 otherwise."""
        return int(self.iop.attrs["group_size"]) if self.is_group else 1

    def rule(self, operand: str) -> Read | None:
        """How the box that is read of a source follows; None for what is no source."""
        kind, number = operand[:6], operand[6:]
        return self.spec.reads(self.iop)[int(number)] if kind == "source" else None

    @once
    def problems(self) -> list[tuple[str, str]]:
        """What breaks the iOp table's rules: (rule, sentence) each."""
        return self.seen.find(("problems", self.iop.__chandle__()), self.iop, lambda: problems(self.iop))

    @once
    def operands(self) -> tuple[tuple[str, ISlice, Region], ...]:
        """(operand, slice, its whole valid box) of every slice that the iOp names."""
        known: tuple[tuple[str, ISlice, Region], ...] | None = self.memo.get("operands")
        if known is None:
            known = self.memo["operands"] = tuple(self._operands())
        return known

    def _operands(self) -> Iterator[tuple[str, ISlice, Region]]:
        every_target = self.leaders if self.spec.leads == "target" else 1
        every_source = self.leaders if self.spec.leads == "source0" else 1
        for piece in self.iop.targets:
            yield "target", piece, self._region(piece, every_target, self.domain.tiles)
        for k, piece in enumerate(self.iop.sources):
            yield f"source{k}", piece, self._region(piece, every_source, self.domain.tiles)
        if "buffer" in self.iop.attrs:
            piece = self.iop.attrs["buffer"]
            yield "buffer", piece, self._region(piece, 1, None)

    def _region(self, piece: ISlice, every: int, tiles: Affine | None) -> Region:
        """The valid box of a slice."""

        def make() -> Region:
            return region_of(piece, self.extents, every, self.launch, tiles, self.domain.space)

        key = ("region", piece.__chandle__(), id(self.domain), every, tiles is None)
        return self.seen.find(key, (piece, self.domain), make)

    @once
    def accesses(self) -> tuple[Access, ...]:
        """What it reads, then what it writes; a group form does both before and after its barrier."""
        if not self.spec.touches:
            return ()
        parts: tuple[_Part, ...] | None = self.memo.get("accesses")
        if parts is None:
            parts = self.memo["accesses"] = self._parts()
        return tuple([Access(self.iop, self.loops, self.position, *part) for part in parts])

    def _parts(self) -> tuple[_Part, ...]:
        """What is the same of accesses wherever the iOp stands in this domain."""
        both = (*self._reads(), *self._writes())
        return tuple(sorted(both, key=lambda part: part[-1])) if self.is_group else both

    def _reads(self) -> Iterator[_Part]:
        boxes = {operand: region for operand, _, region in self.operands}
        for k, (piece, rule) in enumerate(zip(self.iop.sources, self.spec.reads(self.iop), strict=True)):
            region = self._narrowed(boxes[f"source{k}"], rule, boxes)
            yield self._access(piece, "read", region, rule.certain, f"source{k}")
        if self.spec.reads_target(self.iop):
            yield self._access(self.iop.target, "read", boxes["target"], True, "target")
        if "buffer" in boxes:
            yield self._buffer("read", boxes["buffer"], "target")

    def _narrowed(self, region: Region, rule: Read, boxes: Mapping[str, Region]) -> Region:
        """The part of a source's box that is read."""
        origins = [(axis, given) for axis, given in (("rows", rule.rows), ("cols", rule.cols)) if given]
        if not origins:
            return region

        def make() -> Region:
            narrow = {
                axis: getattr(region, axis).narrowed(getattr(boxes[operand], other))
                for axis, (operand, other) in origins
            }
            return attrs.evolve(region, **narrow)

        by = [(axis, id(boxes[operand]), other) for axis, (operand, other) in origins]
        key = ("narrowed", id(region), *by)
        return self.seen.find(key, (region, *(boxes[operand] for _, (operand, _) in origins)), make)

    def _writes(self) -> Iterator[_Part]:
        certain = self.spec.by_data != "target"
        for operand, piece, region in self.operands:
            if operand == "target":
                yield self._access(piece, "write", region, certain, operand)
            elif operand == "buffer":
                yield self._buffer("write", region, "source0")

    def _access(
        self, piece: ISlice, kind: Literal["read", "write"], region: Region, certain: bool, operand: str
    ) -> _Part:
        phase = 0 if not self.is_group else 1 if (kind == "read") != (operand == "buffer") else 3
        return piece, kind, region, certain, operand, phase

    def _buffer(self, kind: Literal["read", "write"], region: Region, leads: str) -> _Part:
        """The buffer, which the leader alone reads in a reduce and writes in a broadcast."""
        every = self.leaders if self.spec.leads == leads else 1
        return self._access(self.iop.attrs["buffer"], kind, attrs.evolve(region, every=every), True, "buffer")


class GraphFacts:
    """A graph with what every rule asks of it, computed once."""

    def __init__(self, graph: IGraph) -> None:
        self.graph = graph
        #: Units that run; where sizes decide it, the greatest number.
        self.num_parallel = int(graph.num_parallel)
        self.seen = seen_in(graph)
        self.launch = self.seen.launch
        #: What one rule found out and another asks too, by whatever names the two agree on.
        self.memo: dict[Any, Any] = {}

    @once
    def steps(self) -> list[Step]:
        """Every iOp in program order."""
        out: list[Step] = []
        around, domain = None, None
        for position, (iop, loops) in enumerate(self.graph.walk()):
            if domain is None or loops is not around:
                around, domain = loops, self.seen.domain(loops)
            out.append(Step(iop, loops, position, domain, self.seen))
        return out

    @once
    def accesses(self) -> list[Access]:
        """Every read and write in program order."""
        return [a for step in self.steps for a in step.accesses]

    @once
    def by_pointer(self) -> dict[str, list[Access]]:
        """The accesses of every pointer, in program order."""
        out: dict[str, list[Access]] = {str(p.name): [] for p in self.graph.pointers}
        for access in self.accesses:
            out[str(access.slice.pointer.name)].append(access)
        return out

    def same_of(self, name: str) -> tuple[Hashable, list[Any]]:
        """A key that is equal for two graphs where one pointer has the same accesses, in the same order and
        loops, and what it depends on (`Seen.find`).
        """
        accesses, at = self.by_pointer[name], -1
        key: list[Hashable] = []
        for a in accesses:
            # a region is of one slice, in loops of these names
            key.append((a.slice.__chandle__(), id(a.region), a.kind, a.certain, a.phase, a.position == at))
            at = a.position
        return tuple(key), [(a.slice, a.region) for a in accesses]


#: Graphs of which a thread keeps facts: those that the passes made of one kernel, or most of them.
MOST_GRAPHS = 16

_last = threading.local()


def facts_of(graph: IGraph) -> GraphFacts:
    """The graph's steps and accesses; this thread's last graphs keep them for who asks next."""
    if not hasattr(_last, "facts"):
        _last.facts = OrderedDict()
    kept: OrderedDict[int, GraphFacts] = _last.facts
    key = graph.__chandle__()
    if key in kept:
        kept.move_to_end(key)
        return kept[key]
    facts = kept[key] = GraphFacts(graph)
    if len(kept) > MOST_GRAPHS:
        kept.popitem(last=False)
    return facts


def accesses(graph: IGraph) -> list[Access]:
    """Every read and write of a well-formed graph, in program order.

    ``sync`` and ``identity`` touch no element and are not among them.  A group form writes its buffer before
    its barrier and reads it after; leading units alone read the source and write the buffer of a broadcast,
    and read the buffer and write the target of a reduce.
    """
    return GraphFacts(graph).accesses
