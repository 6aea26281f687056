# SPDX-License-Identifier: Apache-2.0
"""Which box of each source an iOp reads: one rule a source, for boxes of numbers and of expressions alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

#: (row_begin, row_end, col_begin, col_end), all ints; empty where an end is not above its begin.
Box = tuple[int, int, int, int]

#: Which axis of which operand bounds an axis of a source; None: nothing but the source's own bounds.
AxisOf = tuple[str, str] | None

ROWS: AxisOf = ("target", "rows")
COLS: AxisOf = ("target", "cols")
_SOURCE_ROWS: AxisOf = ("source0", "rows")
_SOURCE_COLS: AxisOf = ("source0", "cols")


@attrs.frozen
class Read:
    """How the box that is read of one source follows from the other boxes.

    Parameters
    ----------
    rows, cols : AxisOf
        The axis whose range the source's rows (columns) are read over.
    required : bool
        Whether all of that range must be valid in the source; otherwise what is not is left out.
    certain : bool
        Whether all of it is read; otherwise the data decides which part.
    first : bool
        Whether an axis without an origin is read at its first position, where the target is not empty.
    """

    rows: AxisOf = ROWS
    cols: AxisOf = COLS
    required: bool = True
    certain: bool = True
    first: bool = False

    def box(self, own: Box, boxes: dict[str, Box]) -> Box:
        """The box in numbers, of the source's own valid box and those of the operands by name."""
        return (*self._axis(self.rows, own, 0, boxes), *self._axis(self.cols, own, 2, boxes))

    def _axis(self, origin: AxisOf, own: Box, at: int, boxes: dict[str, Box]) -> tuple[int, int]:
        begin, end = own[at], own[at + 1]
        if origin is None:
            r0, r1, c0, c1 = boxes["target"]
            return (0, int(r0 < r1 and c0 < c1)) if self.first else (begin, end)
        other = boxes[origin[0]]
        first = 0 if origin[1] == "rows" else 2
        if self.required:
            return other[first], other[first + 1]
        begin = max(begin, other[first])
        return begin, max(begin, min(end, other[first + 1]))


#: Of one iOp (or the interpreter's bound form of it): a rule for each source.
Reads = Callable[[Any], tuple[Read, ...]]

PLAIN = Read()


def boxes(rules: Sequence[Read], target: Box, sources: Sequence[Box]) -> list[Box]:
    """What is read of each source, of the target's box and the sources' valid boxes."""
    known = {"target": target}
    if sources:
        known["source0"] = sources[0]
    return [rule.box(own, known) for rule, own in zip(rules, sources, strict=True)]


def same(iop: Any) -> tuple[Read, ...]:
    """Elementwise: the target's box of every source."""
    return (PLAIN,) * len(iop.sources)


def nothing(iop: Any) -> tuple[Read, ...]:
    """Memory is named, no element of it read."""
    return (Read(None, None, required=False, certain=False),) * len(iop.sources)


def move(iop: Any) -> tuple[Read, ...]:
    """With pad, only what the source has."""
    return (Read(required="pad" not in iop.attrs),)


def broadcast(iop: Any) -> tuple[Read, ...]:
    """The column or the row that is repeated."""
    by_row = iop.attrs["axis"] == "row"
    return (Read(ROWS, None, first=True) if by_row else Read(None, COLS, first=True),)


def reduce(iop: Any) -> tuple[Read, ...]:
    """The part of the source's valid box that lies in the target's rows (columns)."""
    by_row = iop.attrs["axis"] == "row"
    return (Read(ROWS, None, required=False) if by_row else Read(None, COLS, required=False),)


def transpose(iop: Any) -> tuple[Read, ...]:
    """The target's box, rows and columns exchanged."""
    return (Read(COLS, ROWS),)


def gather(iop: Any) -> tuple[Read, ...]:
    """The index at the target's box, and all valid rows of the table: which of them, the index decides."""
    if gathers_rows(iop):
        return Read(None, COLS, certain=False), Read(ROWS, None)
    return Read(None, None, certain=False), PLAIN


def scatter(iop: Any) -> tuple[Read, ...]:
    """The source's valid box, and the index of its rows or elements."""
    return Read(None, None), Read(_SOURCE_ROWS, None if scatters_rows(iop) else _SOURCE_COLS)


def contract(iop: Any) -> tuple[Read, ...]:
    """The target's rows of a, its columns of b, over the valid columns of a."""
    return Read(ROWS, None), Read(_SOURCE_COLS, COLS)


def gathers_rows(iop: Any) -> bool:
    """Whether the index of a gather names whole rows (R,1) rather than elements (R,C)."""
    table, index = iop.sources
    return bool(index.shape == (iop.target.rows, 1) and table.cols == iop.target.cols)


def scatters_rows(iop: Any) -> bool:
    """Whether the index of a scatter names whole rows (R,1) rather than elements (R,C)."""
    source, index = iop.sources
    return bool(index.shape == (source.rows, 1) and iop.target.cols == source.cols)
