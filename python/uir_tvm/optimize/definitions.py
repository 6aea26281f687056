# SPDX-License-Identifier: Apache-2.0
"""Which iOp made the value that an iOp is about to read, in a walk of the loop tree in program order.

Only values in reg count: a unit has its registers to itself, so that what its own iOps write between two
points is all that can change there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..igraph.iops import spec_of
from ..igraph.iops_reads import PLAIN
from ..igraph.nodes import IOp, ISlice, walk_body

Place = tuple[str, str, int, int, int, int]


def place(piece: ISlice) -> Place:
    """Equal for two slices exactly when they are the same elements in the same order, valid or not."""
    rows, cols = int(piece.rows), int(piece.cols)
    return (
        str(piece.pointer.name),
        str(piece.offset),
        rows,
        cols,
        int(piece.row_stride) if rows > 1 else 0,
        int(piece.col_stride) if cols > 1 else 0,
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
    """Least and greatest element of a slice, counted from its offset."""
    steps = ((piece.rows - 1) * piece.row_stride, (piece.cols - 1) * piece.col_stride)
    return sum(min(s, 0) for s in steps), sum(max(s, 0) for s in steps)


def written(iop: IOp) -> Sequence[ISlice]:
    """The slices that an iOp changes."""
    return () if not spec_of(iop).touches else tuple(iop.targets)


@attrs.frozen(eq=False)
class _Entry:
    iop: IOp
    place: Place
    valid: tuple[str | None, ...]
    #: Whether the sources still hold what the iOp read.
    intact: bool


class Definitions:
    """What holds at one point of the walk."""

    def __init__(self, entries: Sequence[_Entry] = ()) -> None:
        self._entries = list(entries)

    def inside(self, body: Sequence[Any]) -> Definitions:
        """What holds at the start of every iteration of a loop with that body."""
        other = Definitions(self._entries)
        other.leave(body)
        return other

    def leave(self, body: Sequence[Any]) -> None:
        """Pass a loop: forget what its body changes."""
        for iop, _ in walk_body(body):
            self._forget(written(iop))

    def pass_by(self, iop: IOp) -> None:
        """Go past an iOp."""
        self._forget(written(iop))
        if not _is_maker(iop):
            return
        target = iop.target
        intact = all(s.pointer.level == "reg" and not may_meet(target, s) for s in iop.sources)
        self._entries.append(_Entry(iop, place(target), valid(target), intact))

    def maker(self, iop: IOp, k: int) -> IOp | None:
        """The iOp that made all that ``iop`` reads of its source ``k``."""
        entry = self._entry(iop, k)
        return None if entry is None else entry.iop

    def readable(self, iop: IOp, k: int) -> IOp | None:
        """As `maker`, if what that one read lies in reg and is still there."""
        entry = self._entry(iop, k)
        return entry.iop if entry is not None and entry.intact else None

    def _entry(self, iop: IOp, k: int) -> _Entry | None:
        source = iop.sources[k]
        if source.pointer.level != "reg":
            return None
        where = place(source)
        for entry in reversed(self._entries):
            if entry.place == where:
                return entry if _covers(entry.valid, iop, k) else None
        return None

    def _forget(self, pieces: Sequence[ISlice]) -> None:
        for piece in pieces:
            if piece.pointer.level == "reg":
                self._entries = list(self._without(piece))

    def _without(self, piece: ISlice) -> Iterator[_Entry]:
        for entry in self._entries:
            if may_meet(entry.iop.target, piece):
                continue
            if entry.intact and any(may_meet(source, piece) for source in entry.iop.sources):
                entry = attrs.evolve(entry, intact=False)
            yield entry


def reads_target_box(iop: IOp, k: int) -> bool:
    """Whether an iOp reads of source ``k`` exactly its target's box, whatever the source's bounds."""
    return spec_of(iop).reads(iop)[k] == PLAIN


def seen_through(reader: IOp, k: int, maker: IOp, j: int = 0) -> ISlice:
    """The source ``j`` of an elementwise maker in the place of the reader's source ``k``."""
    source = maker.sources[j]
    if reads_target_box(reader, k):
        return source
    # the bounds of this source say how far the reader goes
    mine = reader.sources[k].valid
    return source.replace(rows=(mine[0], mine[1]), cols=(mine[2], mine[3]))


def _covers(made: tuple[str | None, ...], reader: IOp, k: int) -> bool:
    """Whether a value made in the box ``made`` is all that the reader reads."""
    if made in (UNBOUNDED, valid(reader.sources[k])):
        return True
    return reads_target_box(reader, k) and made == valid(reader.target)


def _is_maker(iop: IOp) -> bool:
    """Whether it makes a value for each element of the target's box, whatever was there."""
    spec = spec_of(iop)
    if not (spec.elementwise or spec.rearranges) or iop.attrs.get("scope", "unit") != "unit":
        return False
    return bool(iop.target.pointer.level == "reg")
