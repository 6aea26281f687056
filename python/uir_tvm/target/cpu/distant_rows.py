# SPDX-License-Identifier: Apache-2.0
"""Rows of memory that are added up, four distant ones at once, half a page of each in turn.

A processor that reads ahead into the next page has it while three others are read.

Before::

    for i in 4 * n: for c in columns: sum += x[i, c]

After::

    for i in n: for c in turns: for k in 4: for d in turn: sum[k] += x[i + k * n, c * turn + d]

Each row is added up in the same order as before.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Expr

from ...igraph.affine import affine
from ...igraph.dtypes import bytes_of
from ...igraph.nodes import HardwareModel, Loop
from .actions import MAP, REDUCE_ROW, Action
from .address import index
from .beside import rounds
from .code import Code
from .emit_group import GroupEmitter, NestRow, Range
from .emit_nest import NestEmitter
from .groups import ColumnGroup, RowNest
from .processors import reads_pages_apart
from .row_loops import SHORT_ROW
from .runs import step_of, summed_runs
from .tiles import TILES
from .values import OperandValues, Origin

#: Bytes that are read of a row in turn: of rows that begin anywhere in a page less is faster than a page of
#: each, of others as fast.
TURN = 2048


def distant_rows(nest: RowNest, values: OperandValues, hw: HardwareModel, loop: Loop) -> int:
    """How many rounds of a loop around a nest are done at once; 1 where that brings nothing, or may not be.

    Rows of a result are apart from round to round, and nothing of one round is read in another.
    """
    name = str(loop.var)
    if not reads_pages_apart(hw) or not summed_runs(nest, values, hw, name):
        return 1
    wide, *others = [group.cols for group in nest.groups]
    if wide <= SHORT_ROW or max(others, default=1) > 1 or nest.groups[0].times > 1:
        return 1
    if not _is_apart(nest, values, name):
        return 1
    return next((runs for runs in range(TILES.runs, 1, -1) if loop.extent % runs == 0), 1)


def _is_apart(nest: RowNest, values: OperandValues, loop: str) -> bool:
    """Whether rounds may be done in any order."""
    stored = [action for action in nest.actions if values.stored(action)]
    written = {action.write.pointer.name for action in stored}
    for action in nest.actions:
        if action.kind not in (MAP, REDUCE_ROW) or action.tables or action.box != (None, None, None, None):
            return False
        for read, source in zip(action.reads, values.sources[id(action)], strict=True):
            from_memory = source.origin == Origin.MEMORY and read.access.pointer.name in written
            if read.guard is not None or from_memory:
                return False
    return all(_is_new(action, loop) for action in stored)


def _is_new(action: Action, loop: str) -> bool:
    """Whether each round of a loop writes a column of rows that no other round writes."""
    access, step = action.write, step_of(action.write, loop)
    if access.pointer.level != "dram" or (action.kind == MAP and action.cols > 1):
        return False
    follows = step == affine(action.rows * access.row) and access.row != 0
    return follows if action.rows > 1 else not step.variables() and step != affine(0)


def emit_distant(code: Code, nest: RowNest, emitters: Sequence[NestEmitter]) -> None:
    """Append a round for each of some emitters, whose scopes have the loop at different places."""
    wide, *others = nest.groups

    def body(inner: Code, number: Expr) -> None:
        rows = [emitter.begin_group(inner, wide, NestRow(nest, number), {}) for emitter in emitters]
        _in_turn(inner, rows, wide)
        for emitter, row in zip(emitters, rows, strict=True):
            emitter.end_row(inner, row, others)

    code.loop(index(0), index(nest.rows), 1, body, "r")


def _in_turn(code: Code, rows: Sequence[GroupEmitter], wide: ColumnGroup) -> None:
    """The columns of some rows, some of each in turn."""
    width = max(bytes_of(read.access.pointer.dtype) for action in wide.actions for read in action.reads)
    copies = max((reduction.copies for reduction in rows[0].reductions.values()), default=1)
    step = copies * rows[0].lanes
    most = min(TURN // width, wide.cols) // step * step
    turns = wide.cols // most if most else 0

    def turn(inner: Code, begin: Expr) -> None:
        for row in rows:
            rounds(row, inner, begin, most, copies)

    code.loop(index(0), index(turns), most, turn, "turn")
    begin, end = index(turns * most), index(wide.cols)
    for row in rows:
        row.columns(code, Range(begin, end, begin, end))
