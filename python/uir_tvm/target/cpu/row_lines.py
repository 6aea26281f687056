# SPDX-License-Identifier: Apache-2.0
"""Rows that are no whole vectors and follow each other in a large result, stored past the caches by lines.

A line of the result that two rows share is put together in a register, of the last columns of one and the
first of the next.  A tile that is put together in the first cache and copied to memory takes longer: its
loads wait for stores, and these for those to memory before them.  Lines that two tiles share are stored as
others are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from ...igraph.nodes import IGraph
from .actions import MAP, Action
from .address import distance, index
from .code import Code
from .element_access import WHOLE
from .elements import element
from .emit_group import GroupEmitter, NestRow
from .emit_value import Point
from .first_lanes import COUNT, exist, supported
from .groups import RowNest
from .processors import has_avx512
from .spans import MOST_LANES
from .stream import to_alignment
from .values import Origin

if TYPE_CHECKING:
    from .emit_nest import NestEmitter

#: Vectors of a row at least: a line has columns of two rows at most.
LEAST = 2
#: iOps of elements, at any of their columns.
ELEMENTWISE = frozenset({"move", "broadcast", "unary", "binary", "select", "compare", "cast", "fill"})


def only_elements(graph: IGraph) -> bool:
    """Whether a graph has nothing but iOps of elements, each of its own pointer: one nest, in registers."""
    iops = [iop for iop, _ in graph.walk()]
    if not has_avx512(graph.hardware) or not all(iop.op in ELEMENTWISE for iop in iops):
        return False
    return len({str(iop.target.pointer.name) for iop in iops}) == len(iops)


def shared_line(cols: int, lanes: int) -> bool:
    """Whether rows that follow each other share lines of so many elements, two rows one at most."""
    return cols >= LEAST * lanes and cols % lanes != 0 and lanes <= MOST_LANES


def line_store(emitter: NestEmitter, nest: RowNest) -> Action | None:
    """What stores the rows of a nest, where they are stored so; None: they are not."""
    (group, *others), kernel, values = nest.groups, emitter.kernel, emitter.values
    if others or nest.rows == 1 or not kernel.avx512:
        return None
    stored = [action for action in nest.actions if values.stored(action)]
    lanes = emitter.lanes(group)
    if len(stored) != 1 or not shared_line(group.cols, lanes):
        return None
    (store,), access = stored, stored[0].write
    size = bytes_of(access.pointer.dtype)
    if access.row != group.cols or access.pointer.dims or size * lanes != emitter.streams.line:
        return None
    if not emitter.streams.wanted(store, 1, lanes) or not all(map(_is_plain, nest.actions)):
        return None
    for action in nest.actions:
        for read, source in zip(action.reads, values.sources[id(action)], strict=True):
            kind = element(read.access.pointer.dtype)
            if source.origin == Origin.REGISTER and read.guard is None:
                continue
            fits = read.access.col in (0, 1) and supported(read.access.pointer.dtype, kernel.masked)
            if source.origin != Origin.MEMORY or not fits or kind.storage != kind.compute:
                return None
            if read.guard is not None and read.access.col == 0:
                return None
    return store


def _is_plain(action: Action) -> bool:
    return action.kind == MAP and action.box == WHOLE and not action.tables and not action.indexed_rows


def emit_lines(emitter: NestEmitter, code: Code, nest: RowNest, store: Action) -> None:
    """The loop over rows.

    For rows of ``c`` columns and lines of ``n`` elements, of which the first begins at column ``left``::

        store columns [0, left) of the first row one by one
        for r in rows:
            for each line within the row: store its n columns, without masks where all operands exist
            if there is a next row: store the line of the last columns of this and the first of that
            else: store the last columns one by one
    """
    _Lines(emitter, nest, store).emit(code)


class _Lines:
    """One nest that is stored line by line."""

    def __init__(self, emitter: NestEmitter, nest: RowNest, store: Action) -> None:
        self.emitter, self.nest, self.store = emitter, nest, store
        self.lanes, self.cols = emitter.lanes(nest.groups[0]), nest.groups[0].cols
        self.guarded = any(read.guard is not None for action in nest.actions for read in action.reads)

    def emit(self, code: Code) -> None:
        """Append the loop."""
        kernel, streams = self.emitter.kernel, self.emitter.streams
        line = (self.store.write, streams.line)
        first = code.bind_index(to_alignment(kernel.memory, kernel.scope, line, index(0), index(0)))
        streams.use()
        self._group(code, index(0)).one_by_one(code, index(0), first, True)

        def row(inner: Code, number: Expr, is_last: bool = False) -> None:
            # lines begin further left by what a row has beyond whole ones
            step = index(-self.cols % self.lanes)
            left = inner.bind_index(tirx.bitwise_and(first + number * step, index(self.lanes - 1)))
            whole = inner.bind_index(tirx.truncdiv(index(self.cols) - left, index(self.lanes)))
            group = self._group(inner, number)

            def lines(begin: Expr, behind: Expr, guarded: bool) -> None:
                def within(then: Code, col: Expr) -> None:
                    value = group.value(then, self.store, Point(number, col, self.lanes, guarded))
                    self._put(then, number, col, value)

                first_column = left + begin * index(self.lanes)
                inner.loop(first_column, distance(begin, behind), self.lanes, within, "c")

            if self.guarded:
                clean = self._clean(inner, number, left, whole)
                lines(index(0), clean[0], True)
                lines(*clean, False)
                lines(clean[1], whole, True)
            else:
                lines(index(0), whole, False)
            end = inner.bind_index(left + whole * index(self.lanes))
            if is_last:
                group.one_by_one(inner, end, index(self.cols), True)
                return
            inner.branch(end < index(self.cols), lambda then: self._shared(then, number, end))

        code.loop(index(0), index(self.nest.rows - 1), 1, row, "r")
        row(code, index(self.nest.rows - 1), True)

    def _clean(self, code: Code, row: Expr, left: Expr, whole: Expr) -> tuple[Expr, Expr]:
        """Whole lines of a row, the first of which begins at ``left``, that have all operands: no masks."""
        group, lanes = self.nest.groups[0], index(self.lanes)
        columns = self.emitter.columns_of(group)
        before = tirx.truncdiv(tirx.max(columns.clean_begin - left, index(0)) + (lanes - 1), lanes)
        exists = self.emitter.row_exists(group, row, self.nest.rows)
        if exists is not None:
            before = tirx.Select(exists, before, whole)
        begin = code.bind_index(tirx.min(before, whole))
        inside = tirx.truncdiv(tirx.max(columns.clean_end - left, index(0)), lanes)
        return begin, code.bind_index(tirx.max(begin, tirx.min(inside, whole)))

    def _shared(self, code: Code, row: Expr, end: Expr) -> None:
        """The line that holds the columns of a row from ``end`` on, and the first of the next one."""
        count = code.bind(tirx.Cast(COUNT, index(self.cols) - end))
        none, all_of = tirx.const(0, COUNT), tirx.const(self.lanes, COUNT)
        here, below = self._group(code, row), self._group(code, row + 1)
        last = here.value(code, self.store, Point(row, end, self.lanes, True, span=(none, count)))
        before = end - index(self.cols)
        head = below.value(code, self.store, Point(row + 1, before, self.lanes, True, span=(count, all_of)))
        self._put(code, row, end, code.bind(tirx.Select(exist(count, self.lanes), last, head)))

    def _group(self, code: Code, row: Expr) -> GroupEmitter:
        made = GroupEmitter(self.emitter, self.nest.groups[0], NestRow(self.nest, row), [], {})
        made.hoist(code)
        return made

    def _put(self, code: Code, row: Expr, col: Expr, value: Expr) -> None:
        kernel, access = self.emitter.kernel, self.store.write
        at = kernel.memory.address(kernel.scope, access, row, col)
        code.add(
            self.emitter.streams.store(kernel.memory.buffer(access.pointer), at, value, access.pointer.dtype)
        )
