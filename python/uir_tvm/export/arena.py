# SPDX-License-Identifier: Apache-2.0
"""Buffers in one allocation: which of them may share bytes because they are not alive at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

#: Every buffer starts at a multiple of this many bytes: transfers from there reach the best bandwidth
#: (at least 64 are asked for by the vendor's runtime, see `TAIL`).
ALIGNMENT = 512
#: Whoever divides a device allocation rounds the size of each part up to 32 bytes and adds 32 more
#: (Ascend CANN 8.0, application development API, aclrtMalloc, restrictions).
ROUND, TAIL = 32, 32


@attrs.frozen
class Lifetime:
    """A buffer's bytes, and the first and last step that need it."""

    name: str
    nbytes: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether some step needs both."""
        return self.first <= other.last and other.first <= self.last


@attrs.frozen
class Arena:
    """Where buffers lie in one allocation.

    Parameters
    ----------
    offsets : mapping of str to int
        Bytes from its start, a multiple of `ALIGNMENT`.
    nbytes : int
        Of the allocation.
    """

    offsets: Mapping[str, int]
    nbytes: int


def occupied(nbytes: int) -> int:
    """Bytes that a part of an allocation takes."""
    return -(-nbytes // ROUND) * ROUND + TAIL


def plan(lifetimes: Sequence[Lifetime]) -> Arena:
    """Place buffers: the largest first, each at the lowest offset that no buffer alive with it covers.

    The result depends on the arguments alone, so that a project written twice is the same.
    """
    placed: list[tuple[int, Lifetime]] = []
    offsets: dict[str, int] = {}
    order = sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].nbytes, i))
    for one in (lifetimes[index] for index in order):
        offset = 0
        for start, other in sorted(placed, key=lambda row: row[0]):
            if not one.meets(other):
                continue
            if offset + occupied(one.nbytes) <= start:
                break
            offset = max(offset, _up(start + occupied(other.nbytes)))
        placed.append((offset, one))
        offsets[one.name] = offset
    nbytes = max((start + occupied(one.nbytes) for start, one in placed), default=0)
    return Arena({one.name: offsets[one.name] for one in lifetimes}, _up(nbytes))


def _up(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
