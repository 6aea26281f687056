# SPDX-License-Identifier: Apache-2.0
"""The contract iOp: a matrix product of tiles by fused multiply-adds on a block of registers.

A block of rows x vectors stays in registers while k runs: every step loads the vectors of one row of b and
one element of each row of a.  How large it is follows from the number of vector registers.  A b whose columns
are not contiguous is first packed, one panel at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from ...igraph.nodes import ISlice
from .actions import Action
from .address import as_int, distance, index
from .beside import loop_beside
from .buffers import scratch
from .code import Code
from .element_access import access_of
from .elements import constant, convert, element, splat
from .emit_value import KernelContext

#: Most rows of a block: more of them than hide the latency of a multiply-add only make code longer.
MOST_ROWS = 12
#: Rows up to which packing b costs more than reading it as it lies.
UNPACKED_ROWS = 4


def block_vectors(registers: int) -> int:
    """Vectors of a block: with 6 rows, 4 of them and their b fit in 32 registers, 2 in 16."""
    return 4 if registers >= 32 else 2


def block_rows(registers: int, vectors: int) -> int:
    """Rows of a block: what is left beside the vectors of b, one element of a, and one register to spare."""
    return max(1, min(MOST_ROWS, (registers - vectors - 2) // vectors))


class ContractEmitter:
    """Emits one contract iOp."""

    def __init__(self, kernel: KernelContext, action: Action, vector_bytes: int) -> None:
        self.kernel, self.action = kernel, action
        self.target, (self.a, self.b, *scaled) = action.iop.target, action.iop.sources
        #: what the sums are multiplied by before products are added (`begin_contract`)
        self.factor = scaled[0] if scaled else None
        self.compute = element(action.iop.dtype).compute
        self.lanes = max(1, vector_bytes // max(4, bytes_of(action.iop.dtype)))
        self.widest = self.lanes * block_vectors(kernel.registers)
        self.panel: tirx.Buffer | None = None

    def emit(self, code: Code) -> None:
        """Append the loops over blocks."""
        scope, t = self.kernel.scope, self.target
        rows = (scope.bound(t.row_begin, 0, t.rows), scope.bound(t.row_end, t.rows, t.rows))
        cols = (scope.bound(t.col_begin, 0, t.cols), scope.bound(t.col_end, t.cols, t.cols))
        depth = self.a.cols
        k0, k1 = scope.bound(self.a.col_begin, 0, depth), scope.bound(self.a.col_end, depth, depth)
        self.depth = (code.bind_index(k0), code.bind_index(distance(k0, k1)))
        pack = self.b.cols > 1 and self.b.col_stride != 1 and t.rows > UNPACKED_ROWS
        if pack:
            self.panel = scratch(code, "panel", self.compute, self.a.cols * self.widest)
        for begin, count, width in self._panels(code, *cols):

            def body(inner: Code, col: Expr, width: int = width) -> None:
                self._pack(inner, col, width)
                self._rows(inner, rows, col, width)

            code.loop(begin, count, width, body, "n")

    def _panels(self, code: Code, begin: Expr, end: Expr) -> Iterator[tuple[Expr, Expr, int]]:
        """(first column, panels, columns of each): wide ones, then narrower ones for what is left."""
        known = as_int(distance(begin, end))
        if known is None:
            yield from self._dynamic_panels(code, begin, end)
            return
        wide = known // self.widest
        yield begin, index(wide), self.widest
        begin, known = begin + wide * self.widest, known % self.widest
        whole = known // self.lanes * self.lanes
        if whole:
            yield begin, index(1), whole
        begin, known = begin + whole, known - whole
        while known:
            width = 1 << (known.bit_length() - 1)
            yield begin, index(1), width
            begin, known = begin + width, known - width

    def _dynamic_panels(self, code: Code, begin: Expr, end: Expr) -> Iterator[tuple[Expr, Expr, int]]:
        begin = code.bind_index(begin)
        count = code.bind_index(distance(begin, end))
        wide = code.bind_index(tirx.truncdiv(count, index(self.widest)))
        yield begin, wide, self.widest
        done = code.bind_index(wide * index(self.widest))
        yield begin + done, count - done, 1

    def _rows(self, code: Code, rows: tuple[Expr, Expr], col: Expr, width: int) -> None:
        begin, end = rows
        count = distance(begin, end)
        known = as_int(count)
        size = block_rows(self.kernel.registers, max(1, width // self.lanes))

        def blocks(rows: int) -> Callable[[Code, Expr], None]:
            return lambda inner, row: self._block(inner, row, rows, col, width)

        if known is not None:
            code.loop(begin, index(known // size), size, blocks(size), "m")
            if known % size:
                blocks(known % size)(code, begin + known // size * size)
            return
        whole = code.bind_index(tirx.truncdiv(count, index(size)))
        code.loop(begin, whole, size, blocks(size), "m")
        rest = begin + whole * size
        code.loop(rest, distance(rest, end), 1, blocks(1), "m")

    def _block(self, code: Code, row: Expr, rows: int, col: Expr, width: int) -> None:
        lanes = min(width, self.lanes)
        parts = range(0, width, lanes)
        each = [(row + i, col + part) for i in range(rows) for part in parts]
        at = tirx.Ramp(index(0), index(1), lanes) if lanes > 1 else index(0)
        held = [scratch(code, "acc", self.compute, lanes) for _ in each]
        for buffer, (r, c) in zip(held, each, strict=True):
            code.add(tirx.BufferStore(buffer, self._initial(r, c, lanes), [at]))

        def step(inner: Code, k: Expr) -> None:
            vectors = [inner.bind(self._b(k, col, part, lanes)) for part in parts]
            for i in range(rows):
                factor = inner.bind(self._load(self.a, row + i, k, 1))
                for part, vector in enumerate(vectors):
                    buffer = held[i * len(vectors) + part]
                    total = tirx.BufferLoad(buffer, [at]) + splat(factor, lanes) * vector
                    inner.add(tirx.BufferStore(buffer, total, [at]))

        loop_beside(code, self.kernel.text, *self.depth, 1, len(held), step, "k")
        write, memory = self.action.write, self.kernel.memory
        for buffer, (r, c) in zip(held, each, strict=True):
            value = element(self.action.iop.dtype).round(code.bind(tirx.BufferLoad(buffer, [at])))
            code.add(memory.store(write, memory.address(self.kernel.scope, write, r, c), value))

    def _initial(self, row: Expr, col: Expr, lanes: int) -> Expr:
        if not self.action.iop.attrs.get("accumulate"):
            return constant(0, self.compute, lanes)
        held = self._load(self.target, row, col, lanes)
        return held if self.factor is None else held * self._load(self.factor, row, col, lanes)

    def _load(self, piece: ISlice, row: Expr, col: Expr, lanes: int) -> Expr:
        memory = self.kernel.memory
        access = access_of(piece)
        value = memory.load(access, memory.address(self.kernel.scope, access, row, col), lanes)
        return convert(value, self.compute)

    def _b(self, k: Expr, col: Expr, part: int, lanes: int) -> Expr:
        """``lanes`` elements of row k of b, ``part`` columns into the panel that begins at ``col``."""
        if self.panel is None:
            return self._load(self.b, k, col + part, lanes)
        at = k * index(self.widest) + part
        return tirx.BufferLoad(self.panel, [tirx.Ramp(at, index(1), lanes) if lanes > 1 else at])

    def _pack(self, code: Code, col: Expr, width: int) -> None:
        if self.panel is None:
            return

        def line(inner: Code, k: Expr) -> None:
            def one(innermost: Code, j: Expr) -> None:
                at = k * index(self.widest) + j
                innermost.add(tirx.BufferStore(self.panel, self._load(self.b, k, col + j, 1), [at]))

            inner.loop(index(0), index(width), 1, one, "j")

        code.loop(*self.depth, 1, line, "k")
