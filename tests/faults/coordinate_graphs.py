# SPDX-License-Identifier: Apache-2.0
"""Random graphs whose dram pointers have several open dimensions, right at every size by construction.

A row lies in a static tile up to its end; rows are dealt to the units, by themselves or a few together.  Some
graphs take the dimensions of the result in another order, or read a row that all batches share.
"""

from __future__ import annotations

import random

from uir_tvm.igraph import Affine, HardwareModel, IGraph, IOp, IPointer, ISlice, Loop, affine, make, var
from uir_tvm.igraph.coordinates import address
from uir_tvm.igraph.sizes import dram
from uir_tvm.igraph.space import Size

MEMORY = 1 << 20


class _Writer:
    def __init__(self, rng: random.Random, most: int) -> None:
        self.rng = rng
        self.n, self.m = self._size("n", most), self._size("m", most)
        self.sizes = [self.n, self.m]
        self.heads, self.width = rng.choice((1, 2, 3)), rng.choice((1, 1, 4))
        #: Room for the whole of a row.
        self.room = 1 << (int(self.m.high) * self.width - 1).bit_length()
        self.pointers: list[IPointer] = []
        self.loops = rng.choice((1, 1, 2, 3))
        self.units = rng.choice((1, 1, 2))
        self.rows = self.n.expr * self.heads
        self.deal(1)

    def deal(self, together: int) -> None:
        """Give every turn of a unit some rows, from `row` on."""
        each = self.loops * self.units * together
        self.groups = (self.rows + each - 1) // each
        self.most_groups = -(-int(self.n.high) * self.heads // each)
        turn = var("pid") * self.loops + var("l") if self.loops > 1 else var("pid")
        self.row, self.fits = turn * together, each == 1

    def _size(self, name: str, most: int) -> Size:
        by = self.rng.choice((1, 1, 2))
        low = self.rng.choice((1, 1, 2)) * by
        return Size(name, low, low + self.rng.randint(1, max(most // by, 1)) * by, by)

    def parameter(self, name: str, dims: list[Affine | int], role: str, dtype: str = "fp32") -> IPointer:
        """A dram pointer."""
        self.pointers.append(dram(name, dtype, dims, self.sizes, role))
        return self.pointers[-1]

    def bounds(self) -> dict[str, tuple[Affine | None, Affine | None]]:
        """The row, where there is one for this unit, up to its end."""
        rows = None if self.fits else self.rows - self.row
        return {"rows": (None, rows), "cols": (None, self.m.expr * self.width)}

    def tile(self, columns: int | None = None) -> ISlice:
        """A fresh register tile of one row."""
        count = self.room if columns is None else columns
        self.pointers.append(IPointer(f"r{len(self.pointers)}", "reg", "fp32", count, "tmp"))
        bounds = self.bounds()
        cols = bounds["cols"] if columns is None else (None, None)
        return ISlice(self.pointers[-1], 0, (1, count), rows=bounds["rows"], cols=cols)

    def row_of(self, pointer: IPointer, *coordinates: Affine) -> ISlice:
        """A row of a pointer."""
        offset = address([*coordinates, affine(0)], pointer.dims)
        return ISlice(pointer, offset, (1, self.room), **self.bounds())

    def whole_rows(self) -> list[IOp]:
        """Every row less its maximum."""
        dims: list[Affine | int] = [self.rows, self.m.expr * self.width]
        x, y = self.parameter("x", dims, "in"), self.parameter("y", dims, "out")
        a, top, wide, out = self.tile(), self.tile(1), self.tile(), self.tile()
        return [
            make.move(a, self.row_of(x, self.row)),
            make.reduce("max", top, a, "row"),
            make.broadcast(wide, top, "row"),
            make.binary("sub", out, a, wide),
            make.move(self.row_of(y, self.row), out),
        ]

    def rows_together(self) -> list[IOp]:
        """Some rows at a time, as far apart as sizes say; their elements stay rows or become columns."""
        together, turned = self.rng.choice((2, 3, 4)), self.rng.choice((False, True))
        self.deal(together)
        columns = self.m.expr * self.width
        x = self.parameter("x", [self.rows, columns], "in")
        y = self.parameter("y", [columns, self.rows] if turned else [self.rows, columns], "out")
        name, shape = f"r{len(self.pointers)}", (together, self.room)
        self.pointers.append(IPointer(name, "reg", "fp32", together * self.room, "tmp"))
        here = ISlice(self.pointers[-1], 0, shape, **self.bounds())
        rows = {"shape": shape, "stride": (columns, 1), **self.bounds()}
        there = ISlice(y, self.row * columns, **rows)
        if turned:
            there = ISlice(y, self.row, shape, (1, self.rows), **self.bounds())
        return [make.move(here, ISlice(x, self.row * columns, **rows)), make.move(there, here)]

    def looked_up(self) -> list[IOp]:
        """Some rows at a time, of a table where data says; or rows of the input, to where it says."""
        together, stores = self.rng.choice((1, 2, 4)), self.rng.choice((False, True))
        self.deal(together)
        columns, most = self.m.expr * self.width, int(self.n.high) * self.heads
        table = self.parameter("x", [self.rows, columns], "inout" if stores else "in")
        index = self.parameter("i", [self.rows], "in", "int32")
        other = self.parameter("y", [self.rows, columns], "in" if stores else "out")
        names = f"r{len(self.pointers)}", f"r{len(self.pointers) + 1}"
        self.pointers.append(IPointer(names[0], "reg", "fp32", together * self.room, "tmp"))
        self.pointers.append(IPointer(names[1], "reg", "int32", together, "tmp"))
        bounds = self.bounds()
        here = ISlice(self.pointers[-2], 0, (together, self.room), **bounds)
        numbers = ISlice(self.pointers[-1], 0, (together, 1), rows=bounds["rows"])
        given = ISlice(index, self.row, (together, 1), (1, 1), rows=bounds["rows"])
        all_rows = ISlice(
            table, 0, (most, self.room), (columns, 1), rows=(None, self.rows), cols=bounds["cols"]
        )
        there = ISlice(other, self.row * columns, (together, self.room), (columns, 1), **bounds)
        load = make.move(numbers, given)
        if stores:
            return [load, make.move(here, there), make.scatter(all_rows, here, numbers)]
        return [load, make.gather(here, all_rows, numbers), make.move(there, here)]

    def shared_row(self) -> list[IOp]:
        """Every row with one that all heads of an input share."""
        columns = self.m.expr * self.width
        x = self.parameter("x", [self.n.expr, self.heads, columns], "in")
        bias = self.parameter("bias", [self.n.expr, columns], "in")
        y = self.parameter("y", [self.n.expr, self.heads, columns], "out")
        a, b, out = self.tile(), self.tile(), self.tile()
        batch, head = self.row // self.heads, self.row % self.heads
        return [
            make.move(a, self.row_of(x, batch, head)),
            make.move(b, self.row_of(bias, batch)),
            make.binary("add", out, a, b),
            make.move(self.row_of(y, batch, head), out),
        ]

    def heads_first(self) -> list[IOp]:
        """(n, m, heads, width) as (n, heads, m, width): the rows of a head lie apart in the one."""
        x = self.parameter("x", [self.n.expr, self.m.expr, self.heads, self.width], "in")
        y = self.parameter("y", [self.n.expr, self.heads, self.m.expr, self.width], "out")
        batch, head = self.row // self.heads, self.row % self.heads
        count = int(self.m.high)
        name = f"r{len(self.pointers)}"
        self.pointers.append(IPointer(name, "reg", "fp32", count * self.width, "tmp"))
        columns = None if self.fits else (self.rows - self.row) * self.width
        bounds: dict[str, tuple[Affine | None, Affine | None]]
        bounds = {"rows": (None, self.m.expr), "cols": (None, columns)}
        shape, made = (count, self.width), []
        for pointer, coordinates, stride in (
            (x, [batch, affine(0), head, affine(0)], self.heads * self.width),
            (y, [batch, head, affine(0), affine(0)], self.width),
        ):
            offset = address(coordinates, pointer.dims)
            there = ISlice(pointer, offset, shape, (stride, 1), **bounds)
            here = ISlice(self.pointers[-1], 0, shape, **bounds)
            made.append(make.move(here, there) if pointer is x else make.move(there, here))
        return made

    def graph(self) -> IGraph:
        """The parameters first, the rows of a unit in a loop where it has several."""
        makers = (self.whole_rows, self.shared_row, self.heads_first, self.rows_together, self.looked_up)
        made = self.rng.choice(makers)()
        body = [Loop("l", self.loops, made)] if self.loops > 1 else made
        model = HardwareModel("random", "test", 64, self.units, MEMORY, MEMORY, 32, {})  # type: ignore[call-arg]
        pointers = sorted(self.pointers, key=lambda p: not p.is_param)
        return IGraph(
            "random", model, self.most_groups, self.units, pointers, body, {}, self.sizes, self.groups
        )


def coordinate_graph(rng: random.Random, most: int = 60) -> IGraph:
    """A graph that is right at every size; sizes are at most about ``most`` apart."""
    return _Writer(rng, most).graph()
