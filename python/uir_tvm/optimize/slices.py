# SPDX-License-Identifier: Apache-2.0
"""What slices have to do with each other by their formulas, at equal values of pid and loop variables."""

from __future__ import annotations

from ..igraph.affine import AffineLike
from ..igraph.nodes import ISlice

Place = tuple[str, str, int, int, AffineLike, AffineLike]


def place(piece: ISlice) -> Place:
    """Equal for two slices exactly when they are the same elements in the same order, valid or not."""
    rows, cols = int(piece.rows), int(piece.cols)
    return (
        str(piece.pointer.name),
        str(piece.offset),
        rows,
        cols,
        piece.stride[0] if rows > 1 else 0,
        piece.stride[1] if cols > 1 else 0,
    )


def valid(piece: ISlice) -> tuple[str | None, ...]:
    """The valid bounds as text, None where there are none."""
    return tuple(None if bound is None else str(bound) for bound in piece.valid)


UNBOUNDED = (None, None, None, None)


def may_meet(a: ISlice, b: ISlice) -> bool:
    """Whether two slices may have an element in common, at equal values of pid and the loop variables."""
    if a.pointer.name != b.pointer.name:
        return False
    shift = b.offset - a.offset
    if not shift.is_constant:
        return True
    (low, high), (first, last) = span(a), span(b)
    return low <= last + shift.constant and first + shift.constant <= high


def span(piece: ISlice) -> tuple[int, int]:
    """Least and greatest element of a slice, counted from its offset; beyond where sizes decide strides."""
    steps = ((piece.rows - 1) * piece.row_stride, (piece.cols - 1) * piece.col_stride)
    return sum(min(s, 0) for s in steps), sum(max(s, 0) for s in steps)


def covers(outer: ISlice, inner: ISlice) -> bool:
    """Whether every element of ``inner`` is surely one of ``outer``, at equal values of pid and loops."""
    if outer.pointer.name != inner.pointer.name:
        return False
    if outer.valid != UNBOUNDED:
        bounds = [None if b is None else str(b) for b in outer.valid]
        return place(outer) == place(inner) and bounds == [None if b is None else str(b) for b in inner.valid]
    if place(outer) == place(inner):
        return True
    shift = inner.offset - outer.offset
    if not shift.is_constant or not dense(outer):
        return False
    (low, high), (first, last) = span(outer), span(inner)
    return low <= first + shift.constant and last + shift.constant <= high


def dense(piece: ISlice) -> bool:
    """Whether a slice without valid bounds is one run of elements, each once."""
    sides = ((piece.rows, abs(piece.row_stride)), (piece.cols, abs(piece.col_stride)))
    reach = 1
    for extent, stride in sorted((s for s in sides if s[0] > 1), key=lambda side: side[1]):
        if stride != reach:
            return False
        reach *= extent
    return True


def whole_pointer(piece: ISlice) -> bool:
    """Whether a slice is all of its pointer, whatever pid and loops are."""
    if piece.valid != UNBOUNDED or not piece.offset.is_constant or not dense(piece):
        return False
    low, high = span(piece)
    return piece.offset.constant + low == 0 and high - low + 1 == int(piece.pointer.size)
