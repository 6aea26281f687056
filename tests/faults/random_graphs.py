# SPDX-License-Identifier: Apache-2.0
"""Random graphs of several units that share sram and dram, free of races by construction.

A graph is a loop over a chain of stages.  Every stage takes the unit's tile in reg to another tile in reg by
one exchange between units, and leaves all of them behind a barrier before the memory is used again.  The
chain starts with a load and ends with a store of the unit's own tile.
"""

from __future__ import annotations

import random
from typing import Any

from uir_tvm.igraph import Affine, HardwareModel, IGraph, IOp, IPointer, ISlice, Loop, make, var

#: Every stage needs at most a few tiles; nothing random here may overflow.
MEMORY = 1 << 20


class _Writer:
    def __init__(self, rng: random.Random, syncs: bool = True) -> None:
        self.rng, self.syncs = rng, syncs
        self.units = rng.choice((2, 2, 3, 4, 4, 6, 8))
        self.groups = rng.choice((1, 1, 2, 3))
        self.loops = rng.choice((1, 2, 3, 4))
        self.shape = (rng.randint(1, 3), rng.choice((1, 2, 4, 5)))
        self.size = self.shape[0] * self.shape[1]
        self.pointers: list[IPointer] = []
        self.body: list[IOp] = []

    # -- pieces

    def pointer(self, level: str, size: int, dtype: str = "fp32") -> IPointer:
        """A fresh temporary."""
        self.pointers.append(IPointer(f"{level}{len(self.pointers)}", level, dtype, size, "tmp"))  # type: ignore[call-arg]
        return self.pointers[-1]

    def tile(self, shape: tuple[int, int] | None = None) -> ISlice:
        """A fresh register tile."""
        shape = shape or self.shape
        return ISlice(self.pointer("reg", shape[0] * shape[1]), 0, shape)

    def sync(self, pointer: IPointer, scope: str) -> None:
        """A barrier, unless this graph leaves some out."""
        if self.syncs or self.rng.random() < 0.6:
            whole = ISlice(pointer, 0, (1, pointer.size))
            self.body.append(make.sync(whole, whole, scope))

    # -- stages: each takes a tile and gives one

    def compute(self, tile: ISlice) -> ISlice:
        """Arithmetic of the unit's own."""
        out = tile if self.rng.random() < 0.3 else self.tile()
        if self.rng.random() < 0.5:
            self.body.append(make.unary(self.rng.choice(("neg", "abs", "relu", "tanh")), out, tile))
        else:
            self.body.append(make.binary(self.rng.choice(("add", "max", "sub")), out, tile, tile))
        return out

    def _mine(self, level: str) -> Affine:
        return var("pid") % self.units if level == "sram" else var("pid")

    def _other(self, level: str) -> Affine:
        """Some unit that shares the memory with this one, as a number."""
        step = self.rng.randint(1, self.units - 1)
        within = (var("pid") + step) % self.units
        return within if level == "sram" else within + self.units * (var("pid") // self.units)

    def exchange(self, tile: ISlice, level: str) -> ISlice:
        """Write the tile to a slot of its own, barrier, read the slot of another unit of the group."""
        buffers = self.rng.choice((1, 2))
        sharers = self.units if level == "sram" else self.units * self.groups
        memory = self.pointer(level, buffers * sharers * self.size)
        turn = (var("l") % buffers) * (sharers * self.size)
        self.body.append(make.move(ISlice(memory, self._mine(level) * self.size + turn, self.shape), tile))
        self.sync(memory, "sram" if self.rng.random() < 0.8 else "dram")
        out = self.tile()
        self.body.append(make.move(out, ISlice(memory, self._other(level) * self.size + turn, self.shape)))
        # two buffers take turns: the barrier of the iteration between is enough
        if buffers == 1:
            self.sync(memory, "sram")
        return out

    def ring(self, tile: ISlice) -> ISlice:
        """As exchange, through dram and between all units of the device."""
        total = self.units * self.groups
        memory = self.pointer("dram", total * self.size)
        other = (var("pid") + self.rng.randint(1, total - 1)) % total
        self.body.append(make.move(ISlice(memory, var("pid") * self.size, self.shape), tile))
        self.sync(memory, "dram")
        out = self.tile()
        self.body.append(make.move(out, ISlice(memory, other * self.size, self.shape)))
        self.sync(memory, "dram")
        return out

    def share(self, tile: ISlice) -> ISlice:
        """One tile of the whole group is read by every unit, column by column of units."""
        memory = self.pointer("sram", self.units * self.size)
        self.body.append(make.move(ISlice(memory, self._mine("sram") * self.size, self.shape), tile))
        self.sync(memory, "sram")
        all_tiles = self.tile((self.units, self.size))
        self.body.append(make.move(all_tiles, ISlice(memory, 0, (self.units, self.size))))
        self.sync(memory, "sram")
        row = self.tile((1, self.size))
        self.body.append(make.reduce(self.rng.choice(("add", "max")), row, all_tiles, "col"))
        return ISlice(row.pointer, 0, self.shape)

    def group_form(self, tile: ISlice) -> ISlice:
        """A reduction over a set of units, and back to all of them."""
        size = self.rng.choice([d for d in range(1, self.units + 1) if self.units % d == 0])
        count = self.shape[0]
        memory = self.pointer("sram", self.units * count)
        first = ((var("pid") % self.units) // size) * (size * count)
        buffer = ISlice(memory, first, (size, count))
        total, wide = self.tile((count, 1)), self.tile()
        self.body.append(make.reduce("max", total, tile, "row", "group", buffer, size))
        self.sync(memory, "sram")
        self.body.append(make.broadcast(wide, total, "row", "group", buffer, size))
        self.sync(memory, "sram")
        return wide

    # -- all

    def graph(self) -> IGraph:
        """Load, some stages, store."""
        total = self.units * self.groups
        x, y = (
            IPointer(n, "dram", "fp32", total * self.loops * self.size, r)
            for n, r in (("x", "in"), ("y", "out"))
        )  # type: ignore[call-arg]
        mine = (var("pid") * self.loops + var("l")) * self.size
        tile = self.tile()
        self.body.append(make.move(tile, ISlice(x, mine, self.shape)))
        for _ in range(self.rng.randint(1, 4)):
            stage: Any = self.rng.choice(
                (self.compute, lambda t: self.exchange(t, "sram"), lambda t: self.exchange(t, "dram"),
                 self.ring, self.share, self.group_form)
            )  # fmt: skip
            tile = stage(tile)
        self.body.append(make.move(ISlice(y, mine, self.shape), tile))
        model = HardwareModel("random", "test", self.groups, self.units, MEMORY, MEMORY, 64, {})  # type: ignore[call-arg]
        return IGraph(
            "random",
            model,
            self.groups,
            self.units,
            [x, y, *self.pointers],
            [Loop("l", self.loops, self.body)],
        )


def valid_graph(rng: random.Random) -> IGraph:
    """A graph without a race."""
    return _Writer(rng).graph()


def careless_graph(rng: random.Random) -> IGraph:
    """The same with some of its syncs left out: it may have races or not."""
    return _Writer(rng, syncs=False).graph()
