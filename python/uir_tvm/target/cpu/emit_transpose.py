# SPDX-License-Identifier: Apache-2.0
"""Emit an elementwise nest some of whose operands are contiguous along rows: block by block, transposed.

Each block of such an operand is transposed into scratch memory of a few cache lines, whence the group reads
it as any other operand.  A nest that only copies transposes straight into its target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from ...igraph.iops import spec_of
from . import first_lanes, transpose
from .actions import MAP, Action
from .address import as_int, distance, index
from .buffers import scratch
from .code import Code
from .element_access import StridedAccess
from .elements import element
from .emit_value import Point
from .groups import ColumnGroup, RowNest
from .stream import aligned
from .tile_of_lines import BlockedSide, TileOfLines
from .transpose_box import BoxSide, transpose_box
from .values import OperandValues, Origin

if TYPE_CHECKING:
    from .emit_nest import NestEmitter


@attrs.frozen
class Staged:
    """A block of an operand where its columns are contiguous, and which of its rows is meant."""

    buffer: tirx.Buffer
    row: Expr


def staged_accesses(nest: RowNest, values: OperandValues, lanes: int) -> list[StridedAccess]:
    """The operands of a nest that blocks should be transposed of; none where the nest has no such form."""
    if len(nest.groups) != 1 or min(nest.rows, nest.groups[0].cols) < lanes:
        return []
    found: list[StridedAccess] = []
    written = {action.write.pointer.name for action in nest.actions}
    for action in nest.actions:
        if action.kind != MAP or any(read.guard for read in action.reads):
            return []
        for read, source in zip(action.reads, values.sources[id(action)], strict=True):
            access = read.access
            across = access.row == 1 and access.col not in (-1, 0, 1)
            kind = access.pointer.dtype
            if source.origin != Origin.MEMORY or not across or kind == "bool":
                continue
            if access.pointer.name not in written and transpose.supported(8 * bytes_of(kind), lanes):
                found.append(access)
    return list(dict.fromkeys(found))


def emit_blocks(
    emitter: NestEmitter, code: Code, nest: RowNest, accesses: list[StridedAccess], lanes: int
) -> None:
    """The loops over blocks, then over the columns and rows that fill no block.

    Before, for ``rows`` and ``cols`` that sizes may decide::

        for r in rows: for c in cols: t[r, c] = f(s[c, r])

    After::

        for r in whole blocks of rows: for c in whole blocks of columns: transpose 16 x 16
        for the blocks of the last columns, then for those of the last rows: transpose a part of 16 x 16

    A copy whose sides sizes decide has parts only where a side is shorter than a block: else the last
    blocks end with their side, and what lies in two blocks is moved twice.
    """
    _BlockNest(emitter, nest, accesses, lanes).emit(code)


class _BlockNest:
    """One nest that is emitted block by block."""

    def __init__(
        self, emitter: NestEmitter, nest: RowNest, accesses: list[StridedAccess], lanes: int
    ) -> None:
        self.emitter, self.nest, self.accesses, self.lanes = emitter, nest, accesses, lanes
        self.group: ColumnGroup = nest.groups[0]
        self.direct = _copied_to(nest, emitter.values, accesses)
        self.blocks: dict[StridedAccess, tirx.Buffer] = {}

    def emit(self, code: Code) -> None:
        """Append the loops."""
        if self.direct is None:
            for access in self.accesses:
                storage = element(access.pointer.dtype).storage
                self.blocks[access] = scratch(code, "block", storage, self.lanes * self.lanes)
        box = self.nest.actions[0].box
        tiles = self.emitter.kernel.tiles
        rows = self._side(code, box[:2], self.nest.rows if tiles is None else tiles * self.nest.rows)
        cols = self._side(code, box[2:], self.group.cols)

        is_masked = has_masked_parts(self.emitter, self.nest, self.accesses, self.lanes)
        beside = self._parts if is_masked else self._elements
        if self.direct is not None and not (rows.has_length and cols.has_length):
            target = self.direct
            fits = tirx.And(rows.whole > index(0), cols.whole > index(0))
            code.branch(
                fits,
                lambda then: self._covered(then, rows, cols, target),
                lambda other: beside(other, rows, cols),
            )
            return

        self._streamed_or_not(code, rows, cols)
        beside(code, rows, cols)

    def _streamed_or_not(self, code: Code, rows: BlockedSide, cols: BlockedSide) -> None:
        """Whole blocks, past the caches where lines of them can be."""
        streams, nest = self.emitter.streams, self.nest
        stores = streams.of_nest(nest, [self.lanes]) if self.direct is not None else []
        across = self._to_line(stores, cols)
        if not across:
            self._whole(code, rows, cols)
            return
        ((access, size),) = stores
        memory, scope = self.emitter.kernel.memory, self.emitter.kernel.scope
        fits = aligned(memory, scope, [(access, across * size)], rows.begin, [cols.begin])
        streams.use()
        tile = TileOfLines.of(self.emitter, self.accesses[0], access, rows, cols, self.lanes)
        code.branch(
            fits,
            lambda then: self._whole(then, rows, cols, across) if tile is None else tile.emit(then),
            lambda other: self._whole(other, rows, cols),
        )

    def _to_line(self, stores: list[tuple[StridedAccess, int]], cols: BlockedSide) -> int:
        """Blocks beside each other whose rows fill lines of memory; 0 where rows have no such blocks."""
        if len(stores) != 1 or stores[0][0] != self.direct or not cols.has_length:
            return 0
        ((access, size),) = stores
        pitch, whole = access.row * bytes_of(access.pointer.dtype), as_int(cols.whole)
        across = max(1, self.emitter.streams.line // size)
        fits = access.pitches[0] is None and pitch % (across * size) == 0
        return across if fits and whole is not None and whole % across == 0 else 0

    def _whole(self, code: Code, rows: BlockedSide, cols: BlockedSide, streamed: int = 0) -> None:
        across = max(1, streamed)

        def band(inner: Code, row: Expr) -> None:
            inner.loop(
                cols.begin,
                tirx.floordiv(cols.whole, across) if streamed else cols.whole,
                across * self.lanes,
                lambda x, col: self._block(x, row, col, streamed),
                "c",
            )

        code.loop(rows.begin, rows.whole, self.lanes, band, "r")

    def _covered(self, code: Code, rows: BlockedSide, cols: BlockedSide, target: StridedAccess) -> None:
        """Whole blocks alone, the last ones moved back; along the rows where columns are one block."""
        memory, scope = self.emitter.kernel.memory, self.emitter.kernel.scope
        (access,) = self.accesses
        strides = zip(memory.strides(access), memory.strides(target), strict=True)
        down, across = (
            self._side_of_box(code, side, *pair) for side, pair in zip((rows, cols), strides, strict=True)
        )
        is_narrow = code.bind(tirx.LE(across.length, index(self.lanes)))
        outer, inner = _or_else(code, is_narrow, across, down), _or_else(code, is_narrow, down, across)
        places = (memory.address(scope, x, rows.begin, cols.begin) for x in (access, target))
        given = _moved(self.emitter, access, target, tuple(places), self.lanes)
        code.add(transpose_box(self.emitter.kernel.text, *given, outer, inner))

    def _side_of_box(
        self, code: Code, side: BlockedSide, in_source: Expr | int, in_target: Expr | int
    ) -> BoxSide:
        length = code.bind_index(distance(side.begin, side.end))
        return BoxSide(length, *(index(x) if isinstance(x, int) else x for x in (in_source, in_target)))

    def _side(self, code: Code, bounds: tuple, limit: int | Expr) -> BlockedSide:
        begin, end = (code.bind_index(each) for each in self.emitter.bounds(bounds, limit))
        whole = code.bind_index(tirx.truncdiv(distance(begin, end), index(self.lanes)))
        return BlockedSide(begin, end, whole, code.bind_index(begin + whole * index(self.lanes)))

    def _block(self, code: Code, row: Expr, col: Expr, streamed: int = 0) -> None:
        """A whole one, or so many past the caches."""
        for access in self.accesses:
            target = self._target(access)
            _transpose(self.emitter, code, access, row, col, self.lanes, target, streamed=streamed)
        if self.direct is None:
            self._lines(code, row, col, index(self.lanes), None)

    def _parts(self, code: Code, rows: BlockedSide, cols: BlockedSide) -> None:
        """What fills no block as parts of blocks, in one loop, for each is a long text."""
        lanes, none = index(self.lanes), index(0)
        at_right = code.bind(tirx.Select(cols.last < cols.end, rows.whole, none))
        across = tirx.truncdiv(distance(cols.begin, cols.end) + (self.lanes - 1), lanes)
        at_bottom = code.bind(tirx.Select(rows.last < rows.end, across, none))

        def part(inner: Code, number: Expr) -> None:
            is_right = number < at_right
            below = cols.begin + (number - at_right) * lanes
            # held in cells: TVM would put the choices into one another, and into all addresses
            row = inner.bind(tirx.Select(is_right, rows.begin + number * lanes, rows.last))
            col = inner.bind(tirx.Select(is_right, cols.last, below))
            down = inner.bind(tirx.min(rows.end - row, lanes))
            along = inner.bind(tirx.min(cols.end - col, lanes))
            for access in self.accesses:
                target = self._target(access)
                _transpose(self.emitter, inner, access, row, col, self.lanes, target, (down, along))
            if self.direct is None:
                self._lines(inner, row, col, down, tirx.Cast(first_lanes.COUNT, along))

        code.loop(none, code.bind(at_right + at_bottom), 1, part, "part")

    def _elements(self, code: Code, rows: BlockedSide, cols: BlockedSide) -> None:
        """The same where the processor has no masks."""

        def columns(begin: Expr, end: Expr) -> Callable[[Code, Expr], None]:
            return lambda inner, row: self.emitter.columns(inner, self.nest, row, begin, end)

        count = rows.whole * index(self.lanes)
        if as_int(cols.last) is None or as_int(cols.last) != as_int(cols.end):
            code.loop(rows.begin, count, 1, columns(cols.last, cols.end), "r")
        code.loop(rows.last, distance(rows.last, rows.end), 1, columns(cols.begin, cols.end), "r")

    def _target(self, access: StridedAccess) -> tirx.Buffer | StridedAccess:
        return self.blocks[access] if self.direct is None else self.direct

    def _lines(self, code: Code, row: Expr, col: Expr, rows: Expr, first: Expr | None) -> None:
        """The rows of a block, of which the operands lie ready; ``first``: how many columns there are."""

        def line(inner: Code, i: Expr) -> None:
            staged = {access: Staged(buffer, i) for access, buffer in self.blocks.items()}
            self.emitter.vector(inner, self.nest, Point(row + i, col, self.lanes, first=first), staged)

        code.loop(index(0), rows, 1, line, "i")


def _or_else(code: Code, condition: Expr, one: BoxSide, other: BoxSide) -> BoxSide:
    """The one where a condition holds."""
    pairs = zip(*(attrs.astuple(side, recurse=False) for side in (one, other)), strict=True)
    return BoxSide(*(code.bind(tirx.Select(condition, *pair)) for pair in pairs))


def has_masked_parts(emitter: NestEmitter, nest: RowNest, accesses: list[StridedAccess], lanes: int) -> bool:
    """Whether parts of blocks are moved under masks, all that a line of them touches too."""
    masked = emitter.kernel.masked
    fits = lanes <= transpose.MOST_PARTIAL
    kinds = all(first_lanes.supported(access.pointer.dtype, masked) for access in accesses)
    return fits and kinds and emitter.has_masks(nest, nest.groups[0], accesses)


def _transpose(
    emitter: NestEmitter,
    code: Code,
    access: StridedAccess,
    row: Expr,
    col: Expr,
    lanes: int,
    target: tirx.Buffer | StridedAccess,
    part: tuple[Expr, Expr] | None = None,
    streamed: int = 0,
) -> None:
    """One block, the first rows and columns of one (``part``), or so many past the caches."""
    scope, memory = emitter.kernel.scope, emitter.kernel.memory
    is_access = isinstance(target, StridedAccess)
    to = memory.address(scope, target, row, col) if is_access else index(0)
    places = (memory.address(scope, access, row, col), to)
    given = _moved(emitter, access, target, places, lanes)
    code.add(transpose.transpose(emitter.kernel.text, *given, part, streamed))


def _moved(
    emitter: NestEmitter,
    access: StridedAccess,
    target: tirx.Buffer | StridedAccess,
    places: tuple[Expr, Expr],
    lanes: int,
) -> tuple[int, tirx.Buffer, Expr, Expr | int, tirx.Buffer, Expr, Expr | int, int]:
    """What functions that transpose are given first."""
    memory = emitter.kernel.memory
    buffer, stride = (
        (memory.buffer(target.pointer), memory.strides(target)[0])
        if isinstance(target, StridedAccess)
        else (target, lanes)
    )
    (at, to), source, along = places, memory.buffer(access.pointer), memory.strides(access)[1]
    return 8 * bytes_of(access.pointer.dtype), source, at, along, buffer, to, stride, lanes


def _copied_to(nest: RowNest, values: OperandValues, accesses: list[StridedAccess]) -> StridedAccess | None:
    """Where the one operand goes, if the nest only copies it to one place with contiguous columns."""
    stored: list[Action] = [action for action in nest.actions if values.stored(action)]
    copies = all(spec_of(action.iop).rearranges for action in nest.actions)
    if len(stored) != 1 or len(accesses) != 1 or not copies or stored[0].write.col != 1:
        return None
    action = stored[0]
    while True:
        source = values.sources[id(action)][0]
        if source.origin == Origin.MEMORY:
            return stored[0].write if action.reads[0].access == accesses[0] else None
        if source.maker is None or source.maker not in nest.actions:
            return None
        action = source.maker
