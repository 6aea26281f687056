# SPDX-License-Identifier: Apache-2.0
"""Values in reg temporaries, and the iOps that make them."""

from __future__ import annotations

from typing import Any

import attrs

from ..igraph import IOp, IPointer, ISlice, make
from ..igraph.dtypes import dtype_of
from .box import FULL, Box
from .function_pointers import UniqueNames


@attrs.frozen(eq=False)
class TileValue:
    """A value over (part of) a tile: a reg slice of shape (1 or rows, 1 or cols)."""

    slice: ISlice

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self.slice.shape

    @property
    def dtype(self) -> str:
        """The iGraph's name of the element type."""
        return str(self.slice.pointer.dtype)


@attrs.frozen(eq=False)
class Const:
    """A number."""

    number: Any
    dtype: str


Operand = TileValue | Const


class Emitter:
    """Appends iOps to a body and makes temporaries for them."""

    def __init__(self, names: UniqueNames) -> None:
        self.names = names
        self.body: list[Any] = []
        self.temporaries: list[IPointer] = []

    def add(self, iop: IOp) -> None:
        """Append one iOp."""
        self.body.append(iop)

    def temporary(self, dtype: str, shape: tuple[int, int], tile: tuple[int, int], box: Box = FULL) -> ISlice:
        """A fresh reg slice of a shape, valid in the part of the tile's box that it has."""
        pointer = IPointer(self.names.new(f"t_{dtype}"), "reg", dtype, shape[0] * shape[1], "tmp")
        self.temporaries.append(pointer)
        return reboxed(ISlice(pointer, 0, shape), box.shrink(tile, shape))

    # -- iOps, one value each -------------------------------------------------------------------
    def fill(self, target: ISlice, number: Any) -> None:
        """``target = number``."""
        kind = dtype_of(target.pointer.dtype).kind
        self.add(make.fill(target, float(number) if kind == "float" else int(number)))

    def move(self, target: ISlice, source: ISlice, pad: float | None = None) -> None:
        """``target = source``."""
        self.add(make.move(target, source, pad=pad))


def reboxed(piece: ISlice, box: Box) -> ISlice:
    """The slice with another valid box."""
    return piece.replace(**box.slice_bounds())
