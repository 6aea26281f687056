# SPDX-License-Identifier: Apache-2.0
"""The shape classes of the conformance cases: which tile a unit works on, and how it lies in dram."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
from uir_tvm.igraph import IOp, IPointer, ISlice, affine, var
from uir_tvm.igraph.space import Size

#: Rows of the table of a gather and a scatter, inner dimension of a contraction.
TABLE_ROWS, INNER = 83, 13


@attrs.frozen
class ShapeClass:
    """A tile of ``rows`` x ``cols`` per unit.

    Parameters
    ----------
    pitch : tuple of int
        Steps in dram from row to row and from column to column of a full operand.
    total_rows, first_col, last_col : int, optional
        The valid box: rows end at ``total_rows - rows * pid``, columns are [first_col, last_col).
    """

    name: str
    rows: int
    cols: int
    pitch: tuple[int, int]
    units: int = 1
    total_rows: int | None = None
    first_col: int | None = None
    last_col: int | None = None

    #: Nothing is open.
    sizes: ClassVar[tuple[Size, ...]] = ()
    groups: ClassVar[None] = None

    def around(self, body: list[Any]) -> list[Any]:
        """The body of the graph: a unit has one tile."""
        return body

    def rounds(self, iops: list[IOp], target: ISlice, number: int) -> list[Any]:
        """What computes a tile: it is computed at once."""
        return iops

    def extent(self, part: str) -> tuple[int, int]:
        """Shape of an operand: ``full``, ``row`` (R,1), ``col`` (1,C), ``turned`` (C,R), ``table`` ..."""
        r, c = self.rows, self.cols
        return {
            "full": (r, c),
            "row": (r, 1),
            "col": (1, c),
            "turned": (c, r),
            "table": (TABLE_ROWS, c),
            "left": (r, INNER),
            "right": (INNER, c),
        }[part]

    def box(self, part: str) -> dict[str, tuple[Any, Any]]:
        """The valid box of an operand, as arguments of ISlice."""
        end = None if self.total_rows is None else affine(self.total_rows) - self.rows * var("pid")
        rows, cols = (None, end), (self.first_col, self.last_col)
        none = (None, None)
        return {
            "full": {"rows": rows, "cols": cols},
            "row": {"rows": rows, "cols": none},
            "col": {"rows": none, "cols": cols},
            "turned": {"rows": cols, "cols": rows},
            "table": {"rows": none, "cols": cols},
            "left": {"rows": rows, "cols": none},
            "right": {"rows": none, "cols": cols},
        }[part]

    def steps(self, part: str) -> tuple[int, int]:
        """Strides of an operand in dram."""
        row, col = self.pitch
        if part in ("full", "left", "right", "table"):
            return (max(row, self.extent(part)[1] * col), col)
        if part == "turned":
            return (max(row, self.rows * col), col)
        return (col, col)

    def size(self, part: str) -> int:
        """Elements of an operand's pointer in dram, one before and one after included."""
        (r, c), (sr, sc) = self.extent(part), self.steps(part)
        return self.units * self.unit_step(part) + (r - 1) * sr + (c - 1) * sc + 2

    def unit_step(self, part: str) -> int:
        """Elements from one unit's operand to the next one's; the tables are shared."""
        if part in ("table", "right"):
            return 0
        (r, c), (sr, sc) = self.extent(part), self.steps(part)
        return (r - 1) * sr + (c - 1) * sc + 1

    def dram(self, name: str, dtype: str, part: str, role: str) -> IPointer:
        """The pointer of an operand in dram."""
        return IPointer(name, "dram", dtype, self.size(part), role)

    def outside(self, pointer: IPointer, part: str) -> ISlice:
        """The operand in dram, for this unit."""
        offset = 1 + self.unit_step(part) * var("pid")
        return ISlice(pointer, offset, self.extent(part), self.steps(part), **self.box(part))

    def inside(self, pointer: IPointer, part: str) -> ISlice:
        """The operand in a unit's memory, packed."""
        r, c = self.extent(part)
        return ISlice(pointer, 0, (r, c), (c, 1), **self.box(part))


SHAPES: dict[str, ShapeClass] = {
    s.name: s
    for s in (
        ShapeClass("one", 1, 1, (1, 1)),
        ShapeClass("row", 1, 37, (37, 1)),
        ShapeClass("column", 29, 1, (3, 1)),
        ShapeClass("ragged", 4, 45, (45, 1), units=2, total_rows=7, first_col=2, last_col=43),
        ShapeClass("strided", 3, 19, (64, 3)),
    )
}
