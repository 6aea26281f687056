# SPDX-License-Identifier: Apache-2.0
"""Emit one group in one row: the loop over its columns, and all its actions at a point of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.affine import affine
from . import first_lanes
from .actions import COLLECT, MAP, REDUCE_ROW, SCATTER, Action
from .address import as_int, distance, index
from .beside import rounds
from .code import Code
from .element_access import Box, StridedAccess
from .elements import convert, element, splat
from .emit_reduce import Collected, RowReduction
from .emit_transpose import Staged
from .emit_value import Point, parameter, value_at
from .groups import ColumnGroup, RowNest
from .read_once import handed_on, operands, read_at_all, readings_of, reads_once
from .spans import spanned, takes_spans
from .values import Origin, is_brief, is_cheap, is_row_value
from .vector_math import avx512, binding

if TYPE_CHECKING:
    from .emit_nest import NestEmitter


#: Vectors of a round of divisions, where sizes decide how many rounds there are: three instructions make one,
#: and three count a round.  Copies and sums of few vectors are slower with rounds so long.
SLOW_VECTORS = 4


@attrs.define(eq=False)
class NestRow:
    """One row of a nest while its groups are emitted."""

    nest: RowNest
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


class GroupEmitter:
    """Emits the columns of one group in one row."""

    def __init__(
        self,
        nest: NestEmitter,
        group: ColumnGroup,
        row: NestRow,
        reductions: list[RowReduction],
        collected: dict[int, Collected],
        lanes: int | None = None,
    ) -> None:
        self.nest, self.group, self.row = nest, group, row
        #: of whole vectors
        self.lanes = lanes or nest.lanes(group)
        self.reductions = {id(reduction.action): reduction for reduction in reductions}
        self.collected = collected
        self.kernel, self.values = nest.kernel, nest.values
        self.hoisted: dict[StridedAccess, Expr] = {}
        self.staged: dict[StridedAccess, Staged] = {}
        #: whether the columns of a row are no loop
        self.once = False
        #: whether vectors load under masks what need not exist
        self.masked = False
        #: whether rows of operands need not exist where columns do
        self.asks_rows = False
        #: actions whose value something reads, and those whose value the next one alone does
        self.live = read_at_all(group.actions, self.values)
        self.handed_on = handed_on(group.actions, self.values)
        self.readings = readings_of(group.actions, self.values)

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

    def _load_scalar(self, access: StridedAccess) -> Expr:
        memory = self.kernel.memory
        return memory.load(access, memory.address(self.kernel.scope, access, self.row.number, index(0)), 1)

    def branch(self, code: Code, exists: Expr, columns: Range) -> None:
        """The columns of a row; where it may lack operands each vector asks for the row of each of these."""

        def lacking(other: Code) -> None:
            self.asks_rows = True
            self.columns(other, columns)
            self.asks_rows = False

        code.branch(exists, lambda then: self.columns(then, columns), lacking)

    def columns(self, code: Code, columns: Range) -> None:
        """All columns of a row that has its operands: vectors where they exist, one by one beside them."""
        if takes_spans(self):
            self.masked = True
            self._vectors(code, columns.begin, columns.end)
            return
        if columns.clean_begin is not columns.begin:
            self.one_by_one(code, columns.begin, columns.clean_begin, True)
        self._vectors(code, columns.clean_begin, columns.clean_end)
        if columns.clean_end is not columns.end:
            self.one_by_one(code, columns.clean_end, columns.end, True)

    def one_by_one(self, code: Code, begin: Expr, end: Expr, guarded: bool) -> None:
        """A loop over single elements."""

        def body(inner: Code, col: Expr) -> None:
            self.point(inner, Point(self.row.number, col, 1, guarded), None)

        code.loop(begin, distance(begin, end), 1, body, "c")

    def _vectors(self, code: Code, begin: Expr, end: Expr) -> None:
        lanes = self.lanes
        ragged = self.nest.unaligned
        if ragged is not None and ragged.group is not self.group:
            ragged = None
        if ragged is not None:
            first = code.bind_index(tirx.min(begin + ragged.left, end))
            self.one_by_one(code, begin, first, False)
            begin = first
        number = distance(begin, end)
        if lanes == 1:
            self.one_by_one(code, begin, end, False)
            return
        if as_int(number) is None and self.group.cols < lanes:
            self._end(code, code.bind_index(begin), end, lanes)
            return
        unroll = max((r.copies for r in self.reductions.values()), default=1)
        if as_int(number) is None and self._is_slow_and_brief():
            unroll = max(1, min(SLOW_VECTORS, self.group.cols // lanes))
        if ragged is not None:
            unroll = max(unroll, ragged.vectors)
        times = self.group.times
        period = times // math.gcd(times, lanes)
        unroll = -(-unroll // period) * period
        step = lanes * unroll
        count = code.bind_index(number)
        known = as_int(count)
        begin = code.bind_index(begin)
        self.once = known is not None and known // step == 1

        def several(inner: Code, col: Expr) -> None:
            # as many rounds as LLVM would put beside each other are more than most rows have
            inner.add(self.kernel.text.once())
            self.round(inner, col, unroll)

        def one(inner: Code, col: Expr) -> None:
            self.point(inner, Point(self.row.number, col, lanes), 0)

        if known is None:
            main = tirx.truncdiv(count, index(step))
            code.loop(begin, main, step, several, "c")
            done = code.bind_index(begin + main * index(step))
            if ragged is not None:
                self.nest.streams.enable(False)  # what fills no line
            if unroll > 1 and period == 1:
                rest = tirx.truncdiv(end - done, index(lanes))
                code.loop(done, tirx.max(rest, index(0)), lanes, one, "c")
                done = code.bind_index(done + tirx.max(rest, index(0)) * index(lanes))
            # a line that went to memory is not written again
            follows = count >= index(lanes) if ragged is None and self._repeats() else None
            self._end(code, done, end, lanes, follows)
            if ragged is not None:
                self.nest.streams.enable(True)
            return
        walked = rounds(self, code, begin, known, unroll)
        at, left = begin + walked, known - walked
        if period == 1:
            code.loop(at, index(left // lanes), lanes, one, "c")
        else:
            for done in range(0, left // lanes * lanes, lanes):
                self.point(code, Point(self.row.number, at + done, lanes, phase=done % times), 0)
        at, left = at + left // lanes * lanes, left % lanes
        if left and known >= lanes and self._ends_again():
            phase = (known - lanes) % times
            last = Point(self.row.number, at + left - lanes, lanes, again=lanes - left, phase=phase)
            self.point(code, last, 0)
            return
        while left:
            width = 1 << (left.bit_length() - 1)
            self.point(code, Point(self.row.number, at, width, phase=(known - left) % times), None)
            at, left = at + width, left - width

    def round(self, code: Code, col: Expr, unroll: int) -> None:
        """Vectors side by side, each with its accumulator."""
        for k in range(unroll):
            phase = k * self.lanes % self.group.times
            self.point(code, Point(self.row.number, col + k * self.lanes, self.lanes, phase=phase), k)

    def _end(self, code: Code, begin: Expr, end: Expr, lanes: int, follows: Expr | None = None) -> None:
        """The columns that fill no vector: one of which the first lanes exist, or element by element.

        Where a whole vector comes before (``follows``), another does what is left, and a part of that again.
        """
        if not self.has_masks():
            self.one_by_one(code, begin, end, False)
            return
        left = code.bind_index(end - begin)
        last = Point(self.row.number, begin, lanes, first=tirx.Cast(first_lanes.COUNT, left))

        def part(then: Code) -> None:
            self.point(then, last, 0)

        def rest(then: Code) -> None:
            if follows is None:
                part(then)
                return
            again = Point(self.row.number, end - lanes, lanes)
            then.branch(follows, lambda inner: self.point(inner, again, None), part)

        code.branch(left > index(0), rest)

    def _is_slow_and_brief(self) -> bool:
        """Whether each vector takes few instructions, some of them slow."""
        actions = self.group.actions
        return all(map(_is_brief, actions)) and not all(is_cheap(action.iop) for action in actions)

    def _repeats(self) -> bool:
        """Whether columns may be made twice, and are made faster so than under a mask."""
        return all(map(_is_brief, self.group.actions)) and self._may_repeat()

    def _ends_again(self) -> bool:
        """Whether a row of known length may end with a whole vector, some of whose columns are made twice."""
        return all(action.kind in (MAP, REDUCE_ROW) for action in self.group.actions) and self._may_repeat()

    def _may_repeat(self) -> bool:
        """Whether a column that is made twice is the same the second time, and no store bypasses caches."""
        streams, rows = self.nest.streams, self.row.nest.rows
        stored = [action for action in self.group.actions if self.values.stored(action)]
        if any(streams.active(action, rows, self.nest.lanes(self.group)) for action in stored):
            return False
        loads = (access for action in self.group.actions for access in self._loaded(action, False))
        loaded = {access.pointer.name for access in loads}
        # of a half and less the processor makes no whole vector before they are in the cache
        if loaded & self.values.in_parts:
            return False
        return not loaded & {action.write.pointer.name for action in stored}

    def has_masks(self, staged: frozenset[StridedAccess] = frozenset()) -> bool:
        """Whether all that the group loads and stores can be moved under masks, but what lies in blocks."""
        accesses: list[StridedAccess] = []
        for action in self.group.actions:
            if action.kind == SCATTER or action.tables:
                return False
            loaded = self._loaded(action, False)
            accesses += (access for access in loaded if access.col != 0 and access not in staged)
            if action.kind == COLLECT or (action.kind != REDUCE_ROW and self.values.stored(action)):
                accesses.append(action.write)
        masked = self.kernel.masked
        return all(a.col == a.times == 1 and first_lanes.supported(a.pointer.dtype, masked) for a in accesses)

    def _loaded(self, action: Action, again: bool) -> Iterator[StridedAccess]:
        """What an action loads, and what is loaded where it or what made its operands is computed again."""
        for read, source in zip(action.reads, self.values.sources[id(action)], strict=True):
            repeated = source.origin == Origin.AGAIN or (again and source.origin == Origin.REGISTER)
            if source.origin == Origin.MEMORY:
                yield read.access
            elif repeated and source.maker is not None:
                yield from self._loaded(source.maker, True)

    def _has_room(self, action: Action, access: StridedAccess) -> bool:
        """Whether the last vector of a row, all its lanes, lies in what the kernel allocates for that row.

        A mask would cost time there: no load takes what a masked store left before that is in the cache.
        """
        pointer, cols, below = access.pointer, action.cols, (action.rows - 1) * access.row
        if pointer.level != "reg" or access.col != 1 or cols % self.nest.lanes(self.group) != 0:
            return False
        if not self.kernel.memory.allocates(pointer) or (action.rows > 1 and access.row < cols):
            return False
        in_place = (
            action.box[2] is None and self.nest.unaligned is None and not self.nest.has_guards(self.group)
        )
        return in_place and self.kernel.scope.range(access.offset)[1] + below + cols <= pointer.size

    def _alone(self, action: Action) -> bool:
        """Whether what lies behind the end of the rows that an action writes is nobody's at any time."""
        end, sizes = action.box[3], self.kernel.scope.sizes
        return self.values.writers[action.write.pointer.name] == 1 and (
            end is None or sizes.issuperset(end.variables())
        )

    # --- one point ---------------------------------------------------------------------------------

    def point(self, code: Code, point: Point, copy: int | None) -> None:
        """Every action of the group at one point; ``copy`` numbers the accumulator of full vectors."""
        made: dict[int, Expr] = {}
        if self.masked:
            point = attrs.evolve(point, guarded=True)
        for action in self.group.actions:
            if id(action) not in self.live:
                continue
            args = [self._operand(code, action, k, point, made) for k in range(len(action.reads))]
            if action.kind == SCATTER:
                self._scatter(code, action, args, point)
                continue
            value = self._evaluated(code, action, args, point)
            if action.kind == REDUCE_ROW:
                self.reductions[id(action)].take(code, value, copy, point, self.once)
            elif action.kind == COLLECT:
                self.collected[id(action)].take(code, value, point.col, point.first)
            else:
                if id(action) not in self.handed_on:
                    value = code.bind(value)
                made[id(action)] = value
                if is_row_value(action):
                    self.row.values[id(action)] = value
                if self.values.stored(action):
                    self._store(code, action, value, point)
        if copy is not None and point.first is None and not point.again:
            self._fetch_ahead(code, point, copy)

    def value(self, code: Code, action: Action, point: Point) -> Expr:
        """What an action of the group makes at one point, without a store; all actions before it are done."""
        made: dict[int, Expr] = {}
        for each in self.group.actions:
            args = [self._operand(code, each, k, point, made) for k in range(len(each.reads))]
            made[id(each)] = code.bind(self._evaluated(code, each, args, point))
            if each is action:
                break
        return made[id(action)]

    def _fetch_ahead(self, code: Code, point: Point, copy: int) -> None:
        """What the nest fetches beside this vector, number ``copy`` of several."""
        ahead, nest, lanes = self.kernel.prefetches, self.row.nest, self.nest.lanes(self.group)
        for fetch in self.nest.fetches.get(nest.groups.index(self.group), ()):
            streamed = fetch.stores and self.nest.streams.active(fetch.action, nest.rows, lanes)
            if ahead is not None and not streamed:
                at = (point.row, point.col)
                ahead.emit(code, fetch, self.kernel.memory, self.kernel.scope, at, copy * point.lanes)

    def _evaluated(self, code: Code, action: Action, args: list[Expr], point: Point) -> Expr:
        held = operands(code, args, reads_once(action))
        with binding(code.bind), avx512(self.kernel.avx512):
            return value_at(self.kernel, action, held, point)

    def _store(self, code: Code, action: Action, value: Expr, point: Point) -> None:
        memory = self.kernel.memory
        address = memory.address(self.kernel.scope, action.write, point.row, point.col)
        lanes, streams = self.nest.lanes(self.group), self.nest.streams
        if point.first is not None and not (self._has_room(action, action.write) and self._alone(action)):
            row, buffer = element(action.write.pointer.dtype), memory.buffer(action.write.pointer)
            held = code.bind(convert(row.store(value), row.storage))
            in_parts = not self.kernel.avx512
            code.add(first_lanes.store(self.kernel.text, buffer, address, held, point.first, in_parts))
        elif point.lanes == lanes and streams.active(action, self.row.nest.rows, lanes):
            pointer = action.write.pointer
            code.add(streams.store(memory.buffer(pointer), address, value, pointer.dtype))
        else:
            code.add(memory.store(action.write, address, value))

    def _operand(self, code: Code, action: Action, number: int, point: Point, made: dict[int, Expr]) -> Expr:
        read = action.reads[number]
        is_index = action.indexed_rows and number == len(action.reads) - 1
        at = Point(point.row, point.col, 1, point.guarded) if is_index else point
        if point.guarded and point.lanes > 1 and read.guard is not None:
            return spanned(self, code, action, number, point)
        if read.guard is None or not (point.guarded or (self.asks_rows and read.guard[:2] != (None, None))):
            return self._value(code, action, number, at, made)
        # what is loaded for a value that is computed again may not exist either: all of it in the branch
        outside = parameter(read.outside, read.access.pointer.dtype, point.lanes)
        return code.choose(
            self._exists(read.guard, point),
            lambda then: self._value(then, action, number, at, dict(made)),
            outside,
        )

    def _exists(self, guard: Box, point: Point) -> Expr:
        first = self.group.actions[0]
        r0, r1 = self.nest.bounds(guard[:2], first.rows)
        row, col = point.row, point.col
        there = tirx.And(row >= r0, row < r1)
        if not point.guarded:
            return there
        c0, c1 = self.nest.bounds(guard[2:], first.cols)
        return tirx.And(there, tirx.And(col >= c0, col < c1))

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
            value = self._evaluated(code, maker, args, point)
            alone = self.readings[id(maker)] == 1 and reads_once(action)
            made[id(maker)] = value if alone else code.bind(value)
            return made[id(maker)]
        return self._load(code, action, number, point)

    def _load(self, code: Code, action: Action, number: int, point: Point) -> Expr:
        access = action.reads[number].access
        if access in self.hoisted:
            return splat(self.hoisted[access], point.lanes)
        memory = self.kernel.memory
        if access in self.staged:
            block = self.staged[access]
            at = tirx.Ramp(block.row * index(point.lanes), index(1), point.lanes)
            return element(access.pointer.dtype).load(tirx.BufferLoad(block.buffer, [at]))
        if point.span is not None and access.col == 1:
            return spanned(self, code, action, number, point)
        col = point.col - point.phase if access.times > 1 else point.col
        address = memory.address(self.kernel.scope, access, point.row, col)
        if point.first is not None and access.col == 1 and not self._has_room(action, access):
            buffer = memory.buffer(access.pointer)
            part = first_lanes.load(self.kernel.text, buffer, address, point.lanes, point.first)
            return element(access.pointer.dtype).load(code.bind(part))
        return memory.load(access, address, point.lanes, point.phase)

    def _scatter(self, code: Code, action: Action, args: list[Expr], point: Point) -> None:
        target, memory, scope = action.iop.target, self.kernel.memory, self.kernel.scope
        value, at = code.bind(args[0]), code.bind(tirx.Cast("int64", args[1]))
        r0, r1 = self.nest.bounds(target.valid[:2], target.rows)
        inside = tirx.And(at >= r0, at < r1)
        address = scope.expr(target.offset) + at * scope.expr(affine(target.stride[0]))
        access = action.write
        if action.indexed_rows:
            address = address + point.col * index(target.col_stride)
            access = attrs.evolve(access, col=target.col_stride)
            if target.valid[2:] != (None, None):
                c0, c1 = self.nest.bounds(target.valid[2:], target.cols)
                inside = tirx.And(inside, tirx.And(point.col >= c0, point.col < c1))
        code.branch(inside, lambda then: then.add(memory.store(access, address, value)))


def _is_brief(action: Action) -> bool:
    return action.kind == MAP and is_brief(action.iop)
