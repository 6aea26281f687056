# SPDX-License-Identifier: Apache-2.0
"""Wide moves: as few as there can be, over rows as long as they can be, with the alignment that is proved.

Before::

    move.dram.reg r[0; (4,16); (16,1)], x[256*pid; (4,16); (16,1)]
    move.dram.reg r[64; (4,16); (16,1)], x[256*pid + 64; (4,16); (16,1)]

After::

    move.dram.reg r[0; (1,128); (128,1)], x[256*pid; (1,128); (128,1)] [align=512]

In this order, of the moves of every body:

* *turn*: where both sides step by one element along the rows, rows and columns are exchanged;
* *flatten*: where on both sides a row begins where the one before ends, all rows become one; bounds on rows
  become bounds on columns, as many times as a row has elements;
* *merge*: two moves that go on where the other ends, on both sides, become one, if nothing between them
  touches what they move;
* *collapse*: a loop around nothing but a move of one row becomes a move with a row for every iteration;
* *align*: `align` states the greatest power of two of bytes, up to `MAX_ALIGN`, that divides where rows start
  on both sides, counted from the start of the pointers, over all pids and iterations; a target takes its
  vector width and its choice of copy instruction from it, and the verifier checks it.

Other iOps keep their shapes: a register is the same memory however it is moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..igraph import points
from ..igraph.affine import Affine
from ..igraph.dtypes import bytes_of
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, ISlice, Loop
from ..igraph.sizes import known
from ..verify.alignment import proved
from .slices import UNBOUNDED, may_meet, valid

#: The largest alignment that is stated: no device asks for more.
MAX_ALIGN = 512

#: How many iOps back a move looks for one to join.
LOOK_BACK = 8


def run(graph: IGraph) -> IGraph:
    """The graph with wider moves; ``graph`` itself where all are wide and state their alignment."""
    walk = _Widen()
    body = walk.body(graph.body, known(graph))
    return graph.replace(body=body) if walk.changed else graph


class _Widen:
    """One walk of the loop tree, innermost loops first."""

    def __init__(self) -> None:
        self.changed = False

    def body(self, nodes: Sequence[Any], variables: points.Variables) -> list[Any]:
        """The nodes with their moves widened."""
        out: list[Any] = []
        for node in nodes:
            new = node
            if isinstance(node, Loop):
                inside = {**variables, str(node.var): int(node.extent)}
                new = self._collapsed(Loop(node.var, node.extent, self.body(node.body, inside), node.attrs))
            if isinstance(new, Loop) or not spec_of(new).copies:
                out.append(new)
                continue
            wide = self._note(new, reshaped(new))
            at = _partner(out, wide)
            if at is None:
                out.append(wide)
            else:
                self.changed = True
                out[at] = reshaped(_merged(out[at], wide) or wide)
        return [self._aligned(node, variables) for node in out]

    def _collapsed(self, loop: Loop) -> Any:
        move = loop.body[0] if len(loop.body) == 1 and not loop.attrs else None
        wide = _of_loop(loop, move) if isinstance(move, IOp) and spec_of(move).copies else None
        return loop if wide is None else self._note(loop, wide)

    def _aligned(self, node: Any, variables: points.Variables) -> Any:
        return (
            self._note(node, aligned(node, variables))
            if isinstance(node, IOp) and spec_of(node).copies
            else node
        )

    def _note(self, old: Any, new: Any) -> Any:
        self.changed |= new is not old
        return new


# --- one move --------------------------------------------------------------------------------------


def reshaped(move: IOp) -> IOp:
    """A move over rows as long as both of its sides allow; itself where they are."""
    turned = _turned(move) or move
    return _flattened(turned) or turned


def _turned(move: IOp) -> IOp | None:
    t, s = move.target, move.sources[0]
    if t.rows == 1 or t.cols == 1 or not all(p.row_stride == 1 != p.col_stride for p in (t, s)):
        return None

    def change(piece: ISlice) -> ISlice:
        r0, r1, c0, c1 = piece.valid
        return piece.replace(
            shape=(piece.cols, piece.rows), stride=(piece.stride[1], 1), rows=(c0, c1), cols=(r0, r1)
        )

    return _with(move, change(t), change(s))


def _flattened(move: IOp) -> IOp | None:
    t, s = move.target, move.sources[0]
    if t.rows == 1 or not (_is_line(t) and _is_line(s)):
        return None

    def change(piece: ISlice) -> ISlice:
        begin, end = (None if b is None else b * int(piece.cols) for b in piece.valid[:2])
        n = int(piece.rows) * int(piece.cols)
        return piece.replace(shape=(1, n), stride=(n, 1), rows=(None, None), cols=(begin, end))

    return _with(move, change(t), change(s))


def _is_line(piece: ISlice) -> bool:
    """Whether the rows of a slice follow each other without a gap, none of them being cut."""
    unit = piece.cols == 1 or piece.col_stride == 1
    return bool(unit and piece.row_stride == piece.cols and piece.valid[2:] == (None, None))


def aligned(move: IOp, variables: points.Variables) -> IOp:
    """A move that states the alignment that is proved of it; itself where it does already.

    Nothing is stated of slices with a column stride, nor where no more than one element's size is known.
    """
    t, s = move.target, move.sources[0]
    best = 0
    if t.cols > 1 and t.col_stride == s.col_stride == 1:
        stated_by = [proved(piece, variables) or MAX_ALIGN for piece in (t, s)]
        best = min(MAX_ALIGN, *(value & -value for value in stated_by))
    stated = best if best > bytes_of(str(move.dtype)) else None
    if move.attrs.get("align") == stated:
        return move
    rest = {key: value for key, value in move.attrs.items() if key != "align"}
    more = {} if stated is None else {"align": stated}
    return IOp(move.op, move.name, move.dtype, move.targets, move.sources, {**rest, **more})


def _with(move: IOp, target: ISlice, source: ISlice) -> IOp:
    rest = {key: value for key, value in move.attrs.items() if key != "align"}
    return IOp(move.op, move.name, move.dtype, [target], [source], rest)


# --- two moves -------------------------------------------------------------------------------------


def _partner(out: Sequence[Any], move: IOp) -> int | None:
    """The position of an earlier move of the body that ``move`` can become one with."""
    for at in range(len(out) - 1, max(len(out) - 1 - LOOK_BACK, -1), -1):
        node = out[at]
        if isinstance(node, Loop) or not spec_of(node).touches or "buffer" in node.attrs:
            return None
        if spec_of(node).copies and _merged(node, move) is not None:
            return at
        touches = any(may_meet(p, move.target) for p in node.slices())
        if touches or any(may_meet(p, move.sources[0]) for p in node.targets):
            return None
    return None


def _merged(a: IOp, b: IOp) -> IOp | None:
    """Two moves as one; None where they do not go on from each other."""
    pairs = ((a.target, b.target), (a.sources[0], b.sources[0]))
    if any(x.pointer.name != y.pointer.name for x, y in pairs):
        return None
    rest = [{k: v for k, v in move.attrs.items() if k != "align"} for move in (a, b)]
    bounded = any(valid(piece) != UNBOUNDED for pair in pairs for piece in pair)
    if bounded or rest[0] != rest[1] or any(may_meet(x, y) for x, y in _crossed(pairs)):
        return None
    for first, second in ((0, 1), (1, 0)):
        for join in (_side_by_side, _stacked):
            joined = [join(pair[first], pair[second]) for pair in pairs]
            if joined[0] is not None and joined[1] is not None:
                return _with(a, joined[0], joined[1])
    return None


def _crossed(pairs: Any) -> list[tuple[ISlice, ISlice]]:
    (t, u), (s, v) = pairs
    return [(t, v), (u, s), (t, s), (u, v)]


def _side_by_side(a: ISlice, b: ISlice) -> ISlice | None:
    """``a`` and, where its columns end, ``b``."""
    shift = b.offset - a.offset
    same = a.rows == b.rows and (a.rows == 1 or a.stride[0] == b.stride[0])
    unit = all(p.cols == 1 or p.col_stride == 1 for p in (a, b))
    if not (same and unit and shift == int(a.cols)):
        return None
    cols = int(a.cols + b.cols)
    return a.replace(shape=(a.rows, cols), stride=(a.stride[0] if a.rows > 1 else cols, 1))


def _stacked(a: ISlice, b: ISlice) -> ISlice | None:
    """``a`` and, where its rows end, ``b``."""
    same = a.cols == b.cols and (a.cols == 1 or a.stride[1] == b.stride[1])
    steps = {p.stride[0] for p in (a, b) if p.rows > 1}
    if not same or len(steps) != 1:
        return None
    step = steps.pop()
    if not b.offset - a.offset == step * int(a.rows):
        return None
    return a.replace(shape=(a.rows + b.rows, a.cols), stride=(step, a.stride[1]))


# --- a loop of moves -------------------------------------------------------------------------------


@attrs.frozen
class _Line:
    """A slice of one row as a loop steps over it."""

    piece: ISlice
    base: Affine
    step: int


def _of_loop(loop: Loop, move: IOp) -> IOp | None:
    """The moves of all iterations as one with a row for each."""
    lines = [_line(piece, str(loop.var)) for piece in (move.target, move.sources[0])]
    t, s = lines
    if t is None or s is None or loop.extent < 2 or t.piece.pointer.name == s.piece.pointer.name:
        return None
    # rows that overlap would be written in an order that one move does not have
    if min(t.step, s.step) < t.piece.cols:
        return None

    def rows(line: _Line) -> ISlice:
        piece = line.piece
        return piece.replace(
            offset=line.base, shape=(loop.extent, piece.cols), stride=(line.step, piece.stride[1])
        )

    return reshaped(_with(move, rows(t), rows(s)))


def _line(piece: ISlice, variable: str) -> _Line | None:
    step = piece.offset.coefficient(variable)
    base = piece.offset.substitute({variable: 0})
    at_one = piece.offset.substitute({variable: 1})
    plain = piece.offset.is_linear_in(variable)
    unit = piece.cols == 1 or piece.col_stride == 1
    if piece.rows != 1 or valid(piece) != UNBOUNDED or not plain or not unit or not (at_one - base) == step:
        return None
    return _Line(piece, base, step)
