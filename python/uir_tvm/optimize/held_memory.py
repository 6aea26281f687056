# SPDX-License-Identifier: Apache-2.0
"""Registers that hold what memory holds: reads of that memory become reads of the register.

A walk in program order keeps a list of holdings: slices of dram or sram with the reg slice that has the same
elements, because a move just loaded them from there or stored them to there.  A load of a slice that is held
needs no memory: whoever reads what it loaded reads the register, and the load goes; where some reader cannot
(the register is overwritten before), the load becomes a copy within reg.

Why the memory still has these elements.  A holding ends at any later iOp that may write them, be it another
unit that does, and does not pass into a loop that holds such an iOp.  All units run the same loop tree, and a
graph is free of races, so that a write of another unit is separated from the two accesses by barriers and
comes at its place in the text: between them only if it stands between them.  Hence a sync in between changes
nothing.  The slices have equal formulas, so that it is one unit that stored and loads, in one iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, ISlice, Loop, walk_body
from ..verify.access import Access, GraphFacts
from .edit import Change, edited, with_slices
from .flow import facts_of, flow_of
from .reaching_definitions import Use
from .slices import UNBOUNDED, covers, may_meet, place, span, valid

#: iOps that may read a register in place of memory as they stand; others want their operands as laid out.
READERS = frozenset({"unary", "binary", "compare", "select", "cast", "broadcast", "reduce"})


@attrs.frozen(eq=False)
class _Holding:
    """``home`` has the elements of ``memory`` inside of ``box`` (None where a side has no bound).

    ``pad``: the source's bounds and the number outside of them, where the load padded.
    """

    memory: ISlice
    home: ISlice
    box: tuple[str | None, ...]
    pad: tuple[Any, ...] | None


def forward(graph: IGraph, *, loads: bool = False, stores: bool = False, copies: bool = False) -> IGraph:
    """The graph with reads of held memory replaced.

    Parameters
    ----------
    loads, stores : bool
        Whether a load, a store makes a holding.
    copies : bool
        Whether copies within reg of the same layout go where all readers can read the original.

    Returns
    -------
    IGraph
        ``graph`` itself where nothing changes.
    """
    walk = _HeldWalk(graph, loads, stores, copies)
    walk.body(graph.body, [], 0)
    return edited(graph, walk.changes)


class _HeldWalk:
    def __init__(self, graph: IGraph, loads: bool, stores: bool, copies: bool) -> None:
        self.loads, self.stores, self.copies = loads, stores, copies
        self.facts: GraphFacts = facts_of(graph)
        self.flow = flow_of(graph)
        self.changes: dict[int, Change] = {}
        #: operands to exchange when the walk comes to their iOp: position -> operand -> slice
        self.pending: dict[int, dict[str, ISlice]] = {}

    def body(self, body: Sequence[Any], held: list[_Holding], at: int) -> tuple[list[_Holding], int]:
        """Walk a body that starts at position ``at``; what is held after it, and the position there."""
        for node in body:
            if isinstance(node, Loop):
                end = at + sum(1 for _ in walk_body([node]))
                for position in range(at, end):
                    held = self._after_writes(position, held)
                inner, _ = self.body(node.body, held, at)
                held, at = [h for h in inner if not _uses(h, str(node.var))], end
            else:
                held = self._iop(node, held, at)
                at += 1
        return held, at

    def _iop(self, iop: IOp, held: list[_Holding], at: int) -> list[_Holding]:
        if at in self.pending:
            iop = with_slices(iop, self.pending[at])
            self.changes[at] = iop
        if iop.op in READERS:
            iop = self._operands(iop, held, at)
        if spec_of(iop).copies and self._gone(iop, held, at):
            # what it would have held, the older holding holds
            return held if self.changes[at] is None else self._after_writes(at, held)
        held = self._after_writes(at, held)
        return [*held, *self._made(iop)]

    def _operands(self, iop: IOp, held: Sequence[_Holding], at: int) -> IOp:
        """The iOp with registers in place of the memory that it reads."""
        found: dict[str, ISlice] = {}
        for k, source in enumerate(iop.sources):
            home = _home(source, valid(source), None, held) if source.pointer.level != "reg" else None
            if home is not None and place(home)[2:4] == place(source)[2:4]:
                found[f"source{k}"] = home.replace(rows=source.valid[:2], cols=source.valid[2:])
        if found:
            iop = with_slices(iop, found)
            self.changes[at] = iop
        return iop

    def _gone(self, load: IOp, held: Sequence[_Holding], at: int) -> bool:
        """Whether a move was replaced."""
        target, source = load.target, load.sources[0]
        if target.pointer.level != "reg":
            return False
        pad = _pad(load)
        if source.pointer.level == "reg":
            home = source if self.copies and pad is None and _same_layout(target, source) else None
        else:
            home = _home(source, valid(target), pad, held)
        if home is None:
            return False
        if place(home) == place(target):
            self.changes[at] = None  # the register has these elements already
            return True
        uses = self.flow.uses.get(at, [])
        readers = [self._redirected(use, target, home, at) for use in uses]
        if all(piece is not None for piece in readers):
            for use, piece in zip(uses, readers, strict=True):
                assert piece is not None
                self.pending.setdefault(use.access.position, {})[use.access.operand] = piece
            self.changes[at] = None
            return True
        if source.pointer.level == "reg" or home.shape != target.shape:
            return False
        copied = home.replace(rows=target.valid[:2], cols=target.valid[2:])
        self.changes[at] = IOp("move", "", load.dtype, [target], [copied])
        return True

    def _redirected(self, use: Use, target: ISlice, home: ISlice, at: int) -> ISlice | None:
        """What a reader of the load's target may read instead."""
        access = use.access
        if not use.sole or not access.operand.startswith("source"):
            return None
        if not self._undisturbed(home, at, access):
            return None
        return _through(access.slice, target, home)

    def _undisturbed(self, home: ISlice, at: int, reader: Access) -> bool:
        """Whether nothing writes ``home`` from the load to the reader, in any iteration of loops between."""
        around = {str(loop.var) for loop in self.facts.steps[at].loops}
        inner = [str(loop.var) for loop in reader.loops if str(loop.var) not in around]
        end = reader.position
        while inner and end + 1 < len(self.facts.steps):
            if inner[0] not in {str(loop.var) for loop in self.facts.steps[end + 1].loops}:
                break
            end += 1
        writes = self.facts.by_pointer[str(home.pointer.name)]
        return not any(
            w.kind == "write" and at < w.position <= end and may_meet(w.slice, home) for w in writes
        )

    def _after_writes(self, at: int, held: list[_Holding]) -> list[_Holding]:
        """What is still held after an iOp's writes."""
        for write in self.facts.steps[at].accesses:
            if write.kind == "write":
                held = [h for h in held if not _ends(write, h)]
        return held

    def _made(self, iop: IOp) -> Iterator[_Holding]:
        if not spec_of(iop).copies:
            return
        target, source, pad = iop.target, iop.sources[0], _pad(iop)
        if target.pointer.level == "reg" and source.pointer.level != "reg":
            if self.loads:
                yield _Holding(source, target, valid(target), pad)
        elif source.pointer.level == "reg" and target.pointer.level != "reg":
            if self.stores and pad is None:
                yield _Holding(target, source, valid(target), None)


def _ends(write: Access, holding: _Holding) -> bool:
    """Whether a write may change what a holding says."""
    name = write.slice.pointer.name
    if name == holding.home.pointer.name and may_meet(write.slice, holding.home):
        return True
    return name == holding.memory.pointer.name and not _apart(write, holding.memory)


def _apart(write: Access, memory: ISlice) -> bool:
    """Whether no unit writes, in any iteration, what lies in a slice on any unit, in any iteration."""
    if not (memory.offset.is_constant and write.slice.offset.is_constant):
        return False
    (low, high), (first, last) = span(memory), span(write.slice)
    shift = write.slice.offset.constant - memory.offset.constant
    return high < first + shift or last + shift < low


def _home(
    source: ISlice,
    box: tuple[str | None, ...],
    pad: tuple[Any, ...] | None,
    held: Sequence[_Holding],
) -> ISlice | None:
    """The register with the elements that a load of ``source`` puts into ``box`` of its target."""
    for h in reversed(held):
        if h.memory.pointer.name != source.pointer.name or h.pad != pad:
            continue
        same = place(h.memory) == place(source)
        if h.box not in (UNBOUNDED, box) or (h.box != UNBOUNDED and not same):
            continue
        if same:
            return h.home
        if pad is None and h.memory.valid == UNBOUNDED and source.valid == UNBOUNDED:
            inside = covers(h.memory, source) and _same_layout(h.memory, h.home)
            if inside:
                return _shifted(source, h.memory, h.home)
    return None


def _through(piece: ISlice, target: ISlice, home: ISlice) -> ISlice | None:
    """``piece``, elements of ``target``, as elements of ``home``, which has the same shape."""
    if place(piece) == place(target):
        return piece.replace(pointer=home.pointer, offset=home.offset, stride=home.stride)
    return _shifted(piece, target, home) if _same_layout(target, home) else None


def _shifted(piece: ISlice, a: ISlice, b: ISlice) -> ISlice:
    """``piece`` as far from ``b`` as it is from ``a``."""
    return piece.replace(pointer=b.pointer, offset=piece.offset + (b.offset - a.offset))


def _same_layout(a: ISlice, b: ISlice) -> bool:
    """Whether elements of equal coordinates lie equally far from the first of each."""
    if a.shape != b.shape:
        return False
    return place(a)[4:] == place(b)[4:]


def _pad(move: IOp) -> tuple[Any, ...] | None:
    """What a move writes where its source has no element: the source's bounds and the number."""
    bounds = valid(move.sources[0])
    return (bounds, repr(move.attrs["pad"])) if "pad" in move.attrs and bounds != UNBOUNDED else None


def _uses(holding: _Holding, variable: str) -> bool:
    """Whether a holding depends on a loop variable."""
    pieces = (holding.memory, holding.home)
    values = [v for piece in pieces for v in (piece.offset, *piece.valid) if v is not None]
    return any(variable in value.variables() for value in values)
