# SPDX-License-Identifier: Apache-2.0
"""Random graphs with sizes, right at every size by construction.

A graph works on ``rows`` rows, an expression of one or two sizes, of a constant width, in tiles that are
dealt to the units one after the other, in turns over a fixed grid, or with the columns dealt as well.  Where
tiles do not
fit the rows, every slice ends with them.
"""

from __future__ import annotations

import random

from uir_tvm.igraph import Affine, HardwareModel, IGraph, IOp, IPointer, ISlice, Loop, affine, make, var
from uir_tvm.igraph.sizes import dram, whole_slice
from uir_tvm.igraph.space import Size, Space

#: Nothing random here may overflow.
MEMORY = 1 << 20


class _Writer:
    def __init__(self, rng: random.Random, most: int) -> None:
        self.rng = rng
        self.sizes = [self._size("n", most)]
        self.rows = self.sizes[0].expr * rng.choice((1, 1, 1, 2, 3)) + rng.choice((0, 0, 0, 1, 5))
        if rng.random() < 0.2:
            self.sizes.append(self._size("m", most))
            self.rows = self.rows + self.sizes[1].expr
        self.space = Space({str(size.name): size for size in self.sizes})
        self.width = rng.choice((1, 1, 2, 5, 8, 24))
        self.tile = rng.choice((1, 2, 3, 4, 8, 16))
        self.units = rng.choice((1, 1, 1, 2, 4))
        self.shape = (self.tile, self.width)
        self.pointers: list[IPointer] = []
        self._deal()

    def _size(self, name: str, most: int) -> Size:
        by = self.rng.choice((1, 1, 1, 2, 4, 8))
        low = self.rng.choice((0, 1, 1, 1, 3)) * by
        return Size(name, low, low + self.rng.randint(1, max(most // by, 1)) * by, by)

    def _deal(self) -> None:
        """Which tile a unit has in an iteration, and how many groups and iterations there are."""
        rng, step = self.rng, self.tile
        self.columns, self.begin_column = self.width, affine(0)
        self.way = rng.choice(("following", "following", "turns", "columns"))
        if self.way == "following":
            self.loops = rng.choice((1, 1, 2, 3))
            self.groups = _ceil(self.rows, step * self.loops * self.units)
            number = var("pid") * self.loops + var("l") if self.loops > 1 else var("pid")
        elif self.way == "turns":
            self.groups = affine(rng.choice((1, 2, 3)))
            total = self.groups.constant * self.units
            self.loops = -(-self.space.range(self.rows)[1] // (step * total))
            number = var("l") * total + var("pid")
        else:
            parts = rng.choice([d for d in range(1, self.width + 1) if self.width % d == 0])
            self.columns = self.width // parts
            self.units, self.loops = 1, 1
            self.groups = _ceil(self.rows, step) * parts
            number = var("pid") // parts
            self.begin_column = (var("pid") % parts) * self.columns
        self.shape = (self.tile, self.columns)
        self.first = number * step

    # -- pieces

    def parameter(self, name: str, rows: Affine, width: int, role: str, dtype: str = "fp32") -> IPointer:
        """A dram pointer of so many rows."""
        self.pointers.append(dram(name, dtype, [rows, width], self.sizes, role))
        return self.pointers[-1]

    def left(self, rows: Affine) -> Affine | None:
        """Where the valid rows of this tile end; None where tiles always fit."""
        if self.way == "following" and self.space.is_multiple(rows, self.tile * self.loops * self.units):
            return None
        if self.way == "columns" and self.space.is_multiple(rows, self.tile):
            return None
        return rows - self.first

    def bounded(
        self, pointer: IPointer, offset: Affine, shape: tuple[int, int], stride: int, by: Affine
    ) -> ISlice:
        """A tile up to the end of ``by`` rows."""
        return ISlice(pointer, offset, shape, (stride, 1), rows=(None, self.left(by)))

    def in_dram(self, pointer: IPointer, shift: int = 0) -> ISlice:
        """This tile of a pointer of whole rows, ``shift`` rows further on."""
        offset = (self.first + shift) * self.width + self.begin_column
        return self.bounded(pointer, offset, self.shape, self.width, self.rows)

    def tile_of(self, columns: int, by: Affine | None = None) -> ISlice:
        """A fresh register tile."""
        pointer = IPointer(f"r{len(self.pointers)}", "reg", "fp32", self.tile * columns, "tmp")
        self.pointers.append(pointer)
        return self.bounded(
            pointer, affine(0), (self.tile, columns), columns, self.rows if by is None else by
        )

    # -- bodies: each gives the iOps of a tile, and those of a second phase

    def elementwise(self) -> tuple[list[IOp], list[IOp]]:
        """Load, arithmetic, store."""
        x, y = (
            self.parameter("x", self.rows, self.width, "in"),
            self.parameter("y", self.rows, self.width, "out"),
        )
        a, b = self.tile_of(self.columns), self.tile_of(self.columns)
        return [make.move(a, self.in_dram(x)), make.unary("exp", b, a), make.move(self.in_dram(y), b)], []

    def normalised(self) -> tuple[list[IOp], list[IOp]]:
        """Every row less its maximum; the maxima are a result of their own."""
        if self.columns != self.width:
            return self.elementwise()
        x, y = (
            self.parameter("x", self.rows, self.width, "in"),
            self.parameter("y", self.rows, self.width, "out"),
        )
        z = self.parameter("z", self.rows, 1, "out")
        a, wide, out, top = (self.tile_of(c) for c in (self.columns, self.columns, self.columns, 1))
        tops = self.bounded(z, self.first, (self.tile, 1), 1, self.rows)
        return [
            make.move(a, self.in_dram(x)),
            make.reduce("max", top, a, "row"),
            make.broadcast(wide, top, "row"),
            make.binary("sub", out, a, wide),
            make.move(self.in_dram(y), out),
            make.move(tops, top),
        ], []

    def shifted(self) -> tuple[list[IOp], list[IOp]]:
        """Some rows of zeros before those of the input."""
        more = self.rng.choice((1, 2, self.tile, self.tile + 1))
        x = self.parameter("x", self.rows, self.width, "in")
        self.rows = self.rows + more
        self._deal()
        y = self.parameter("y", self.rows, self.width, "out")
        a = self.tile_of(self.columns)
        offset = (self.first - more) * self.width + self.begin_column
        rows = (more - self.first, self.rows - self.first)
        source = ISlice(x, offset, self.shape, (self.width, 1), rows=rows)
        return [make.move(a, source, pad=0.0), make.move(self.in_dram(y), a)], []

    def phases(self) -> tuple[list[IOp], list[IOp]]:
        """Through temporary memory: the second phase reads tiles from the other end."""
        x, y = (
            self.parameter("x", self.rows, self.width, "in"),
            self.parameter("y", self.rows, self.width, "out"),
        )
        t = self.parameter("t", self.rows, self.width, "tmp")
        a, b = self.tile_of(self.columns), self.tile_of(self.columns)
        whole = whole_slice(t)
        first = [make.move(a, self.in_dram(x)), make.move(self.in_dram(t), a)]
        # the rows in reverse: row first + i of the result is row rows - 1 - first - i
        offset = (self.rows - 1 - self.first) * self.width + self.begin_column
        back = ISlice(t, offset, self.shape, (-self.width, 1), rows=(None, self.left(self.rows)))
        second = [make.move(b, back), make.move(self.in_dram(y), b)]
        return first, [make.sync(whole, whole, "dram"), *second]

    def exchanged(self) -> tuple[list[IOp], list[IOp]]:
        """Through the memory of the group: each unit reads what its neighbour wrote."""
        if self.units == 1:
            return self.phases()
        total = self.units * self.tile * self.columns
        x, y = (
            self.parameter("x", self.rows, self.width, "in"),
            self.parameter("y", self.rows, self.width, "out"),
        )
        s = IPointer("s", "sram", "fp32", total, "tmp")
        self.pointers.append(s)
        part = self.tile * self.columns
        a, b = (ISlice(self.tile_of(self.columns).pointer, 0, self.shape) for _ in range(2))
        own = ISlice(s, (var("pid") % self.units) * part, self.shape)
        all_of_it, result = whole_slice(s), self.tile_of(self.columns)
        return [
            make.move(a, self.in_dram(x), pad=0.0),
            make.move(own, a),
            make.sync(all_of_it, all_of_it, "sram"),
            make.move(b, ISlice(s, ((var("pid") + 1) % self.units) * part, self.shape)),
            make.sync(all_of_it, all_of_it, "sram"),
            make.unary("neg", result, b.replace(rows=result.valid[:2])),
            make.move(self.in_dram(y), result),
        ], []

    # -- all

    def graph(self) -> IGraph:
        """The parameters first, the tiles of each phase in a loop where a unit has several."""
        bodies = (
            self.elementwise,
            self.elementwise,
            self.normalised,
            self.shifted,
            self.phases,
            self.exchanged,
        )
        first, second = self.rng.choice(bodies)()
        body: list[IOp | Loop] = []
        if self.loops > 1:
            body.append(Loop("l", self.loops, first))
            syncs = [iop for iop in second if iop.op == "sync"]
            rest = [iop for iop in second if iop.op != "sync"]
            body += syncs
            if rest:
                env = {"l": var("k")}
                body.append(Loop("k", self.loops, [_renamed(iop, env) for iop in rest]))
        else:
            body = [_renamed(iop, {"l": affine(0)}) for iop in (*first, *second)]
        greatest = self.space.range(self.groups)[1]
        model = HardwareModel("random", "test", 64, self.units, MEMORY, MEMORY, 32, {})  # type: ignore[call-arg]
        parameters = [p for p in self.pointers if p.is_param]
        others = [p for p in self.pointers if not p.is_param]
        groups = None if self.groups.is_constant else self.groups
        pointers = [*parameters, *others]
        return IGraph("random", model, greatest, self.units, pointers, body, {}, self.sizes, groups)


def _renamed(iop: IOp, env: dict[str, Affine]) -> IOp:
    from uir_tvm.igraph.rewrite import substituted

    made: IOp = substituted(iop, env)
    return made


def _ceil(value: Affine, by: int) -> Affine:
    return (value + by - 1) // by


def sized_graph(rng: random.Random, most: int = 60) -> IGraph:
    """A graph that is right at every size; sizes are at most about ``most`` apart."""
    return _Writer(rng, most).graph()
