# SPDX-License-Identifier: Apache-2.0
"""Smaller tiles: the figures of a hardware model by which recipes choose them."""

from __future__ import annotations

from ..igraph import HardwareModel
from ..igraph.text import HARDWARE_FIELDS

#: The preferred working set of a tile.
TILE_BYTES = "tile_bytes"
#: How many times smaller tiles are where there would be no kernel, and where a pass alone lacks room.
SHRINKS, PREFERRED_SHRINKS = (2, 4, 8, 16, 32, 64), (2, 4, 8)
#: By how much tiles are to be smaller than a recipe's own, for those that have sizes of their own.
SHRINK = "tile_shrink"


def with_tiles(hardware: HardwareModel, shrink: int, own_sizes: bool = False) -> HardwareModel:
    """The model with a preferred tile so many times smaller, for recipes to read.

    Parameters
    ----------
    own_sizes : bool
        Whether sizes that are a recipe's own, whatever tile is preferred, are to be smaller too.
    """
    if shrink == 1:
        return hardware
    figures = dict(hardware.figures)
    figures[TILE_BYTES] = int(figures.get(TILE_BYTES, hardware.reg_bytes // 2)) // shrink
    if own_sizes:
        figures[SHRINK] = shrink_of(hardware) * shrink
    fields = (getattr(hardware, name) for name in HARDWARE_FIELDS)
    return HardwareModel(hardware.name, *fields, figures)  # type: ignore[call-arg]


def shrink_of(hardware: HardwareModel) -> int:
    """By how much tiles are to be smaller than a recipe's own sizes; a power of two."""
    return int(hardware.figures.get(SHRINK, 1))


def smaller_sides(sides: tuple[int, int], shrink: int) -> tuple[int, int]:
    """Rows and columns of a tile of so many times fewer elements: the longer side is halved first."""
    rows, cols = sides
    while shrink > 1 and rows * cols > 1:
        rows, cols = (rows // 2, cols) if rows > cols else (rows, cols // 2)
        shrink //= 2
    return rows, cols


def smaller_product(tile: tuple[int, int], chunk: int, shrink: int) -> tuple[tuple[int, int], int]:
    """The tile of a product and the part of the contracted dimension that it takes at once, so much smaller.

    Two results and both operands are held: what is longest is halved until they take so many times less.
    """
    (rows, cols), limit = tile, _held(*tile, chunk) // shrink
    while _held(rows, cols, chunk) > limit and max(rows, cols, chunk) > 1:
        if chunk >= max(rows, cols):
            chunk //= 2
        else:
            rows, cols = smaller_sides((rows, cols), 2)
    return (rows, cols), chunk


def _held(rows: int, cols: int, chunk: int) -> int:
    return 2 * rows * cols + (rows + cols) * chunk
