# SPDX-License-Identifier: Apache-2.0
"""Emit a nest: a loop over rows around the loops over columns of its groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from ...igraph.iops import spec_of
from .actions import COLLECT, OPAQUE, REDUCE_ROW, SCATTER, Action
from .address import as_int, distance, index
from .code import Code
from .element_access import Box, StridedAccess
from .emit_group import GroupEmitter, NestRow, Range
from .emit_reduce import Collected, RowReduction
from .emit_transpose import Staged, emit_blocks, has_masked_parts, staged_accesses
from .emit_value import KernelContext, Point, scalar_only
from .groups import ColumnGroup, RowNest
from .prefetch import Fetch
from .row_blocks import RowBlocks
from .row_lines import emit_lines, line_store
from .row_loops import RowValues, is_near, is_short, passes
from .stream import Streams, aligned, begins_anywhere, to_alignment
from .tall_tiles import goes_on
from .values import OperandValues, Origin, is_dear

#: Independent accumulators of a reduction along rows: enough to hide the latency of an addition.
ACCUMULATORS = 4
#: The same where computing a vector takes longer than adding it, and sizes decide how many there are: each
#: text of the loop's body is long then, and the constants of one displace those of the next.
DEAR_ACCUMULATORS = 1
#: Vectors that are computed side by side where that takes long.
PAIR = 2


@attrs.frozen(eq=False)
class RaggedRow:
    """A row that is streamed, wherever it begins.

    Attributes
    ----------
    group : ColumnGroup
        Which stores it.
    left : Expr
        Columns from the first clean one to the first that begins a line.
    vectors : int
        In a line: half a line that goes to memory by itself goes there twice.
    """

    group: ColumnGroup
    left: Expr
    vectors: int


class NestEmitter:
    """Emits one nest.

    Parameters
    ----------
    kernel : Kernel
        The kernel around it.
    values : Values
        Origins of operands, and which results are stored.
    vector_bytes : int
        Width of a vector register.
    streams : Streams
        Which stores bypass the caches.
    """

    def __init__(
        self, kernel: KernelContext, values: OperandValues, vector_bytes: int, streams: Streams
    ) -> None:
        self.kernel, self.values, self.vector_bytes, self.streams = kernel, values, vector_bytes, streams
        #: by position of a group
        self.fetches: dict[int, list[Fetch]] = {}
        self.unaligned: RaggedRow | None = None

    def emit(self, code: Code, nest: RowNest) -> None:
        """Append the nest's loops."""
        if self.kernel.prefetches is not None:
            self.fetches = self.kernel.prefetches.of_nest(nest, self.values, self.kernel.loop)
        by_lines = line_store(self, nest)
        if by_lines is not None:
            emit_lines(self, code, nest, by_lines)
            return
        stores = self.streams.of_nest(nest, [self.lanes(group) for group in nest.groups])
        blocked = staged_accesses(nest, self.values, self.lanes(nest.groups[0]))
        if blocked:
            emit_blocks(self, code, nest, blocked, self.lanes(nest.groups[0]))
            return
        if not stores:
            self._loops(code, nest)
            return
        begin, _ = self.bounds(nest.actions[0].box[:2], nest.rows)
        cols = [self._first_column(nest, access) for access, _ in stores]
        if begins_anywhere(nest, stores):
            self._ragged(code, nest, stores[0], begin, cols[0])
            return
        condition = aligned(self.kernel.memory, self.kernel.scope, stores, begin, cols)
        for access, _ in stores:
            large = self.streams.large_enough(self.kernel.scope, access.pointer)
            condition = condition if large is None else tirx.And(large, condition)

        def streamed(then: Code) -> None:
            self.streams.enable(True)
            self._loops(then, nest)
            self.streams.enable(False)

        code.branch(condition, streamed, lambda other: self._loops(other, nest))

    def _ragged(
        self, code: Code, nest: RowNest, store: tuple[StridedAccess, int], row: Expr, col: Expr
    ) -> None:
        """A row whose stores bypass the caches from the first whole line to the last."""
        access, vector = store
        line = max(self.streams.line, vector)
        left = code.bind_index(to_alignment(self.kernel.memory, self.kernel.scope, (access, line), row, col))
        group = next(g for g in nest.groups if _writes(g, access))

        def streamed(then: Code) -> None:
            self.unaligned = RaggedRow(group, left, line // vector)
            self.streams.enable(True)
            self._loops(then, nest)
            self.streams.enable(False)
            self.unaligned = None

        if group.times == 1:
            streamed(code)
            return
        # a vector begins with an element that did not come before
        whole = tirx.EQ(tirx.floormod(left, index(group.times)), index(0))
        code.branch(whole, streamed, lambda other: self._loops(other, nest))

    def _first_column(self, nest: RowNest, access: StridedAccess) -> Expr:
        action = next(a for a in nest.actions if a.write is access)
        return self.columns_of(nest.groups[nest.group_of(action)]).clean_begin

    def _loops(self, code: Code, nest: RowNest) -> None:
        collected = {
            id(action): Collected(
                self.kernel, action, self._lanes_of([action]) * self._side_by_side(nest, group)
            )
            for group in nest.groups
            for action in group.actions
            if action.kind == COLLECT
        }
        begin, end = self.bounds(nest.actions[0].box[:2], nest.rows)
        for each in collected.values():
            each.start(code)

        memory, scope, held = self.kernel.memory, self.kernel.scope, RowValues(nest.rows)
        near, long_passes = self.kernel.first_cache, self.kernel.long_passes
        apart = passes(nest, self.values, memory, scope, near, long_passes)
        count = distance(begin, end)
        goes_apart = is_short(nest, long_passes) and is_near(nest, self.values, near)
        all_rows = (as_int(begin), as_int(count)) == (0, nest.rows)
        for groups in apart:
            # one group over columns, and what is made of its results
            in_blocks = goes_apart and all_rows and [g for g in groups if g.cols > 1] == groups[:1]
            wide = groups[:1] if in_blocks else groups
            blocks = RowBlocks(nest.rows, RowBlocks.lanes_for(self.vector_bytes), code) if in_blocks else None
            narrow = groups[len(wide) :]

            def over_rows(
                groups: list[ColumnGroup],
                blocks: RowBlocks | None,
                made: Sequence[Action],
                is_last: bool,
            ) -> None:
                def body(inner: Code, number: Expr) -> None:
                    row = NestRow(nest, number, held.load(inner, number))
                    for action in made:
                        self._store_value(inner, row, action)
                    self._row(inner, row, groups, collected, blocks)
                    if not is_last:
                        held.store(inner, code, number, row.values)

                code.loop(begin, count, 1, body, "r")

            is_last = groups is apart[-1]
            if wide:
                over_rows(wide, blocks, (), is_last and not narrow)
            if blocks is not None:
                held.hold(blocks.finish(code))
                made = [action for action in blocks.actions if self.values.stored(action)]
                if made or narrow:
                    over_rows(narrow, None, made, is_last)
        for each in collected.values():
            each.finish(code)

    def columns(self, code: Code, nest: RowNest, row: Expr, begin: Expr, end: Expr) -> None:
        """Columns [begin, end) of a row of a nest with one elementwise group."""
        emitter = GroupEmitter(self, nest.groups[0], NestRow(nest, row), [], {})
        emitter.hoist(code)
        emitter.columns(code, Range(begin, end, begin, end))

    def vector(self, code: Code, nest: RowNest, point: Point, staged: dict[StridedAccess, Staged]) -> None:
        """One vector of such a nest, some of whose operands lie in blocks."""
        emitter = GroupEmitter(self, nest.groups[0], NestRow(nest, point.row), [], {})
        emitter.staged = staged
        emitter.point(code, point, None)

    def has_masks(self, nest: RowNest, group: ColumnGroup, staged: Iterable[StridedAccess] = ()) -> bool:
        """Whether what a vector of a group touches can be moved under masks, but what lies in blocks."""
        return GroupEmitter(self, group, NestRow(nest, index(0)), [], {}).has_masks(frozenset(staged))

    def bears_bounds(self, nest: RowNest) -> bool:
        """Whether bounds that sizes set cost next to nothing: rows and blocks end under masks.

        Products are made of whole blocks of rows; what need not exist, and tables, are asked for one by one.
        """
        for group in nest.groups:
            if any(action.kind in (OPAQUE, SCATTER) or action.tables for action in group.actions):
                return False
            if self._guards(group):
                return False
        blocked = staged_accesses(nest, self.values, self.lanes(nest.groups[0]))
        if blocked:
            return has_masked_parts(self, nest, blocked, self.lanes(nest.groups[0]))
        ends = [group for group in nest.groups if group.actions[0].box[2:] != (None, None)]
        return all(self.lanes(group) == 1 or self.has_masks(nest, group) for group in ends)

    def may_be_taller(self, nest: RowNest) -> bool:
        """Whether a nest that is moved block by block can do what the units after it do (`tall_tiles`)."""
        blocked = staged_accesses(nest, self.values, self.lanes(nest.groups[0]))
        return bool(blocked) and goes_on(nest, self.values)

    # --- ranges ------------------------------------------------------------------------------------

    def bounds(self, bounds: tuple, limit: int | Expr) -> tuple[Expr, Expr]:
        """A range of a valid box as expressions, clamped into the shape."""
        scope = self.kernel.scope
        return scope.bound(bounds[0], 0, limit), scope.bound(bounds[1], limit, limit)

    def has_length(self, group: ColumnGroup) -> bool:
        """Whether a row's length is a number."""
        begin, end = self.bounds(group.actions[0].box[2:], group.cols)
        return as_int(begin) is not None and as_int(end) is not None

    def has_guards(self, group: ColumnGroup) -> bool:
        """Whether operands of a group need not exist."""
        return bool(self._guards(group))

    def _guards(self, group: ColumnGroup) -> list[Box]:
        found: list[Box] = []
        for action in group.actions:
            self._collect_guards(action, False, found)
        return list(dict.fromkeys(found))

    def _collect_guards(self, action: Action, again: bool, found: list[Box]) -> None:
        """Guards of what an action reads, and of all that is computed again for it, however deep."""
        for read, source in zip(action.reads, self.values.sources[id(action)], strict=True):
            if read.guard is not None:
                found.append(read.guard)
            # what a repeated action had in a register is repeated with it
            repeated = source.origin == Origin.AGAIN or (again and source.origin == Origin.REGISTER)
            if repeated and source.maker is not None:
                self._collect_guards(source.maker, True, found)

    def columns_of(self, group: ColumnGroup) -> Range:
        """The columns of a group's rows, and those of which all operands exist."""
        begin, end = self.bounds(group.actions[0].box[2:], group.cols)
        clean_begin, clean_end = begin, end
        guards = self._guards(group)
        for guard in guards:
            low, high = self.bounds(guard[2:], group.cols)
            clean_begin, clean_end = tirx.max(clean_begin, low), tirx.min(clean_end, high)
        if guards:
            clean_begin = tirx.min(clean_begin, end)
            clean_end = tirx.max(clean_begin, clean_end)
        return Range(begin, end, clean_begin, clean_end)

    def row_exists(self, group: ColumnGroup, row: Expr, rows: int) -> Expr | None:
        """Whether the operands exist in this row; None where they always do."""
        conditions = []
        for guard in self._guards(group):
            if guard[0] is not None or guard[1] is not None:
                low, high = self.bounds(guard[:2], rows)
                conditions.append(tirx.And(row >= low, row < high))
        if not conditions:
            return None
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = tirx.And(whole, condition)
        return whole

    # --- rows and groups ---------------------------------------------------------------------------

    def _row(
        self,
        code: Code,
        row: NestRow,
        groups: list[ColumnGroup],
        collected: dict[int, Collected],
        blocks: RowBlocks | None = None,
    ) -> None:
        for group in groups:
            emitter = self.begin_group(code, group, row, collected)
            columns = self.columns_of(group)
            exists = self.row_exists(group, row.number, row.nest.rows)
            if group.cols == 1 and self._guards(group):
                emitter.one_by_one(code, columns.begin, columns.end, True)
            elif exists is None:
                emitter.columns(code, columns)
            else:
                emitter.branch(code, exists, columns)
            for reduction in emitter.reductions.values():
                if blocks is None or not blocks.take(code, row.number, reduction):
                    self._finish(code, row, reduction)

    def begin_group(
        self, code: Code, group: ColumnGroup, row: NestRow, collected: dict[int, Collected]
    ) -> GroupEmitter:
        """What emits a group in a row, with accumulators of its own."""
        lanes = self.lanes(group) * self._side_by_side(row.nest, group)
        reduced = (action for action in group.actions if action.kind == REDUCE_ROW)
        reductions = [self._reduction(code, action, group, lanes) for action in reduced]
        emitter = GroupEmitter(self, group, row, reductions, collected, lanes)
        emitter.hoist(code)
        return emitter

    def end_row(self, code: Code, first: GroupEmitter, groups: list[ColumnGroup]) -> None:
        """What follows the columns of the first group of a row."""
        for reduction in first.reductions.values():
            self._finish(code, first.row, reduction)
        self._row(code, first.row, groups, {})

    def _reduction(self, code: Code, action: Action, group: ColumnGroup, lanes: int) -> RowReduction:
        vectors = group.cols // lanes
        dear = is_dear(group.actions) and (not self.has_length(group) or lanes > self.lanes(group))
        most = DEAR_ACCUMULATORS if dear else ACCUMULATORS
        return RowReduction(code, action, lanes, max(1, min(most, vectors)))

    def _side_by_side(self, nest: RowNest, group: ColumnGroup) -> int:
        """Vectors of a row that the group handles at once: two where that pays.

        LLVM orders the instructions of vectors that follow each other one vector after the other where
        registers are few, and a processor has only so many instructions in view: each of a polynomial waits
        for the one before.  Of a vector of two registers the instructions alternate.
        """
        lanes = self.lanes(group)
        few = self.kernel.registers <= 16 and lanes * 4 == self.vector_bytes == 32
        reduced = any(action.kind in (REDUCE_ROW, COLLECT) for action in group.actions)
        whole = self.unaligned is None and self._is_whole(group, PAIR * lanes)
        streamed = any(self.streams.active(action, nest.rows, lanes) for action in group.actions)
        paired = few and reduced and whole and is_dear(group.actions) and not streamed
        return PAIR if paired else 1

    def _is_whole(self, group: ColumnGroup, lanes: int) -> bool:
        """Whether all columns of a row exist, and are so many at a time."""
        return self.has_length(group) and group.cols % lanes == 0 and not self._guards(group)

    def _finish(self, code: Code, row: NestRow, reduction: RowReduction) -> None:
        row.values[id(reduction.action)] = code.bind(reduction.result(code))
        if self.values.stored(reduction.action):
            self._store_value(code, row, reduction.action)

    def _store_value(self, code: Code, row: NestRow, action: Action) -> None:
        """Store what a reduction made of a row."""
        memory = self.kernel.memory
        address = memory.address(self.kernel.scope, action.write, row.number, index(0))
        code.add(memory.store(action.write, address, row.values[id(action)]))

    def lanes(self, group: ColumnGroup) -> int:
        """Elements that the group handles at once: a vector register of its widest type."""
        return self._lanes_of(group.actions)

    def _lanes_of(self, actions: list[Action]) -> int:
        if any(scalar_only(self.kernel, action) for action in actions):
            return 1
        widest = 1
        for action in actions:
            for access in (action.write, *(read.access for read in action.reads)):
                dtype = access.pointer.dtype
                widest = max(widest, 4 if dtype in ("fp16", "bf16") else bytes_of(dtype))
            if spec_of(action.iop).by_place:
                widest = max(widest, 4)
        return max(1, self.vector_bytes // widest)


def _writes(group: ColumnGroup, access: StridedAccess) -> bool:
    return any(action.write is access for action in group.actions)
