# SPDX-License-Identifier: Apache-2.0
"""Emit a nest: a loop over rows around the loops over columns of its groups."""

from __future__ import annotations

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from .access import Access, Box
from .actions import COLLECT, REDUCE_ROW, SCATTER, Action
from .address import as_int, greatest, index, least, plus
from .code import Code
from .elements import element, splat
from .emit_reduce import Collected, RowReduction
from .emit_transpose import Staged, emit_blocks, staged_accesses
from .emit_value import Kernel, Point, parameter, scalar_only, value_at
from .groups import Group, Nest
from .stream import Streams, aligned
from .values import Origin, Values, is_row_value
from .vector_math import binding

#: Independent accumulators of a reduction along rows: enough to hide the latency of an addition.
ACCUMULATORS = 4


@attrs.define(eq=False)
class Row:
    """One row of a nest while its groups are emitted."""

    nest: Nest
    number: Expr
    #: values that there is one of per row, by id of the action that made it
    values: dict[int, Expr] = attrs.field(factory=dict)


@attrs.frozen
class Range:
    """Columns [begin, end) of a group, and the part [clean_begin, clean_end) where every operand exists."""

    begin: Expr
    end: Expr
    clean_begin: Expr
    clean_end: Expr


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

    def __init__(self, kernel: Kernel, values: Values, vector_bytes: int, streams: Streams) -> None:
        self.kernel, self.values, self.vector_bytes, self.streams = kernel, values, vector_bytes, streams

    def emit(self, code: Code, nest: Nest) -> None:
        """Append the nest's loops."""
        stores = self.streams.of_nest(nest, [self.lanes(group) for group in nest.groups])
        blocked = staged_accesses(nest, self.values, self.lanes(nest.groups[0]))
        if blocked:
            emit_blocks(self, code, nest, blocked, self.lanes(nest.groups[0]))
            return
        if not stores:
            self._loops(code, nest)
            return
        begin, _ = self._bounds(nest.actions[0].box[:2], nest.rows)
        cols = [self._first_column(nest, access) for access, _ in stores]
        condition = aligned(self.kernel.memory, self.kernel.scope, stores, begin, cols)

        def streamed(then: Code) -> None:
            self.streams.enable(True)
            self._loops(then, nest)
            self.streams.enable(False)

        code.branch(condition, streamed, lambda other: self._loops(other, nest))

    def _first_column(self, nest: Nest, access: Access) -> Expr:
        action = next(a for a in nest.actions if a.write is access)
        return self._range(nest.groups[nest.group_of(action)]).clean_begin

    def _loops(self, code: Code, nest: Nest) -> None:
        collected = {
            id(a): Collected(self.kernel, a, self._lanes_of([a])) for a in nest.actions if a.kind == COLLECT
        }
        begin, end = self._bounds(nest.actions[0].box[:2], nest.rows)
        for each in collected.values():
            each.start(code)

        def body(inner: Code, row: Expr) -> None:
            self._row(inner, Row(nest, row), collected)

        code.loop(begin, self._count(begin, end), 1, body, "r")
        for each in collected.values():
            each.finish(code)

    def columns(self, code: Code, nest: Nest, row: Expr, begin: Expr, end: Expr) -> None:
        """Columns [begin, end) of a row of a nest with one elementwise group."""
        emitter = GroupEmitter(self, nest.groups[0], Row(nest, row), [], {})
        emitter.hoist(code)
        emitter.columns(code, Range(begin, end, begin, end))

    def vector(
        self, code: Code, nest: Nest, row: Expr, col: Expr, lanes: int, staged: dict[Access, Staged]
    ) -> None:
        """One vector of such a nest, some of whose operands lie in blocks."""
        emitter = GroupEmitter(self, nest.groups[0], Row(nest, row), [], {})
        emitter.staged = staged
        emitter.point(code, Point(row, col, lanes), None)

    # --- ranges ------------------------------------------------------------------------------------

    def _bounds(self, bounds: tuple, limit: int) -> tuple[Expr, Expr]:
        scope = self.kernel.scope
        return scope.bound(bounds[0], 0, limit), scope.bound(bounds[1], limit, limit)

    @staticmethod
    def _count(begin: Expr, end: Expr) -> Expr:
        a, b = as_int(begin), as_int(end)
        if a is not None and b is not None:
            return index(max(b - a, 0))
        return greatest(end - begin, index(0))

    def _guards(self, group: Group) -> list[Box]:
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

    def _range(self, group: Group) -> Range:
        begin, end = self._bounds(group.actions[0].box[2:], group.cols)
        clean_begin, clean_end = begin, end
        guards = self._guards(group)
        for guard in guards:
            low, high = self._bounds(guard[2:], group.cols)
            clean_begin, clean_end = greatest(clean_begin, low), least(clean_end, high)
        if guards:
            clean_begin = least(clean_begin, end)
            clean_end = greatest(clean_begin, clean_end)
        return Range(begin, end, clean_begin, clean_end)

    def _row_exists(self, group: Group, row: Expr, rows: int) -> Expr | None:
        """Whether the operands exist in this row; None where they always do."""
        conditions = []
        for guard in self._guards(group):
            if guard[0] is not None or guard[1] is not None:
                low, high = self._bounds(guard[:2], rows)
                conditions.append(tirx.And(row >= low, row < high))
        if not conditions:
            return None
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = tirx.And(whole, condition)
        return whole

    # --- rows and groups ---------------------------------------------------------------------------

    def _row(self, code: Code, row: Row, collected: dict[int, Collected]) -> None:
        for group in row.nest.groups:
            reductions = [self._reduction(code, a, group) for a in group.actions if a.kind == REDUCE_ROW]
            emitter = GroupEmitter(self, group, row, reductions, collected)
            emitter.hoist(code)
            columns = self._range(group)
            exists = self._row_exists(group, row.number, row.nest.rows)
            if group.cols == 1 and self._guards(group):
                emitter.one_by_one(code, columns.begin, columns.end, True)
            elif exists is None:
                emitter.columns(code, columns)
            else:
                emitter.branch(code, exists, columns)
            for reduction in reductions:
                self._finish(code, row, reduction)

    def _reduction(self, code: Code, action: Action, group: Group) -> RowReduction:
        lanes = self.lanes(group)
        vectors = group.cols // lanes
        return RowReduction(code, action, lanes, max(1, min(ACCUMULATORS, vectors)))

    def _finish(self, code: Code, row: Row, reduction: RowReduction) -> None:
        action = reduction.action
        value = code.bind(reduction.result(code))
        row.values[id(action)] = value
        if self.values.stored(action):
            memory = self.kernel.memory
            address = memory.address(self.kernel.scope, action.write, row.number, index(0))
            code.add(memory.store(action.write, address, value))

    def lanes(self, group: Group) -> int:
        """Elements that the group handles at once: a vector register of its widest type."""
        return self._lanes_of(group.actions)

    def _lanes_of(self, actions: list[Action]) -> int:
        if any(scalar_only(action) for action in actions):
            return 1
        widest = 1
        for action in actions:
            for access in (action.write, *(read.access for read in action.reads)):
                dtype = access.pointer.dtype
                widest = max(widest, 4 if dtype in ("fp16", "bf16") else bytes_of(dtype))
            if action.iop.op == "iota":
                widest = max(widest, 4)
        return max(1, self.vector_bytes // widest)


class GroupEmitter:
    """Emits the columns of one group in one row."""

    def __init__(
        self,
        nest: NestEmitter,
        group: Group,
        row: Row,
        reductions: list[RowReduction],
        collected: dict[int, Collected],
    ) -> None:
        self.nest, self.group, self.row = nest, group, row
        self.reductions = {id(reduction.action): reduction for reduction in reductions}
        self.collected = collected
        self.kernel, self.values = nest.kernel, nest.values
        self.hoisted: dict[Access, Expr] = {}
        self.staged: dict[Access, Staged] = {}

    def hoist(self, code: Code) -> None:
        """Load what is the same in every column before the loop, where nothing in the group may write it."""
        if self.group.cols == 1:
            return
        static = self.group.actions[0].box[2:] == (None, None)
        written = {action.write.pointer.name for action in self.group.actions}
        for action in self.group.actions:
            for read, source in zip(action.reads, self.values.sources[id(action)], strict=True):
                once = source.origin == Origin.MEMORY and read.access.col == 0 and read.guard is None
                if once and static and read.access.pointer.name not in written:
                    self.hoisted.setdefault(read.access, code.bind(self._load_scalar(read.access)))

    def _load_scalar(self, access: Access) -> Expr:
        memory = self.kernel.memory
        return memory.load(access, memory.address(self.kernel.scope, access, self.row.number, index(0)), 1)

    def branch(self, code: Code, exists: Expr, columns: Range) -> None:
        """The columns of a row, all of them with care where the row may lack its operands."""
        code.branch(
            exists,
            lambda then: self.columns(then, columns),
            lambda other: self.one_by_one(other, columns.begin, columns.end, True),
        )

    def columns(self, code: Code, columns: Range) -> None:
        """All columns of a row that has its operands: vectors where they exist, one by one beside them."""
        if columns.clean_begin is not columns.begin:
            self.one_by_one(code, columns.begin, columns.clean_begin, True)
        self._vectors(code, columns.clean_begin, columns.clean_end)
        if columns.clean_end is not columns.end:
            self.one_by_one(code, columns.clean_end, columns.end, True)

    def one_by_one(self, code: Code, begin: Expr, end: Expr, guarded: bool) -> None:
        """A loop over single elements."""

        def body(inner: Code, col: Expr) -> None:
            self.point(inner, Point(self.row.number, col, 1, guarded), None)

        code.loop(begin, self.nest._count(begin, end), 1, body, "c")

    def _vectors(self, code: Code, begin: Expr, end: Expr) -> None:
        lanes = self.nest.lanes(self.group)
        if lanes == 1:
            self.one_by_one(code, begin, end, False)
            return
        unroll = max((r.copies for r in self.reductions.values()), default=1)
        step = lanes * unroll
        count = code.bind_index(self.nest._count(begin, end))
        begin = code.bind_index(begin)

        def several(inner: Code, col: Expr) -> None:
            for k in range(unroll):
                self.point(inner, Point(self.row.number, plus(col, k * lanes), lanes), k)

        def one(inner: Code, col: Expr) -> None:
            self.point(inner, Point(self.row.number, col, lanes), 0)

        known = as_int(count)
        if known is None:
            main = tirx.truncdiv(count, index(step))
            code.loop(begin, main, step, several, "c")
            done = code.bind_index(begin + main * index(step))
            if unroll > 1:
                rest = tirx.truncdiv(end - done, index(lanes))
                code.loop(done, greatest(rest, index(0)), lanes, one, "c")
                done = code.bind_index(done + greatest(rest, index(0)) * index(lanes))
            self.one_by_one(code, done, end, False)
            return
        code.loop(begin, index(known // step), step, several, "c")
        at = plus(begin, known // step * step)
        left = known % step
        code.loop(at, index(left // lanes), lanes, one, "c")
        at, left = plus(at, left // lanes * lanes), left % lanes
        while left:
            width = 1 << (left.bit_length() - 1)
            self.point(code, Point(self.row.number, at, width), None)
            at, left = plus(at, width), left - width

    # --- one point ---------------------------------------------------------------------------------

    def point(self, code: Code, point: Point, copy: int | None) -> None:
        """Every action of the group at one point; ``copy`` numbers the accumulator of full vectors."""
        made: dict[int, Expr] = {}
        for action in self.group.actions:
            args = [self._operand(code, action, k, point, made) for k in range(len(action.reads))]
            if action.kind == SCATTER:
                self._scatter(code, action, args, point)
                continue
            value = self._evaluated(code, action, args, point)
            if action.kind == REDUCE_ROW:
                self.reductions[id(action)].take(code, value, copy)
            elif action.kind == COLLECT:
                self.collected[id(action)].take(code, value, point.col)
            else:
                made[id(action)] = value
                if is_row_value(action):
                    self.row.values[id(action)] = value
                if self.values.stored(action):
                    self._store(code, action, value, point)

    def _evaluated(self, code: Code, action: Action, args: list[Expr], point: Point) -> Expr:
        with binding(code.bind):
            value = value_at(self.kernel, action, [code.bind(arg) for arg in args], point)
        return code.bind(value)

    def _store(self, code: Code, action: Action, value: Expr, point: Point) -> None:
        memory = self.kernel.memory
        address = memory.address(self.kernel.scope, action.write, point.row, point.col)
        lanes, streams = self.nest.lanes(self.group), self.nest.streams
        if point.lanes == lanes and streams.active(action, self.row.nest.rows, lanes):
            pointer = action.write.pointer
            code.add(streams.store(memory.buffer(pointer), address, value, pointer.dtype))
        else:
            code.add(memory.store(action.write, address, value))

    def _operand(self, code: Code, action: Action, number: int, point: Point, made: dict[int, Expr]) -> Expr:
        read = action.reads[number]
        is_index = action.indexed_rows and number == len(action.reads) - 1
        at = Point(point.row, point.col, 1, point.guarded) if is_index else point
        if not point.guarded or read.guard is None:
            return self._value(code, action, number, at, made)
        # what is loaded for a value that is computed again may not exist either: all of it in the branch
        outside = parameter(read.outside, read.access.pointer.dtype, 1)
        return code.choose(
            self._exists(read.guard, point),
            lambda then: self._value(then, action, number, at, dict(made)),
            outside,
        )

    def _exists(self, guard: Box, point: Point) -> Expr:
        first = self.group.actions[0]
        r0, r1 = self.nest._bounds(guard[:2], first.rows)
        c0, c1 = self.nest._bounds(guard[2:], first.cols)
        row, col = point.row, point.col
        return tirx.And(tirx.And(row >= r0, row < r1), tirx.And(col >= c0, col < c1))

    def _value(self, code: Code, action: Action, number: int, point: Point, made: dict[int, Expr]) -> Expr:
        source = self.values.sources[id(action)][number]
        maker = source.maker
        if source.origin == Origin.REGISTER and id(maker) in made:
            return made[id(maker)]
        if source.origin == Origin.ROW:
            return splat(self.row.values[id(maker)], point.lanes)
        if maker is not None:
            # an operand of a value that is computed again was a register value of its own group
            args = [self._operand(code, maker, k, point, made) for k in range(len(maker.reads))]
            made[id(maker)] = self._evaluated(code, maker, args, point)
            return made[id(maker)]
        return self._load(action, number, point)

    def _load(self, action: Action, number: int, point: Point) -> Expr:
        access = action.reads[number].access
        if access in self.hoisted:
            return splat(self.hoisted[access], point.lanes)
        memory = self.kernel.memory
        if access in self.staged:
            block = self.staged[access]
            at = tirx.Ramp(block.row * index(point.lanes), index(1), point.lanes)
            return element(access.pointer.dtype).load(tirx.BufferLoad(block.buffer, [at]))
        address = memory.address(self.kernel.scope, access, point.row, point.col)
        return memory.load(access, address, point.lanes)

    def _scatter(self, code: Code, action: Action, args: list[Expr], point: Point) -> None:
        target, memory, scope = action.iop.target, self.kernel.memory, self.kernel.scope
        value, at = code.bind(args[0]), code.bind(tirx.Cast("int64", args[1]))
        r0, r1 = self.nest._bounds(target.valid[:2], target.rows)
        inside = tirx.And(at >= r0, at < r1)
        address = plus(scope.expr(target.offset), 0) + at * index(target.row_stride)
        access = action.write
        if action.indexed_rows:
            address = address + point.col * index(target.col_stride)
            access = attrs.evolve(access, col=target.col_stride)
            if target.valid[2:] != (None, None):
                c0, c1 = self.nest._bounds(target.valid[2:], target.cols)
                inside = tirx.And(inside, tirx.And(point.col >= c0, point.col < c1))
        code.branch(inside, lambda then: then.add(memory.store(access, address, value)))
