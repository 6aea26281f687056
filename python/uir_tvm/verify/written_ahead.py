# SPDX-License-Identifier: Apache-2.0
"""Whether rounds of a loop write what later rounds read, by the form of both: as loads do that run ahead.

``for k { move t[.. (k + 1) % 2], x[k + 1];  unary.exp u, t[.. k % 2] }`` reads in round k what round
``k - 1`` wrote, and in round 0 what stands before the loop.  isl decides that too, and takes long where sizes
bound the boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..igraph.affine import Affine, AffineLike, affine, var
from .access import Access
from .region import PID, Axis, Region

#: How many rounds later what is written is read at most.
MOST_ROUNDS_LATER = 3


def by_rounds(writes: Sequence[Access], read: Access) -> bool:
    """Whether in all rounds of a loop an earlier round, or what stands before, wrote all that is read.

    Parameters
    ----------
    writes : sequence of Access
        Of the pointer, by the unit that reads or by all.
    """
    names = [str(loop.var) for loop in read.loops]
    for depth, name in enumerate(names):
        fixed = {PID, *names[: depth + 1], *read.region.launch.names}
        for write in writes:
            if [str(loop.var) for loop in write.loops[: depth + 1]] != names[: depth + 1]:
                continue
            for later in range(1, MOST_ROUNDS_LATER + 1):
                if _writes(write, read, {name: var(name) - later}, {}, fixed) and all(
                    _before(writes, read, names[:depth], {name: affine(first)}) for first in range(later)
                ):
                    return True
    return False


def _before(
    writes: Sequence[Access], read: Access, around: Sequence[str], first: Mapping[str, Affine]
) -> bool:
    """Whether what stands before the loop, in one round of those around it, wrote what a round reads."""
    fixed = {PID, *around, *read.region.launch.names}
    return any(
        write.position < read.position
        and [str(loop.var) for loop in write.loops[: len(around)]] == list(around)
        and not set(first) & {str(loop.var) for loop in write.loops}
        and _writes(write, read, {}, first, fixed)
        for write in writes
    )


def _writes(
    write: Access,
    read: Access,
    at_write: Mapping[str, AffineLike],
    at_read: Mapping[str, AffineLike],
    fixed: set[str],
) -> bool:
    """Whether a write in some rounds has all that is read in others; both depend on what is fixed alone."""
    w, r = write.region, read.region
    if w.every not in (1, r.every) or not set(_variables(w)) <= fixed:
        return False
    return str(w.offset.substitute(at_write)) == str(r.offset.substitute(at_read)) and all(
        _within(a, at_write, b, at_read) for a, b in ((w.rows, r.rows), (w.cols, r.cols))
    )


def _within(a: Axis, at_a: Mapping[str, AffineLike], b: Axis, at_b: Mapping[str, AffineLike]) -> bool:
    """Whether a writer's axis has every position of a reader's, both from one offset."""
    if b.extent > a.extent or (a.step != b.step and b.extent > 1):
        return False
    lower = {str(bound.substitute(at_b)) for bound in b.lower}
    upper = {str(bound.substitute(at_b)) for bound in b.upper}
    return all(str(bound.substitute(at_a)) in lower for bound in a.lower) and all(
        str(bound.substitute(at_a)) in upper for bound in a.upper
    )


def _variables(region: Region) -> Iterator[str]:
    for value in (region.offset, *region.bounds):
        yield from value.variables()
