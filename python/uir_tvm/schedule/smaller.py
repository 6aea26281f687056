# SPDX-License-Identifier: Apache-2.0
"""Smaller tiles: the figure of a hardware model by which recipes choose them."""

from __future__ import annotations

from ..igraph import HardwareModel
from ..igraph.text import HARDWARE_FIELDS

#: The figure, and how many times smaller it is tried where a memory on chip lacks room.
TILE, SHRINKS = "tile_bytes", (2, 4, 8)


def with_tiles(hardware: HardwareModel, shrink: int) -> HardwareModel:
    """The model with a preferred tile so many times smaller, for recipes to read."""
    if shrink == 1 or TILE not in hardware.figures:
        return hardware
    figures = {**dict(hardware.figures), TILE: int(hardware.figures[TILE]) // shrink}
    fields = (getattr(hardware, name) for name in HARDWARE_FIELDS)
    return HardwareModel(hardware.name, *fields, figures)  # type: ignore[call-arg]
