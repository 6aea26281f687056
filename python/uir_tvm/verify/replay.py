# SPDX-License-Identifier: Apache-2.0
"""Replay of one pointer: which of its elements are written when they are read, on all units at once.

The loop tree is run as it stands with an array that marks what is written.  Marks are only ever added,
so an iteration that touches the same elements as the one before finds nothing new: loops that the
pointer's slices do not depend on run once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from ..igraph.nodes import Loop
from .access import Access
from .region import PID

#: Bytes of the numbers that one visited point needs (addresses, owners, conditions).
POINT_BYTES = 48


@attrs.frozen
class Unwritten:
    """An access that reads an element before anything writes it, and the point."""

    read: Access
    values: dict[str, int]
    element: int


def cost(accesses: Sequence[Access]) -> int:
    """How many elements a replay visits, a call of NumPy counted as a thousand."""
    needed = _needed(accesses)
    total = 0
    for a in accesses:
        calls = math.prod(int(n.extent) for n in a.loops if str(n.var) in needed)
        total += calls * (1000 + a.region.num_points([PID]))
    return total


def memory(accesses: Sequence[Access], size: int, share: int = 1) -> int:
    """Bytes that `first_unwritten` takes at most.

    A mark for every element of every owner that differs, and some numbers for every point that one access
    visits at once.
    """
    units = _units(accesses)
    marks = ((units - 1) // share + 1) * size
    points = max((units * a.region.rows.extent * a.region.cols.extent for a in accesses), default=0)
    return marks + POINT_BYTES * points


def _units(accesses: Sequence[Access]) -> int:
    """Units that must run: one stands for all where no slice tells them apart."""
    units = accesses[0].region.extents[PID]
    return units if any(PID in a.region.used for a in accesses) else 1


def first_unwritten(accesses: Sequence[Access], size: int, share: int = 1) -> list[Unwritten]:
    """Every access that reads unwritten elements, with the first point at which it does; see `memory`.

    Parameters
    ----------
    accesses : sequence of Access
        All accesses of one pointer of ``size`` elements, in program order.
    share : int
        How many units with consecutive pids share it: 1 for reg, a group for sram, all for dram.
    """
    if not accesses:
        return []
    run = _Run(accesses, size, share)
    run.body(list(accesses), 0, {})
    return list(run.found.values())


def _needed(accesses: Sequence[Access]) -> set[str]:
    """The loops on which some slice depends."""
    return {v for a in accesses for v in a.region.used if v != PID}


class _Run:
    def __init__(self, accesses: Sequence[Access], size: int, share: int) -> None:
        self.needed = _needed(accesses)
        self.pids = np.arange(_units(accesses), dtype=np.int64)
        self.owner = self.pids // share
        self.written = np.zeros((int(self.owner[-1]) + 1, size), dtype=np.bool_)
        self.found: dict[tuple[int, str], Unwritten] = {}

    def body(self, accesses: Sequence[Access], depth: int, env: dict[str, int]) -> None:
        """Runs the accesses, which share the first ``depth`` loops."""
        at = 0
        while at < len(accesses):
            loop = _loop(accesses[at], depth)
            if loop is None:
                self.one(accesses[at], env)
                at += 1
                continue
            end = at
            while end < len(accesses) and (other := _loop(accesses[end], depth)) and other.var == loop.var:
                end += 1
            for value in range(int(loop.extent) if str(loop.var) in self.needed else 1):
                self.body(accesses[at:end], depth + 1, env | {str(loop.var): value})
            at = end

    def one(self, access: Access, env: dict[str, int]) -> None:
        """One access at one point of the loops, on all units."""
        region = access.region
        names = {v: np.full(self.pids.shape, x, np.int64) for v, x in env.items()} | {PID: self.pids}
        place, valid = region.places(names)
        valid = valid & (place >= 0) & (place < self.written.shape[1])  # the rest is the bounds rule's
        address = place[valid]
        owner = np.broadcast_to(self.owner[:, None, None], valid.shape)[valid]
        if access.kind == "write":
            if access.certain:
                self.written[owner, address] = True
            return
        missing = ~self.written[owner, address]
        key = (access.position, access.operand)
        if missing.any() and key not in self.found:
            unit = np.broadcast_to(self.pids[:, None, None], valid.shape)[valid]
            at = int(missing.argmax())
            self.found[key] = Unwritten(access, {PID: int(unit[at]), **env}, int(address[at]))


def _loop(access: Access, depth: int) -> Loop | None:
    return access.loops[depth] if depth < len(access.loops) else None
