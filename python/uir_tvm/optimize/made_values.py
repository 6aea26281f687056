# SPDX-License-Identifier: Apache-2.0
"""Which iOp made the value that an iOp is about to read, in a walk of the loop tree in program order.

Only values in reg count: a unit has its registers to itself, so that what its own iOps write between two
points is all that can change there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Self

import attrs

from ..igraph.iops import spec_of
from ..igraph.iops_reads import PLAIN
from ..igraph.nodes import IOp, ISlice, walk_body
from .slices import UNBOUNDED, Place, may_meet, place, valid


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
    #: Of the pointers of its target and its sources.
    names: frozenset[str]


class KnownValues:
    """What holds at one point of a walk; a subclass says what an iOp ends, and what it makes."""

    def __init__(self, known: Sequence[Any] = ()) -> None:
        self.known = list(known)

    def inside(self, body: Sequence[Any]) -> Self:
        """What holds at the start of every iteration of a loop with that body."""
        other = copy.copy(self)
        other.leave(body)
        return other

    def leave(self, body: Sequence[Any]) -> None:
        """Pass a loop: forget what its body changes."""
        for iop, _ in walk_body(body):
            self.known = list(self.left(iop))

    def pass_by(self, iop: IOp) -> None:
        """Go past an iOp."""
        made = self.made(iop)
        self.known = [*self.left(iop), *([] if made is None else [made])]

    def left(self, iop: IOp) -> Iterator[Any]:
        """What of all that is known holds after an iOp."""
        raise NotImplementedError

    def made(self, iop: IOp) -> Any:
        """What an iOp makes known; None where that is nothing."""
        raise NotImplementedError


class Definitions(KnownValues):
    """Which iOp made what is in reg."""

    def made(self, iop: IOp) -> _Entry | None:
        """The value of its target, if it makes one."""
        if not _is_maker(iop):
            return None
        target = iop.target
        intact = all(s.pointer.level == "reg" and not may_meet(target, s) for s in iop.sources)
        names = frozenset(piece.pointer.name for piece in (target, *iop.sources))
        return _Entry(iop, place(target), valid(target), intact, names)

    def left(self, iop: IOp) -> Iterator[_Entry]:
        """The values that are still there; those of whose sources one is not are intact no more."""
        pieces = [piece for piece in written(iop) if piece.pointer.level == "reg"]
        changed_names = {piece.pointer.name for piece in pieces}
        for entry in self.known:
            if changed_names.isdisjoint(entry.names):
                yield entry
                continue
            if any(may_meet(entry.iop.target, piece) for piece in pieces):
                continue
            changed = any(may_meet(s, piece) for s in entry.iop.sources for piece in pieces)
            yield attrs.evolve(entry, intact=False) if entry.intact and changed else entry

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
        for entry in reversed(self.known):
            if entry.place == where:
                return entry if _covers(entry.valid, iop, k) else None
        return None


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
