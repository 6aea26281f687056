# SPDX-License-Identifier: Apache-2.0
"""Capacity: what is alive at once in reg (per unit) and in sram (per group) fits the hardware model.

Where the graph has addresses, they decide; otherwise the pointers are placed as `optimize.allocate` would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..errors import VerifyCapacityError, VerifyError
from ..igraph.nodes import ISlice
from ..igraph.text import print_iop
from .access import GraphFacts
from .addresses import given
from .live_ranges import Live
from .placement import MEMORIES, Interference, Peak, alignment


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every memory whose peak exceeds what the hardware model has."""
    hardware = facts.graph.hardware
    for level, (field, _, owner) in MEMORIES.items():
        limit = int(getattr(hardware, field))
        if _surely_fits(facts, level, limit):
            continue
        memory = Interference.of(facts, level)
        addresses = given(facts.graph)
        if addresses is not None:
            needed = max((addresses.get(x.name, 0) + x.bytes for x in memory.ranges), default=0)
        else:
            needed = memory.place(enough=limit).peak
        if needed > limit:
            yield _overflow(facts, memory, level, owner, needed, limit)


def peak(facts: GraphFacts, level: str) -> Peak | None:
    """Where the most is alive of one level, and what; None when no pointer of it is used."""
    return Interference.of(facts, level).most_alive()


def _surely_fits(facts: GraphFacts, level: str, limit: int) -> bool:
    """Whether all pointers fit side by side, which nothing but their sizes decides."""
    if given(facts.graph) is not None:
        return False
    align = alignment(facts.graph.hardware, level)
    sizes = [Live(p, (), 0, 0, None, None).bytes for p in facts.graph.pointers if p.level == level]
    return sum(-(-size // align) * align for size in sizes) <= limit


def _overflow(
    facts: GraphFacts, memory: Interference, level: str, owner: str, needed: int, limit: int
) -> VerifyError:
    top = memory.most_alive()
    assert top is not None
    step = facts.steps[top.position]
    need = f"{needed} bytes of {level}"
    if needed > top.bytes:
        need += f" ({top.bytes} alive at once, the rest between pointers that no order packs tighter)"
    return VerifyCapacityError(
        f"The {level} of {owner} overflows: {top.bytes} bytes are alive at once.",
        memory=level,
        needed=needed,
        available=limit,
        where=f"{print_iop(step.iop)}, where {len(top.alive)} are alive: {', '.join(map(str, top.alive))}",
        need=need,
        limit=f"{limit} bytes on {facts.graph.hardware.name}",
        remedy=_remedy(memory, top, limit),
    )


def _remedy(memory: Interference, top: Peak, limit: int) -> str:
    """A smaller tile with which the same placement fits, else what to keep in dram instead."""
    tile = top.alive[0].largest.slice
    fitting = tile_that_fits(memory, tile, limit)
    if fitting is not None:
        rows, cols = fitting
        return f"a tile of ({rows}, {cols}) in place of ({tile.rows}, {tile.cols}) would fit"
    kept = _too_many(memory, top, limit)
    names = ", ".join(f"'{x.name}'" for x in kept)
    return f"no tile fits; keep {names} in dram instead"


def tile_that_fits(memory: Interference, tile: ISlice, limit: int) -> tuple[int, int] | None:
    """The largest tile in place of ``tile`` with which a memory's peak is within the limit.

    Rows are given up first, then columns of a single row.  The pointers whose slices have the tile's
    rows or columns shrink with it; their placement is computed anew for every size that is tried.

    Returns
    -------
    (int, int) or None
        Rows and columns; None where not even one element fits.
    """
    rows, cols = int(tile.rows), int(tile.cols)

    def fits(r: int, c: int) -> bool:
        sizes = [_scaled(x, (rows, cols), (r, c)) for x in memory.ranges]
        return rescaled.place(sizes, enough=limit).peak <= limit

    # a place shared at a distance from the input's start would move with the tile
    rescaled = Interference(
        memory.ranges,
        [others | {j for pair, d in memory.shared.items() if d and i in pair for j in pair if j != i}
         for i, others in enumerate(memory.apart)],
        {pair: delta for pair, delta in memory.shared.items() if not delta},
        memory.align,
    )  # fmt: skip
    found = _greatest(rows - 1, lambda r: fits(r, cols))
    if found:
        return found, cols
    found = _greatest(cols - (rows == 1), lambda c: fits(1, c))
    return (1, found) if found else None


def _greatest(limit: int, fits: Callable[[int], bool]) -> int:
    """A number up to the limit that fits while the next does not; 0 where not even 1 does."""
    low, high = 0, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _scaled(live: Live, tile: tuple[int, int], new: tuple[int, int]) -> int:
    """Bytes of a pointer when slices with the tile's rows or columns get new ones."""
    piece = live.largest.slice
    old = int(piece.rows) * int(piece.cols)
    rows = new[0] if int(piece.rows) == tile[0] else int(piece.rows)
    cols = new[1] if int(piece.cols) == tile[1] else int(piece.cols)
    width = live.bytes // int(live.pointer.size)
    return -(-int(live.pointer.size) * rows * cols // old) * width


def _too_many(memory: Interference, top: Peak, limit: int) -> Sequence[Live]:
    """The fewest of the largest pointers alive at the peak without which the others fit."""
    for count in range(1, len(top.alive)):
        gone = {x.name for x in top.alive[:count]}
        sizes = [0 if x.name in gone else x.bytes for x in memory.ranges]
        if memory.place(sizes, enough=limit).peak <= limit:
            return top.alive[:count]
    return top.alive
