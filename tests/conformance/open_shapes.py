# SPDX-License-Identifier: Apache-2.0
"""The shape classes with axes of open extent: tiles of the class's shape, as many as the sizes need.

Open rows are dealt to the units, a tile each.  A unit walks open columns, and the terms of a product, in a
loop over as many tiles as the greatest size has.  The last tile is guarded, and those beyond it are empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from uir_tvm.igraph import Affine, IOp, IPointer, ISlice, Loop, affine, make, var
from uir_tvm.igraph.rewrite import substituted
from uir_tvm.igraph.sizes import dram
from uir_tvm.igraph.space import Size, Space

from .points_around import staggered, values_around
from .shapes import INNER, TABLE_ROWS, ShapeClass

#: What an axis of open extent is called, and its size.
AXES = {"rows": "n", "cols": "m", "inner": "k", "table": "w"}
#: Variables of the loops over tiles of columns and of terms.
TILE, TERM = "tile", "term"
#: So many tiles of one row or one column, at least: more than a device has units.
MANY, SEVERAL = 61, 13


@attrs.frozen
class Axis:
    """One axis: ``count`` elements, of which a tile has ``tile`` from ``start`` on."""

    count: Affine
    tile: int
    start: Affine
    #: The valid part of a tile.
    box: tuple[Affine | None, Affine | None] = (None, None)

    @property
    def is_open(self) -> bool:
        return not self.count.is_constant


@attrs.frozen
class OpenShape:
    """A shape class with some of its axes open.

    Parameters
    ----------
    base : ShapeClass
        The shape of a tile, and how it lies in dram.
    opened : tuple of str
        Keys of `AXES`.
    """

    base: ShapeClass
    opened: tuple[str, ...]

    # -- sizes --------------------------------------------------------------------------------
    @property
    def sizes(self) -> tuple[Size, ...]:
        """One for each open axis, from 1 on."""
        return tuple(Size(AXES[axis], 1, self._most(axis)) for axis in self.opened)

    @property
    def tiles(self) -> dict[str, int]:
        """Elements of a tile along each open axis, by the size's name."""
        tile = {"rows": self.base.rows, "cols": self.base.cols, "inner": INNER, "table": TABLE_ROWS}
        return {AXES[axis]: tile[axis] for axis in self.opened}

    def _most(self, axis: str) -> int:
        if axis == "table":
            return TABLE_ROWS
        tile = {"rows": self.base.rows, "cols": self.base.cols, "inner": INNER}[axis]
        return 2 * tile + 3 if tile > 1 else MANY if axis == "rows" else SEVERAL

    def points(self) -> list[dict[str, int]]:
        """Each size at one, two, around its tile, a prime, the greatest, while others are elsewhere."""
        return staggered(
            {
                str(size.name): values_around([self.tiles[str(size.name)]], int(size.high))
                for size in self.sizes
            }
        )

    @property
    def units(self) -> int:
        """The greatest number of units."""
        return -(-self._most("rows") // self.base.rows) if "rows" in self.opened else self.base.units

    @property
    def groups(self) -> Affine | None:
        """How many there are, where the rows are open."""
        return _tiles(var(AXES["rows"]), self.base.rows) if "rows" in self.opened else None

    # -- axes ---------------------------------------------------------------------------------
    @property
    def _rows(self) -> Axis:
        base, start = self.base, self.base.rows * self._unit
        if "rows" in self.opened:
            count = var(AXES["rows"])
            return Axis(count, base.rows, start, (None, count - start))
        return Axis(affine(base.rows * base.units), base.rows, start, base.box("full")["rows"])

    @property
    def _unit(self) -> Affine:
        """Its number, where there is more than one."""
        return var("pid") if self.units > 1 else affine(0)

    @property
    def _cols(self) -> Axis:
        base = self.base
        if "cols" not in self.opened:
            return Axis(affine(base.cols), base.cols, affine(0), base.box("full")["cols"])
        count, start = var(AXES["cols"]), base.cols * var(TILE)
        begin = None if base.first_col is None else base.first_col - start
        return Axis(count, base.cols, start, (begin, count - start))

    @property
    def _inner(self) -> Axis:
        if "inner" not in self.opened:
            return Axis(affine(INNER), INNER, affine(0))
        count, start = var(AXES["inner"]), INNER * var(TERM)
        return Axis(count, INNER, start, (None, count - start))

    @property
    def _table(self) -> Axis:
        if "table" not in self.opened:
            return Axis(affine(TABLE_ROWS), TABLE_ROWS, affine(0))
        return Axis(var(AXES["table"]), TABLE_ROWS, affine(0), (None, var(AXES["table"])))

    @property
    def _each_row_tile(self) -> Axis:
        """One element for each tile of rows."""
        count = self.groups
        return Axis(affine(self.base.units) if count is None else count, 1, self._unit)

    @property
    def _each_col_tile(self) -> Axis:
        """One element for each tile of columns, where there is one."""
        if "cols" not in self.opened:
            return Axis(affine(1), 1, affine(0))
        count = var(AXES["cols"])
        return Axis(_tiles(count, self.base.cols), 1, var(TILE), (None, count - self.base.cols * var(TILE)))

    def _axes(self, part: str) -> tuple[Axis, Axis]:
        """(rows, columns) of a tile of an operand."""
        return {
            "full": (self._rows, self._cols),
            "row": (self._rows, self._each_col_tile),
            "col": (self._each_row_tile, self._cols),
            "turned": (self._cols, self._rows),
            "table": (self._table, self._cols),
            "left": (self._rows, self._inner),
            "right": (self._inner, self._cols),
        }[part]

    # -- what a case is made of ---------------------------------------------------------------
    def extent(self, part: str) -> tuple[int, int]:
        """Shape of a tile of an operand."""
        rows, cols = self._axes(part)
        return rows.tile, cols.tile

    def _placed(self, part: str) -> tuple[list[Affine], Affine, tuple[Any, Any]]:
        """(dimensions in dram, where this unit's tile begins, its strides); a column lies along its rows."""
        outer, inner = self._axes(part)
        turned = part == "row"
        if turned:
            outer, inner = inner, outer
        step = self.base.pitch[1]
        width = inner.count * step
        if inner.is_open:
            dims, begin, pitch = [outer.count, width], affine(0), width
        else:
            pitch = affine(width.constant if turned else max(self.base.pitch[0], width.constant))
            dims, begin = [outer.count * pitch + 2], affine(1)
        offset = begin + outer.start * pitch + inner.start * step
        # one row is no dimension that anything walks
        across = pitch if outer.count != 1 else affine(inner.tile * step)
        across = across.constant if across.is_constant else across
        return dims, offset, (step, step) if turned else (across, step)

    def dram(self, name: str, dtype: str, part: str, role: str) -> IPointer:
        """The pointer of an operand in dram."""
        return dram(name, dtype, self._placed(part)[0], self.sizes, role)

    def outside(self, pointer: IPointer, part: str) -> ISlice:
        """A tile in dram, for this unit in this turn."""
        _, offset, stride = self._placed(part)
        return ISlice(pointer, offset, self.extent(part), stride, **self._box(part))

    def inside(self, pointer: IPointer, part: str) -> ISlice:
        """A tile in a unit's memory, packed."""
        shape = self.extent(part)
        return ISlice(pointer, 0, shape, (shape[1], 1), **self._box(part))

    def _box(self, part: str) -> dict[str, tuple[Affine | None, Affine | None]]:
        rows, cols = self._axes(part)
        return {"rows": rows.box, "cols": cols.box}

    def around(self, body: list[Any]) -> list[Any]:
        """The body of the graph: where columns are open, a loop over their tiles."""
        rounds = -(-self._most("cols") // self.base.cols)
        return [Loop(TILE, rounds, body)] if "cols" in self.opened else body

    def rounds(self, iops: list[IOp], target: ISlice, number: int) -> list[Any]:
        """What computes a tile, of the operation of a number: a loop adds up the open terms of a product."""
        if "inner" not in self.opened or all(iop.op != "contract" for iop in iops):
            return iops
        own = f"{TERM}{number}"
        added = [substituted(_adding(iop), {TERM: var(own)}) for iop in iops]
        return [make.fill(target, 0), Loop(own, -(-self._most("inner") // INNER), added)]


def _adding(iop: IOp) -> IOp:
    if iop.op != "contract":
        return iop
    return IOp(iop.op, iop.name, iop.dtype, iop.targets, iop.sources, {**iop.attrs, "accumulate": True})


def _tiles(count: Affine, tile: int) -> Affine:
    """How many tiles an axis has."""
    return Space({name: Size(name, 1, 1 << 20) for name in AXES.values()}).floordiv(count + tile - 1, tile)


def open_shapes(base: ShapeClass, kind: str) -> Iterator[OpenShape]:
    """Each axis that a case of a class has open in turn, then all of them."""
    axes = ("rows", "cols", *{"contract": ("inner",), "indexed": ("table",)}.get(kind, ()))
    for axis in axes:
        yield OpenShape(base, (axis,))
    yield OpenShape(base, axes)
