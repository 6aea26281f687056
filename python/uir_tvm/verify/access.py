# SPDX-License-Identifier: Apache-2.0
"""What every iOp of a graph touches: the reads and writes on which bounds, coverage and races are decided."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

import attrs
import islpy

from ..errors import VerifyError
from ..igraph.iops import IOPS, problems
from ..igraph.nodes import IGraph, IOp, ISlice, Loop
from ..igraph.text import print_iop
from . import isl
from .region import PID, Region, region_of

#: Which axis of which operand bounds an axis of a source; None: nothing but the source's own bounds.
AxisOf = tuple[str, str] | None

_ROWS: AxisOf = ("target", "rows")
_COLS: AxisOf = ("target", "cols")


@attrs.frozen
class SourceRule:
    """How the box that is read of one source follows from the other boxes.

    Parameters
    ----------
    rows, cols : AxisOf
        The axis whose range the source's rows (columns) are read over.
    required : bool
        Whether all of that range must be valid in the source; otherwise what is not is left out.
    certain : bool
        Whether all of it is read; otherwise the data decides which part.
    """

    rows: AxisOf = _ROWS
    cols: AxisOf = _COLS
    required: bool = True
    certain: bool = True


_SAME = SourceRule()

#: iOps of which an element of the target comes from that element of every source.
ELEMENTWISE = ("fill", "iota", "unary", "binary", "compare", "select", "cast")


def _by_axis(row: SourceRule, col: SourceRule) -> Callable[[IOp], tuple[SourceRule, ...]]:
    return lambda iop: (row if iop.attrs["axis"] == "row" else col,)


def _gather(iop: IOp) -> tuple[SourceRule, ...]:
    table, index = iop.sources
    if index.shape == (iop.target.rows, 1) and table.cols == iop.target.cols:
        return SourceRule(None, _COLS, certain=False), SourceRule(_ROWS, None)
    return SourceRule(None, None, certain=False), _SAME


def _scatter(iop: IOp) -> tuple[SourceRule, ...]:
    source, index = iop.sources
    by_row = index.shape == (source.rows, 1) and iop.target.cols == source.cols
    cols: AxisOf = None if by_row else ("source0", "cols")
    return SourceRule(None, None), SourceRule(("source0", "rows"), cols)


def _elementwise(iop: IOp) -> tuple[SourceRule, ...]:
    return (_SAME,) * len(iop.sources)


#: The symbolic form of the ``reads`` column of the iOp table: a rule per source.  An iOp that is not listed
#: is refused: nothing is known of what it reads.
SOURCE_RULES: dict[str, Callable[[IOp], tuple[SourceRule, ...]]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "move": lambda iop: (SourceRule(required="pad" not in iop.attrs),),
    "broadcast": _by_axis(SourceRule(_ROWS, None), SourceRule(None, _COLS)),
    "reduce": _by_axis(SourceRule(_ROWS, None, required=False), SourceRule(None, _COLS, required=False)),
    "transpose": lambda iop: (SourceRule(_COLS, _ROWS),),
    "gather": _gather,
    "scatter": _scatter,
    "contract": lambda iop: (SourceRule(_ROWS, None), SourceRule(("source0", "cols"), _COLS)),
}

#: iOps that name memory without reading or writing its elements.
UNTOUCHED = frozenset({"sync", "identity"})


def source_rules(iop: IOp) -> tuple[SourceRule, ...]:
    """The rule of every source of ``iop``.

    Raises
    ------
    VerifyError
        It has none (rule ``form``).
    """
    rules = SOURCE_RULES.get(str(iop.op))
    if rules is None:
        raise VerifyError(
            f"The verifier has no rule of what {iop.op} reads.",
            rule="form",
            where=print_iop(iop),
            need="an entry in uir_tvm.verify.access.SOURCE_RULES for every iOp that touches memory",
        )
    return rules(iop)


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

    @cached_property
    def relation(self) -> islpy.Map:
        """``{ [pid, loop variables...] -> [address] }`` in this thread's isl context."""
        return isl.relation(self.region, self.variables)


@attrs.frozen(slots=False, eq=False)
class Step:
    """One iOp where it stands."""

    iop: IOp
    loops: tuple[Loop, ...]
    position: int
    extents: Mapping[str, int]

    @cached_property
    def is_group(self) -> bool:
        """Whether units join in it."""
        return self.iop.attrs.get("scope") == "group"

    @property
    def leaders(self) -> int:
        """Group size of a group form, 1 otherwise."""
        return int(self.iop.attrs["group_size"]) if self.is_group else 1

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What breaks the iOp table's rules: (rule, sentence) each."""
        return problems(self.iop)

    @cached_property
    def operands(self) -> tuple[tuple[str, ISlice, Region], ...]:
        """(operand, slice, its whole valid box) of every slice that the iOp names."""
        return tuple(self._operands())

    def _operands(self) -> Iterator[tuple[str, ISlice, Region]]:
        every_target = self.leaders if self.iop.op == "reduce" else 1
        every_source = self.leaders if self.iop.op == "broadcast" else 1
        for piece in self.iop.targets:
            yield "target", piece, region_of(piece, self.extents, every_target)
        for k, piece in enumerate(self.iop.sources):
            yield f"source{k}", piece, region_of(piece, self.extents, every_source)
        if "buffer" in self.iop.attrs:
            piece = self.iop.attrs["buffer"]
            yield "buffer", piece, region_of(piece, self.extents)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """What it reads, then what it writes; a group form does both before and after its barrier."""
        if self.iop.op in UNTOUCHED:
            return ()
        both = (*self._reads(), *self._writes())
        return tuple(sorted(both, key=lambda a: a.phase)) if self.is_group else both

    def _reads(self) -> Iterator[Access]:
        boxes = {operand: region for operand, _, region in self.operands}
        for k, (piece, rule) in enumerate(zip(self.iop.sources, source_rules(self.iop), strict=True)):
            region = boxes[f"source{k}"]
            for axis, origin in (("rows", rule.rows), ("cols", rule.cols)):
                if origin is not None:
                    narrowed = getattr(region, axis).narrowed(getattr(boxes[origin[0]], origin[1]))
                    region = attrs.evolve(region, **{axis: narrowed})
            yield self._access(piece, "read", region, rule.certain, f"source{k}")
        if IOPS[self.iop.op].reads_target(self.iop):
            yield self._access(self.iop.target, "read", boxes["target"], True, "target")
        if "buffer" in boxes:
            yield self._buffer("read", boxes["buffer"], "reduce")

    def _writes(self) -> Iterator[Access]:
        certain = self.iop.op != "scatter"
        for operand, piece, region in self.operands:
            if operand == "target":
                yield self._access(piece, "write", region, certain, operand)
            elif operand == "buffer":
                yield self._buffer("write", region, "broadcast")

    def _access(
        self, piece: ISlice, kind: Literal["read", "write"], region: Region, certain: bool, operand: str
    ) -> Access:
        phase = 0 if not self.is_group else 1 if (kind == "read") != (operand == "buffer") else 3
        return Access(self.iop, self.loops, self.position, piece, kind, region, certain, operand, phase)

    def _buffer(self, kind: Literal["read", "write"], region: Region, by_leader: str) -> Access:
        """The buffer, which the leader alone reads in a reduce and writes in a broadcast."""
        every = self.leaders if self.iop.op == by_leader else 1
        return self._access(self.iop.attrs["buffer"], kind, attrs.evolve(region, every=every), True, "buffer")


class Program:
    """A graph with what every rule asks of it, computed once."""

    def __init__(self, graph: IGraph) -> None:
        self.graph = graph
        self.num_parallel = int(graph.num_parallel)
        #: What one rule found out and another asks too, by whatever names the two agree on.
        self.memo: dict[Any, Any] = {}

    @cached_property
    def steps(self) -> list[Step]:
        """Every iOp in program order."""
        return [
            Step(iop, loops, position, {PID: self.num_parallel, **{str(n.var): int(n.extent) for n in loops}})
            for position, (iop, loops) in enumerate(self.graph.walk())
        ]

    @cached_property
    def accesses(self) -> list[Access]:
        """Every read and write in program order."""
        return [a for step in self.steps for a in step.accesses]

    @cached_property
    def by_pointer(self) -> dict[str, list[Access]]:
        """The accesses of every pointer, in program order."""
        out: dict[str, list[Access]] = {str(p.name): [] for p in self.graph.pointers}
        for access in self.accesses:
            out[str(access.slice.pointer.name)].append(access)
        return out


_last = threading.local()


def program_of(graph: IGraph) -> Program:
    """The graph's steps and accesses; this thread's last graph keeps them for who asks next."""
    if getattr(_last, "program", None) is None or _last.program.graph is not graph:
        _last.program = Program(graph)
    program: Program = _last.program
    return program


def accesses(graph: IGraph) -> list[Access]:
    """Every read and write of a well-formed graph, in program order.

    ``sync`` and ``identity`` touch no element and are not among them.  A group form writes its buffer before
    its barrier and reads it after; leading units alone read the source and write the buffer of a broadcast,
    and read the buffer and write the target of a reduce.
    """
    return Program(graph).accesses
