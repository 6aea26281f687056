# SPDX-License-Identifier: Apache-2.0
"""Reductions of short rows: as many rows as a vector has lanes are combined across their lanes at once.

Before, of a row of two vectors of eight lanes::

    for r:  v = max(x[r, 0:8], x[r, 8:16]);  m[r] = the greatest lane of v

After: seven steps make eight results, where three steps made one, and what is computed of a result (the
quotient of a softmax, the root of a norm) is computed of a vector of them::

    for r:  partials[r] = max(x[r, 0:8], x[r, 8:16])
    for r in steps of 8:  m[r : r + 8] = the greatest lane of each of partials[r : r + 8]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
from tvm import tirx
from tvm.ir import Expr

from .actions import Action
from .address import index
from .buffers import scratch
from .code import Code
from .elements import lanes_of
from .emit_reduce import Combine, RowReduction, rounded

#: Types of accumulators that a vector has eight of, or four where it is of 16 bytes.
TYPES = ("float32", "int32")
#: Lanes within which one instruction mixes two vectors of AVX2.
PART = 4


@attrs.define
class RowBlocks:
    """The reductions of a pass over rows, of which each row leaves a vector.

    Parameters
    ----------
    rows : int
        Of the pass, all of which exist.
    lanes : int
        Rows that are combined at once.
    outside : Code
        The code around the loop over rows.
    """

    rows: int
    lanes: int
    outside: Code
    _held: list[tuple[RowReduction, tirx.Buffer]] = attrs.field(factory=list)

    @staticmethod
    def lanes_for(vector_bytes: int) -> int:
        """Rows that are combined at once by registers of this width."""
        return min(vector_bytes // 4, 8)

    @property
    def actions(self) -> list[Action]:
        """The reductions that were taken."""
        return [reduction.action for reduction, _ in self._held]

    def take(self, code: Code, row: Expr, reduction: RowReduction) -> bool:
        """Keep a row's vector; whether the reduction is one that has no more than that."""
        fits = self.lanes >= PART and self.rows >= self.lanes and reduction.dtype in TYPES
        if not fits or reduction.has_scalars or reduction.lanes % self.lanes:
            return False
        buffer = scratch(self.outside, "partials", reduction.dtype, self.rows * self.lanes)
        code.add(tirx.BufferStore(buffer, reduction.vector(code, self.lanes), [self._of_row(row)]))
        self._held.append((reduction, buffer))
        return True

    def finish(self, code: Code) -> Iterator[tuple[Action, tirx.Buffer]]:
        """After the loop over rows: each reduction, and a buffer with its result of every row."""
        for reduction, partials in self._held:
            results = scratch(code, "row_values", reduction.dtype, self.rows)

            def block(
                inner: Code,
                row: Expr,
                reduction: RowReduction = reduction,
                partials: tirx.Buffer = partials,
                results: tirx.Buffer = results,
            ) -> None:
                loads = (tirx.BufferLoad(partials, [self._of_row(row + k)]) for k in range(self.lanes))
                made = across(inner, [inner.bind(load) for load in loads], reduction.combine)
                at = tirx.Ramp(row, index(1), self.lanes)
                inner.add(tirx.BufferStore(results, rounded(reduction.action, made), [at]))

            code.loop(index(0), index(self.rows // self.lanes), self.lanes, block, "b")
            if self.rows % self.lanes:
                # some of them again
                block(code, index(self.rows - self.lanes))
            yield reduction.action, results

    def _of_row(self, row: Expr) -> Expr:
        return tirx.Ramp(row * index(self.lanes), index(1), self.lanes)


def across(code: Code, vectors: Sequence[Expr], combine: Combine) -> Expr:
    """A vector of what the lanes of each vector make; as many vectors as a vector has lanes, 4 or 8.

    ::

        8 vectors: a b c d e f g h          halves of a and e, b and f, c and g, d and h
        4 vectors: ae bf cg dh, 4 lanes each    pairs of lanes of neighbours
        2 vectors: abef cdgh, 2 lanes each      single lanes of neighbours
        1 vector: abcdefgh
    """
    lanes = lanes_of(vectors[0])
    if lanes > PART:
        half = lanes // 2
        low = [*range(half), *range(lanes, lanes + half)]
        pairs = zip(vectors[:half], vectors[half:], strict=True)
        vectors = [_combined(code, a, b, low, half, combine) for a, b in pairs]
    for step, places in ((2, (0, 1)), (1, (0, 2))):
        low = [
            number * lanes + part + place
            for part in range(0, lanes, PART)
            for number in (0, 1)
            for place in places
        ]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_combined(code, a, b, low, step, combine) for a, b in pairs]
    (value,) = vectors
    return value


def _combined(code: Code, a: Expr, b: Expr, low: Sequence[int], step: int, combine: Combine) -> Expr:
    """Lanes of two vectors with those that lie ``step`` further on."""
    first = code.bind(tirx.Shuffle([a, b], list(low)))
    second = code.bind(tirx.Shuffle([a, b], [lane + step for lane in low]))
    return code.bind(combine(first, second))
