# SPDX-License-Identifier: Apache-2.0
"""A transposed tile that is put together in the first cache, and then goes to memory by whole lines.

Rows of an operand that is transposed lie a power of two apart more often than not: their lines share a few
places of the caches, so that what is left of a line after one block is gone when the next block wants it.
Here the blocks of one line follow each other, and those of a tile's next columns come after.  While a line
is transposed the same line of the next rows is fetched, and while the tile goes to memory the next tile is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from . import transpose
from .address import as_int, index
from .buffers import scratch
from .code import Code
from .element_access import StridedAccess
from .elements import element
from .prefetch import fetch_function

if TYPE_CHECKING:
    from .emit_nest import NestEmitter


@attrs.frozen
class BlockedSide:
    """A range of rows or columns, how many whole blocks it has, and where these end."""

    begin: Expr
    end: Expr
    whole: Expr
    last: Expr

    @property
    def has_length(self) -> bool:
        """Whether sizes decide nothing of it."""
        return as_int(self.begin) is not None and as_int(self.end) is not None


@attrs.frozen(eq=False)
class TileOfLines:
    """A copy of whole blocks, of sides that are known.

    Attributes
    ----------
    emitter : NestEmitter
    source, target : StridedAccess
        Contiguous along rows, and along columns.
    rows, cols : BlockedSide
    height, width : int
        Rows and columns of the tile.
    lanes : int
        Of a block.
    """

    emitter: NestEmitter
    source: StridedAccess
    target: StridedAccess
    rows: BlockedSide
    cols: BlockedSide
    height: int
    width: int
    lanes: int

    @staticmethod
    def of(
        emitter: NestEmitter,
        source: StridedAccess,
        target: StridedAccess,
        rows: BlockedSide,
        cols: BlockedSide,
        lanes: int,
    ) -> TileOfLines | None:
        """The tile, if a row of it is several lines of the result, and half of the first cache holds it."""
        down, across = as_int(rows.whole), as_int(cols.whole)
        if down is None or across is None:
            return None
        height, width, size = down * lanes, across * lanes, bytes_of(target.pointer.dtype)
        line = emitter.streams.line
        fits = 2 * height * width * size <= emitter.kernel.first_cache
        whole = lanes * size < line and width * size % line == 0
        several = width * size > line and height * size >= line
        if not (fits and whole and several):
            return None
        return TileOfLines(emitter, source, target, rows, cols, height, width, lanes)

    def emit(self, code: Code) -> None:
        """Append the loops: blocks, line after line of the operand, then the lines of the result."""
        dtype = str(self.target.pointer.dtype)
        tile = scratch(code, "lines", element(dtype).storage, self.height * self.width)
        per_line, step = self.per_line, self.step

        def column(inner: Code, col: Expr) -> None:
            count = index(self.height // step)
            inner.loop(index(0), count, step, lambda x, row: self._line(x, tile, row, col), "r")

        code.loop(index(0), index(self.width // self.lanes), self.lanes, column, "c")

        def stored(inner: Code, row: Expr) -> None:
            count = index(self.width // per_line)
            inner.loop(index(0), count, per_line, lambda x, col: self._store(x, tile, row, col), "c")

        code.loop(index(0), index(self.height), 1, stored, "r")

    @property
    def per_line(self) -> int:
        """Elements of a line."""
        return self.emitter.streams.line // bytes_of(self.target.pointer.dtype)

    @property
    def along(self) -> int:
        """Lines of the operand in a column of the tile."""
        return -(-self.height // self.per_line)

    @property
    def step(self) -> int:
        """Elements of a column that are transposed at once: a line, or a block where no lines fill it."""
        return self.lanes if self.height % self.per_line else self.per_line

    def _at(self, row: Expr, col: Expr) -> Expr:
        """Where the operand has an element of the tile."""
        memory, scope = self.emitter.kernel.memory, self.emitter.kernel.scope
        return memory.address(scope, self.source, self.rows.begin + row, self.cols.begin + col)

    def _fetch(self, code: Code, row: Expr, col: Expr, beyond: int, near: bool) -> None:
        """Fetch a line of the operand, so many bytes further on."""
        buffer = self.emitter.kernel.memory.buffer(self.source.pointer)
        name = fetch_function(self.emitter.kernel.text, False, near)
        where = tirx.address_of(tirx.BufferLoad(buffer, [self._at(row, col)]))
        code.add(tirx.Evaluate(tirx.call_extern("void", name, where, tirx.const(beyond, "int64"))))

    def _line(self, code: Code, tile: tirx.Buffer, row: Expr, col: Expr) -> None:
        """The blocks of a line of some rows of the operand; the same line of the next rows is fetched."""
        memory, text = self.emitter.kernel.memory, self.emitter.kernel.text
        size, source = bytes_of(self.source.pointer.dtype), memory.buffer(self.source.pointer)

        # of the last rows it fetches these again, which costs nothing
        below = code.bind(tirx.min(col + index(self.lanes), index(self.width - self.lanes)))
        for k in range(self.lanes):
            self._fetch(code, row, below + index(k), 0, True)
        stride = memory.strides(self.source)[1]
        for down in range(0, self.step, self.lanes):
            to = (row + index(down)) * index(self.width) + col
            at = self._at(row + index(down), col)
            given = (8 * size, source, at, stride, tile, to, self.width, self.lanes)
            code.add(transpose.transpose(text, *given, None, 0))

    def _store(self, code: Code, tile: tirx.Buffer, row: Expr, col: Expr) -> None:
        """A line past the caches; one of the next tile is fetched, in the order of the operand's rows."""
        memory, scope = self.emitter.kernel.memory, self.emitter.kernel.scope
        number = row * index(self.width // self.per_line) + tirx.floordiv(col, index(self.per_line))
        line = tirx.floormod(number, index(self.along)) * index(self.per_line)
        beyond = self.height * bytes_of(self.source.pointer.dtype)
        self._fetch(code, line, tirx.floordiv(number, index(self.along)), beyond, False)
        streams, pointer = self.emitter.streams, self.target.pointer
        for part in range(0, self.per_line, self.lanes):
            at = row * index(self.width) + col + index(part)
            value = tirx.BufferLoad(tile, [tirx.Ramp(at, index(1), self.lanes)])
            place = (self.rows.begin + row, self.cols.begin + col + index(part))
            to = memory.address(scope, self.target, *place)
            code.add(streams.put(memory.buffer(pointer), to, value, str(pointer.dtype)))
