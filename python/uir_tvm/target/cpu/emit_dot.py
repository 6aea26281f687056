# SPDX-License-Identifier: Apache-2.0
"""The contract iOp of few rows as dot products: vectors run along k, where both operands are contiguous.

What a product of few rows takes is reading b once.  A block of rows x columns has an accumulator for every
element; in the end those of the columns of a row are folded into one another, until a vector has their sums.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from ...igraph.nodes import IOp, ISlice
from .actions import Action
from .address import as_int, distance, index
from .beside import loop_beside
from .buffers import scratch
from .code import Code
from .element_access import access_of
from .elements import constant, convert, element, lanes_of
from .emit_value import KernelContext

#: Most rows: more of them take longer to sum up than vectors of columns take to multiply.
MOST_ROWS = 8
#: Accumulators of a block, of at most so many columns.
ACCUMULATORS, MOST_COLUMNS = 24, 8


def suits(iop: IOp, a: ISlice, b: ISlice) -> bool:
    """Whether a contraction may be emitted so, whatever the vectors are."""
    narrow = str(a.pointer.dtype) == str(b.pointer.dtype) == str(iop.dtype) == "fp32"
    along_k = a.col_stride == 1 and b.row_stride == 1 and b.cols > 1 and b.col_stride != 1
    whole = a.valid[2:] == (None, None) and b.valid[:2] == (None, None)
    plain = len(iop.sources) == 2
    return plain and narrow and along_k and whole and int(iop.target.rows) <= MOST_ROWS


class DotEmitter:
    """Emits one contract iOp of few rows."""

    def __init__(self, kernel: KernelContext, action: Action, vector_bytes: int) -> None:
        self.kernel, self.action = kernel, action
        self.target, (self.a, self.b) = action.iop.target, action.iop.sources[:2]
        self.compute = element(action.iop.dtype).compute
        self.lanes = max(1, vector_bytes // max(4, bytes_of(action.iop.dtype)))

    @property
    def possible(self) -> bool:
        """Whether the contraction has this form, in whole vectors."""
        return self.lanes > 1 and suits(self.action.iop, self.a, self.b) and self.a.cols % self.lanes == 0

    def emit(self, code: Code) -> None:
        """Append the loops over blocks of columns."""
        scope, t = self.kernel.scope, self.target
        begin, end = scope.bound(t.row_begin, 0, t.rows), scope.bound(t.row_end, t.rows, t.rows)
        rows = as_int(distance(begin, end))
        first, last = scope.bound(t.col_begin, 0, t.cols), scope.bound(t.col_end, t.cols, t.cols)
        if rows is None:
            code.loop(begin, distance(begin, end), 1, lambda c, row: self._line(c, row, 1, first, last), "m")
        elif rows:
            self._line(code, begin, rows, first, last)

    def _line(self, code: Code, row: Expr, rows: int, first: Expr, last: Expr) -> None:
        """All columns of some rows."""
        columns = 1
        while 2 * columns * rows <= ACCUMULATORS and columns < min(MOST_COLUMNS, self.lanes):
            columns *= 2
        first = code.bind_index(first)
        count = distance(first, last)
        known = as_int(count)
        count = code.bind_index(count)
        whole = index(known // columns) if known is not None else tirx.truncdiv(count, index(columns))
        whole = code.bind_index(whole)
        code.loop(first, whole, columns, lambda c, col: self._block(c, row, rows, col, columns), "n")
        done = first + whole * index(columns)
        rest = index(known % columns) if known is not None else count - whole * index(columns)
        code.loop(done, rest, 1, lambda c, col: self._block(c, row, rows, col, 1), "n")

    def _block(self, code: Code, row: Expr, rows: int, col: Expr, columns: int) -> None:
        at = tirx.Ramp(index(0), index(1), self.lanes)
        held = [[scratch(code, "acc", self.compute, self.lanes) for _ in range(columns)] for _ in range(rows)]
        for line in held:
            for buffer in line:
                code.add(tirx.BufferStore(buffer, constant(0, self.compute, self.lanes), [at]))

        def step(inner: Code, k: Expr) -> None:
            factors = [inner.bind(self._along(self.a, row + i, k, True)) for i in range(rows)]
            for j in range(columns):
                vector = inner.bind(self._along(self.b, col + j, k, False))
                for i in range(rows):
                    total = tirx.BufferLoad(held[i][j], [at]) + factors[i] * vector
                    inner.add(tirx.BufferStore(held[i][j], total, [at]))

        depth = index(self.a.cols // self.lanes)
        loop_beside(code, self.kernel.text, index(0), depth, self.lanes, rows * columns, step, "k")
        write, memory, scope = self.action.write, self.kernel.memory, self.kernel.scope
        for i, line in enumerate(held):
            value = self._sums(code, [code.bind(tirx.BufferLoad(buffer, [at])) for buffer in line])
            address = memory.address(scope, write, row + i, col)
            if self.action.iop.attrs.get("accumulate"):
                value = code.bind(value + convert(memory.load(write, address, columns), self.compute))
            code.add(memory.store(write, address, element(self.action.iop.dtype).round(value)))

    def _along(self, piece: ISlice, at: Expr, k: Expr, by_row: bool) -> Expr:
        """A vector of neighbours along k, of a row of a or a column of b."""
        memory, access = self.kernel.memory, access_of(piece)
        if by_row:
            return memory.load(access, memory.address(self.kernel.scope, access, at, k), self.lanes)
        turned = access.swapped()
        return memory.load(turned, memory.address(self.kernel.scope, turned, at, k), self.lanes)

    def _sums(self, code: Code, vectors: list[Expr]) -> Expr:
        """The sum of each vector's lanes, as a vector of them."""
        size = self.lanes
        while len(vectors) > 1:
            size //= 2
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self._folded(code, a, b, size) for a, b in pairs]
        (value,) = vectors
        while size > 1:
            size //= 2
            parts = [base + lane for base in range(0, lanes_of(value), 2 * size) for lane in range(size)]
            low = tirx.Shuffle([value], parts)
            high = tirx.Shuffle([value], [lane + size for lane in parts])
            value = code.bind(low + high)
        return value

    def _folded(self, code: Code, a: Expr, b: Expr, size: int) -> Expr:
        """Halves of ``size`` lanes of either added up: those of a before those of b."""
        low = [base + lane for base in range(0, 2 * self.lanes, 2 * size) for lane in range(size)]
        return code.bind(tirx.Shuffle([a, b], low) + tirx.Shuffle([a, b], [lane + size for lane in low]))
