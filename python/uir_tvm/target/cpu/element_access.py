# SPDX-License-Identifier: Apache-2.0
"""What memory an iOp touches at coordinate (row, column) of its domain, and how two such accesses relate."""

from __future__ import annotations

from enum import IntEnum
from math import gcd

import attrs

from ...igraph.affine import Affine
from ...igraph.nodes import IPointer, ISlice

#: (row_begin, row_end, col_begin, col_end), None = that side of the shape.
Box = tuple[Affine | None, Affine | None, Affine | None, Affine | None]
WHOLE: Box = (None, None, None, None)


class Overlap(IntEnum):
    """How accesses of two iOps over domains with the same rows meet, from harmless to ordering everything."""

    #: No element in common.
    DISJOINT = 0
    #: Coordinate (r, c) of either touches the same element, and no other coordinate does.
    SAME = 1
    #: Row r of either touches elements that only row r of the other touches.
    ROW = 2
    #: Anything else.
    OTHER = 3


@attrs.frozen
class StridedAccess:
    """Element (r, c) of the domain lies at ``offset + r*row + c//times*col``; stride 0 repeats an element.

    Attributes
    ----------
    times : int
        How many neighbours along the columns are the same element.
    pitches : (Affine or None, Affine or None)
        The strides of rows and columns that sizes decide; ``row`` or ``col`` is then `OPEN_STRIDE`.
    """

    pointer: IPointer
    offset: Affine
    row: int
    col: int
    pitches: tuple[Affine | None, Affine | None] = (None, None)
    times: int = 1

    def swapped(self) -> StridedAccess:
        """The same with rows and columns of the domain exchanged."""
        return StridedAccess(self.pointer, self.offset, self.col, self.row, self.pitches[::-1])


def access_of(piece: ISlice, axis: str | None = None) -> StridedAccess:
    """The access of a slice; ``axis`` = row or col repeats its only column or row over the domain."""
    row = piece.row_stride if axis != "col" and piece.rows > 1 else 0
    col = piece.col_stride if axis != "row" and piece.cols > 1 else 0
    pitches = (piece.row_pitch if row else None, piece.col_pitch if col else None)
    return StridedAccess(piece.pointer, piece.offset, row, col, pitches)


def swap_box(box: Box) -> Box:
    """A box with rows and columns exchanged."""
    return (box[2], box[3], box[0], box[1])


def _span(stride: int, count: int) -> tuple[int, int]:
    reach = stride * max(count - 1, 0)
    return min(reach, 0), max(reach, 0)


def _apart(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[1] < b[0] or b[1] < a[0]


def injective(access: StridedAccess, rows: int, cols: int) -> bool:
    """Whether different coordinates touch different elements."""
    if rows == 1 or cols == 1:
        return (rows == 1 or access.row != 0) and (cols == 1 or access.col != 0)
    if access.row == 0 or access.col == 0:
        return False
    # the least step that leads from an element back to itself
    step = gcd(access.row, access.col)
    return abs(access.col) // step >= rows or abs(access.row) // step >= cols


@attrs.frozen
class Domain:
    """The coordinates over which an action touches an access."""

    rows: int
    cols: int


def relation(a: StridedAccess, a_domain: Domain, b: StridedAccess, b_domain: Domain) -> Overlap:
    """How two accesses relate; only over domains with the same rows can rows of them correspond."""
    if a.pointer.name != b.pointer.name:
        return Overlap.DISJOINT
    difference = b.offset - a.offset
    if a.pitches != (None, None) or b.pitches != (None, None) or a.times != 1 or b.times != 1:
        # what lies within the dimensions has an address of its own
        return Overlap.SAME if a == b and a_domain == b_domain else Overlap.OTHER
    if not difference.is_constant:
        return Overlap.OTHER
    shift = difference.constant
    a_cols, b_cols = a_domain.cols, b_domain.cols
    a_col, b_col = _span(a.col, a_cols), _span(b.col, b_cols)
    b_col = (b_col[0] + shift, b_col[1] + shift)
    a_row, b_row = _span(a.row, a_domain.rows), _span(b.row, b_domain.rows)
    if _apart((a_col[0] + a_row[0], a_col[1] + a_row[1]), (b_col[0] + b_row[0], b_col[1] + b_row[1])):
        return Overlap.DISJOINT
    if a_domain.rows != b_domain.rows:
        return Overlap.OTHER
    rows = a_domain.rows
    same_cols = a_cols == b_cols and (a.col == b.col or a_cols == 1)
    exact = shift == 0 and same_cols and (a.row == b.row or rows == 1) and injective(a, rows, a_cols)
    if rows == 1 or a.row == b.row:
        reach = max(a_col[1], b_col[1]) - min(a_col[0], b_col[0])
        if rows == 1 or reach < abs(a.row):
            if _apart(a_col, b_col) or _interleaved(a.col, a_cols, b.col, b_cols, shift):
                return Overlap.DISJOINT
            return Overlap.SAME if exact else Overlap.ROW
    if exact:
        return Overlap.SAME
    if shift == 0 and a.row == b.row != 0 and _one_column(a, a_cols) and _one_column(b, b_cols):
        return Overlap.ROW
    return Overlap.OTHER


def _one_column(access: StridedAccess, cols: int) -> bool:
    return cols == 1 or access.col == 0


def _interleaved(a: int, a_cols: int, b: int, b_cols: int, shift: int) -> bool:
    """Whether the strides keep the columns apart, as those of even and odd elements do."""
    step = gcd(a if a_cols > 1 else 0, b if b_cols > 1 else 0)
    return step > 1 and shift % step != 0
