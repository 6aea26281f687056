# SPDX-License-Identifier: Apache-2.0
"""What lies on chip at the fullest moment, and how much of the hardware's memory that is."""

from __future__ import annotations

import attrs

from ..igraph.text import print_iop, print_slice
from ..verify.access import GraphFacts
from ..verify.addresses import given
from ..verify.placement import MEMORIES, Interference


@attrs.frozen
class LiveSlice:
    """One pointer that is alive at the peak, with its largest slice.

    Attributes
    ----------
    address : int or None
        Byte offset in its memory; None where the graph gives none.
    """

    pointer: str
    slice: str
    dtype: str
    bytes: int
    address: int | None


@attrs.frozen
class MemoryUse:
    """The peak of one level.

    Attributes
    ----------
    level, owner : str
        ``reg`` of a unit, ``sram`` of a group.
    peak_bytes : int
        What is alive at once at the fullest moment; an output in the place of its dying input takes none.
    placed_bytes : int
        What is needed for that, aligned and side by side: the end of the highest address.
    budget_bytes : int
        What the hardware model has.
    at : str
        The iOp at the peak.
    alive : tuple of LiveSlice
        Largest first.
    """

    level: str
    owner: str
    peak_bytes: int
    placed_bytes: int
    budget_bytes: int
    at: str
    alive: tuple[LiveSlice, ...]

    @property
    def share(self) -> float | None:
        """What is needed, of the budget; None where there is none."""
        return self.placed_bytes / self.budget_bytes if self.budget_bytes else None


def memory(facts: GraphFacts) -> tuple[MemoryUse, ...]:
    """The peaks of reg and sram, where they are used at all."""
    found = (_use(facts, level) for level in MEMORIES)
    return tuple(use for use in found if use is not None)


def _use(facts: GraphFacts, level: str) -> MemoryUse | None:
    field, _, owner = MEMORIES[level]
    held = Interference.of(facts, level)
    top = held.most_alive()
    if top is None:
        return None
    addresses = given(facts.graph)
    if addresses is None:
        placed = held.place().peak
    else:
        placed = max(addresses.get(live.name, 0) + live.bytes for live in held.ranges)
    alive = tuple(
        LiveSlice(
            live.name,
            print_slice(live.largest.slice),
            str(live.pointer.dtype),
            live.bytes,
            None if addresses is None else addresses.get(live.name),
        )
        for live in top.alive
    )
    at = print_iop(facts.steps[top.position].iop)
    return MemoryUse(level, owner, top.bytes, placed, int(getattr(facts.graph.hardware, field)), at, alive)
