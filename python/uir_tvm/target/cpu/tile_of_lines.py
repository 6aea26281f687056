# SPDX-License-Identifier: Apache-2.0
"""A transposed tile that is put together in the first cache, and then goes to memory by whole lines.

Rows of an operand that is transposed lie a power of two apart more often than not: their lines share a few
places of the caches, so that what is left of a line after one block is gone when the next block wants it.
Here the blocks of one line follow each other, and those of a tile's next columns come after.
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
        """The tile, if a row of it is lines of the operand, and half of the first cache holds it."""
        down, across = as_int(rows.whole), as_int(cols.whole)
        if down is None or across is None:
            return None
        height, width, size = down * lanes, across * lanes, bytes_of(target.pointer.dtype)
        line = emitter.streams.line
        fits = 2 * height * width * size <= emitter.kernel.first_cache
        whole = lanes * size < line and height * size % line == 0
        return (
            TileOfLines(emitter, source, target, rows, cols, height, width, lanes) if fits and whole else None
        )

    def emit(self, code: Code) -> None:
        """Append the loops: blocks, line after line of the operand, then the lines of the result."""
        dtype = str(self.target.pointer.dtype)
        tile = scratch(code, "lines", element(dtype).storage, self.height * self.width)
        per_line = self.emitter.streams.line // bytes_of(dtype)
        along = self.height // per_line

        def column(inner: Code, col: Expr) -> None:
            inner.loop(index(0), index(along), per_line, lambda x, row: self._line(x, tile, row, col), "r")

        code.loop(index(0), index(self.width // self.lanes), self.lanes, column, "c")

        def stored(inner: Code, row: Expr) -> None:
            count = index(self.width // self.lanes)
            inner.loop(index(0), count, self.lanes, lambda x, col: self._store(x, tile, row, col), "c")

        code.loop(index(0), index(self.height), 1, stored, "r")

    def _line(self, code: Code, tile: tirx.Buffer, row: Expr, col: Expr) -> None:
        """The blocks of a line of some rows of the operand; the same lines of the next tile are fetched."""
        memory, scope, text = self.emitter.kernel.memory, self.emitter.kernel.scope, self.emitter.kernel.text
        size, source = bytes_of(self.source.pointer.dtype), memory.buffer(self.source.pointer)
        fetch = fetch_function(text, False, False)

        def at(down: int, across: int) -> Expr:
            place = (self.rows.begin + row + index(down), self.cols.begin + col + index(across))
            return memory.address(scope, self.source, *place)

        for k in range(self.lanes):
            where = tirx.address_of(tirx.BufferLoad(source, [at(0, k)]))
            distance = tirx.const(self.height * size, "int64")
            code.add(tirx.Evaluate(tirx.call_extern("void", fetch, where, distance)))
        stride = memory.strides(self.source)[1]
        for down in range(0, self.emitter.streams.line // size, self.lanes):
            to = (row + index(down)) * index(self.width) + col
            given = (8 * size, source, at(down, 0), stride, tile, to, self.width, self.lanes)
            code.add(transpose.transpose(text, *given, None, 0))

    def _store(self, code: Code, tile: tirx.Buffer, row: Expr, col: Expr) -> None:
        """A vector past the caches."""
        memory, scope = self.emitter.kernel.memory, self.emitter.kernel.scope
        at = row * index(self.width) + col
        value = tirx.BufferLoad(tile, [tirx.Ramp(at, index(1), self.lanes)])
        to = memory.address(scope, self.target, self.rows.begin + row, self.cols.begin + col)
        streams, pointer = self.emitter.streams, self.target.pointer
        code.add(streams.put(memory.buffer(pointer), to, value, str(pointer.dtype)))
