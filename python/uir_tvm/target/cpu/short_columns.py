# SPDX-License-Identifier: Apache-2.0
"""Windows of few elements, of pools: what they make of a vector of results stays in registers.

Before::

    fill s [-inf]
    for i in 3:
        move.dram.reg t[0; (3,56)], x[i + ..; (3,56); (112,2)] [pad=-inf]
        reduce.max.col u, t[0; (3,56)]
        binary.max s, s, u
    move.reg.dram y, s

After, three times in a row: one loop over columns does all of it, which loads the window and stores once::

    move.dram.reg t[0; (1,56)], x[i + ..; (1,56)] [pad=-inf];  t[56; (1,56)], ..;  t[112; (1,56)], ..
    reduce.max.col u, t[0; (3,56)] [in_registers]
    binary.max s, s, u

A loop keeps its accumulator in memory, one pass over a row of results in every round; so does a reduction
along columns.  Longer ones than `MOST_LOADS` stay loops: their code would be long, and memory is what they
wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...igraph.affine import Affine, affine
from ...igraph.iops import spec_of
from ...igraph.nodes import IGraph, IOp, ISlice, Loop
from ...igraph.rewrite import substituted
from .elements import element

#: The attribute of a reduction along columns that takes the rows of its source as so many operands.
IN_REGISTERS = "in_registers"
#: Loads of a window at most: of 5x5 elements, or of 3x3x3.
MOST_LOADS = 32
#: iOps that may stand in a window: each makes an element of those at its own coordinate.
_ELEMENTWISE = frozenset({"move", "fill", "unary", "binary", "compare", "select", "broadcast", "cast"})


def windows(graph: IGraph) -> IGraph:
    """The graph with short windows as straight lines of iOps over one row."""
    read = Counter(str(piece.pointer.name) for iop, _ in graph.walk() for piece in _read(iop))
    written = Counter(str(piece.pointer.name) for iop, _ in graph.walk() for piece in iop.targets)
    body = _Windows(read, written).body(graph.body)
    return graph if body is None else graph.replace(body=body)


class _Windows:
    """One walk of a loop tree; how often pointers are read and written decides which tiles may be parted."""

    def __init__(self, read: Counter[str], written: Counter[str]) -> None:
        self.read, self.written = read, written

    def body(self, nodes: Sequence[Any]) -> list[Any] | None:
        """The nodes of a body with their windows as straight lines; None where there are none."""
        out: list[Any] = []
        changed = False
        for node in nodes:
            if not isinstance(node, Loop):
                out.append(node)
                continue
            inner = self.body(node.body)
            changed |= inner is not None
            inner = list(node.body) if inner is None else inner
            line = self._line(node, inner)
            changed |= line is not None
            out += [Loop(node.var, node.extent, inner, node.attrs)] if line is None else line
        parted = self._parted(out)
        return parted if parted is not None else out if changed else None

    def _line(self, loop: Loop, inner: list[Any]) -> list[Any] | None:
        """The rounds of a loop one after the other, where it makes rows of results of short windows."""
        if dict(loop.attrs) or not all(isinstance(node, IOp) for node in inner):
            return None
        loads = sum(_loads(iop) for iop in inner)
        if not 0 < loads * int(loop.extent) <= MOST_LOADS:
            return None
        if not all(map(_is_one_row, inner)) or not any(_goes_on(iop, str(loop.var)) for iop in inner):
            return None
        return [substituted(iop, {str(loop.var): affine(k)}) for k in range(loop.extent) for iop in inner]

    def _parted(self, nodes: list[Any]) -> list[Any] | None:
        """Reductions of few rows along columns marked, and what brings their tiles by rows."""
        moves: dict[str, int] = {}
        out: list[list[Any]] = []
        changed = False
        for node in nodes:
            out.append([node])
            if isinstance(node, Loop):
                moves.clear()
                continue
            source = node.sources[0] if node.sources else None
            if source is not None and _is_short(node):
                brought = moves.get(str(source.pointer.name))
                if source.pointer.level == "dram" or brought is not None:
                    changed = True
                    out[-1] = [_marked(node)]
                if brought is not None:
                    out[brought] = list(_by_rows(out[brought][0]))
            if self._brings(node):
                moves[str(node.target.pointer.name)] = len(out) - 1
        return [node for several in out for node in several] if changed else None

    def _brings(self, iop: IOp) -> bool:
        """Whether an iOp brings a tile for one reader."""
        target = iop.target if iop.targets else None
        if iop.op != "move" or target is None or target.pointer.level != "reg":
            return False
        name = str(target.pointer.name)
        rows = (*target.valid[:2], *(() if "pad" in iop.attrs else iop.sources[0].valid[:2]))
        once = self.read[name] == self.written[name] == 1
        return once and rows.count(None) == len(rows) and not iop.sources[0].open_strides


def _read(iop: IOp) -> Iterator[ISlice]:
    yield from iop.sources
    if spec_of(iop).keeps_target(iop):
        yield from iop.targets


def _is_short(iop: IOp) -> bool:
    """Whether an iOp reduces few rows, all of which exist, along the columns."""
    if iop.op != "reduce" or (iop.attrs["axis"], iop.attrs["scope"]) != ("col", "unit"):
        return False
    if IN_REGISTERS in iop.attrs:
        return False
    source, kind = iop.sources[0], element(iop.dtype)
    exists = source.valid[:2] == (None, None) and iop.target.valid[:2] == (None, None)
    return exists and kind.compute != "bool" and 1 < int(source.rows) <= MOST_LOADS and int(source.cols) > 1


def _marked(iop: IOp) -> IOp:
    return IOp(iop.op, iop.name, iop.dtype, iop.targets, iop.sources, {**iop.attrs, IN_REGISTERS: 1})


def _by_rows(move: IOp) -> Iterator[IOp]:
    """A move as one of every row."""
    target, source = move.target, move.sources[0]
    for row in range(target.rows):
        pieces = [_row(piece, row) for piece in (target, source)]
        yield IOp(move.op, move.name, move.dtype, pieces[:1], pieces[1:], move.attrs)


def _row(piece: ISlice, row: int) -> ISlice:
    def moved(bound: Affine | None) -> Affine | None:
        return None if bound is None else bound - row

    bounds = (moved(piece.row_begin), moved(piece.row_end))
    down, along = piece.stride
    shape = (1, int(piece.cols))
    return piece.replace(offset=piece.offset + row * down, shape=shape, stride=(down, along), rows=bounds)


def _loads(iop: IOp) -> int:
    """How many rows of a tensor an iOp loads."""
    return sum(int(piece.rows) for piece in iop.sources if piece.pointer.level == "dram")


def _is_one_row(iop: IOp) -> bool:
    """Whether an iOp makes a row in reg, each element of what lies at its own column."""
    if iop.op not in _ELEMENTWISE and IN_REGISTERS not in iop.attrs:
        return False
    target = iop.target
    return int(target.rows) == 1 and int(target.cols) > 1 and target.pointer.level == "reg"


def _goes_on(iop: IOp, variable: str) -> bool:
    """Whether an iOp makes of what it made in the round before."""
    target = iop.target
    same = any(source.pointer.name == target.pointer.name for source in iop.sources)
    return same and variable not in target.offset.variables()


__all__ = ["IN_REGISTERS", "windows"]
