# SPDX-License-Identifier: Apache-2.0
"""How many blocks of keys tiles of rows walk where the diagonal closes the rest; which unit walks most."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def blocks_of_tiles(extent: int, rows: int, keys: int, last: int) -> list[int]:
    """The blocks of every tile of rows: as many as hold a key that its last row may see.

    Parameters
    ----------
    extent : int
        Rows that there are.
    rows, keys : int
        Of a tile, and of a block.
    last : int
        Row i has no open key beyond i + last.
    """
    return [(first + rows - 1 + last) // keys + 1 for first in range(0, extent, rows)]


def end_within(blocks: Sequence[int], most: int) -> bool:
    """Whether every tile has a block, and none more than there are, which are more than one."""
    return most > 1 and bool(blocks) and 1 <= min(blocks) and max(blocks) <= most


def busiest(blocks: Sequence[int], sets: int, groups: int, spread: bool) -> int:
    """The blocks that a unit walks in all of its turns, of the unit that walks most.

    Parameters
    ----------
    blocks : sequence of int
        Of every tile of a batch.
    sets, groups : int
        Batches, and units that take their tiles in turns.
    spread : bool
        How they are dealt (`uir_tvm.schedules.attention.work.Numbered`).
    """
    tiles = len(blocks)
    turns = math.ceil(sets * tiles / groups)
    group, turn = np.meshgrid(np.arange(groups), np.arange(turns), indexing="ij")
    if spread:
        number = turn * groups + (group + turn * step_of(sets * tiles, groups)) % groups
    else:
        number = group * turns + turn
    tile = number // sets if spread else number % tiles
    walked = np.asarray(blocks)[np.minimum(tile, tiles - 1)] * (number < sets * tiles)
    return int(walked.sum(axis=1).max())


def step_of(tiles: int, groups: int) -> int:
    """How far units move on among the places of a turn: not where some have none in the last one."""
    turns = math.ceil(tiles / groups)
    return groups // turns if tiles == groups * turns else 0


def pays_to_spread(blocks: Sequence[int], sets: int, groups: int) -> bool:
    """Whether the unit that walks most walks less if the tiles of a batch go to many units."""
    return busiest(blocks, sets, groups, True) < busiest(blocks, sets, groups, False)
