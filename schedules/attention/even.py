# SPDX-License-Identifier: Apache-2.0
"""Tiles of attention that divide all rows, keys and groups, for units of products that read dram.

Such a unit reads queries, keys and values where they lie, if they are whole tiles that nothing may leave out.
A tile at the end of rows, a block at the end of keys, or a group without a tile in the last turn would have
all operands of all tiles staged: read by the vector core, written with zeros around them, and read again.
Without that little is held on chip, so that tiles may be large: few turns, and few blocks of keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.representative import is_open
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedules.attention.parts import HasExtents
from uir_tvm.schedules.attention.tile import block_bytes


@attrs.frozen
class EvenTiles:
    """Of one kind of hardware: what such tiles may be, and what they take, in cycles.

    Parameters
    ----------
    unit : int
        What rows, keys and heads are multiples of: the sides of the unit's smallest tile.
    rows, keys : tuple of int
        Most of both, and further ones that are looked at, by halves, down to the least.
    product_bytes : int
        Most of a result of the unit.
    reg_share : float
        The part of reg that a tile takes: the rest is for masks and work buffers.
    tile, block, score, byte, combining : float
        What a tile of rows takes, each block of keys more, each score and sum, each byte of keys and values,
        and combining what units found of parts of the keys: by these tiles are compared.
    """

    unit: int
    rows: tuple[int, int]
    keys: tuple[int, int]
    product_bytes: int
    reg_share: float
    tile: float
    block: float
    score: float
    byte: float
    combining: float


@attrs.frozen
class EvenTile:
    """Rows of a tile, keys of a block, units that share the keys, and groups that have as many tiles each."""

    rows: int
    keys: int
    parts: int
    groups: int


def even_tile(parts: HasExtents, hw: HardwareModel, even: EvenTiles, groups: int) -> EvenTile | None:
    """The tile that takes least; None where there is none, or where another keeps many more groups busy.

    Parameters
    ----------
    groups : int
        That run at the same time.
    """
    usual = parts.usual
    if any(map(is_open, (*parts.batch, parts.rows, parts.keys))):
        return None
    if usual.head % even.unit or usual.width % even.unit or usual.keys % even.unit:
        return None
    sets = math.prod(usual.batch)
    if not sets:
        return None
    found = [
        (rows, keys, shares)
        for rows in _parts_of(usual.rows, even.rows, even.unit)
        for keys in _parts_of(usual.keys, even.keys, even.unit)
        if _fits(parts, hw, even, rows, keys)
        for shares in _shares(usual.keys // keys, sets, groups if rows == usual.rows else 1)
    ]
    if not found:
        return None
    rows, keys, shares = min(found, key=lambda each: _cycles(parts, even, each, sets, groups))
    return EvenTile(rows, keys, shares, _divisor(sets * shares * (usual.rows // rows), groups))


def _shares(blocks: int, sets: int, groups: int) -> Iterator[int]:
    """How many units may share the keys of a batch: each has as many blocks, and all of them run at once."""
    yield 1
    yield from (count for count in range(2, blocks + 1) if blocks % count == 0 and sets * count <= groups)


def _parts_of(extent: int, bounds: tuple[int, int], unit: int) -> Iterator[int]:
    """Sizes of equal parts of an extent, all of it where that is small, in whole units."""
    most, least = bounds
    for size in range(min(extent, most), 0, -1):
        whole = size == extent or size % unit == 0
        if extent % size == 0 and whole and (size == extent or size >= least):
            yield size


def _divisor(tiles: int, groups: int) -> int:
    """The most groups that have as many tiles each."""
    return max(count for count in range(1, min(tiles, groups) + 1) if tiles % count == 0)


def _cycles(parts: HasExtents, even: EvenTiles, tile: tuple[int, int, int], sets: int, groups: int) -> float:
    (rows, keys, shares), usual = tile, parts.usual
    tiles = sets * shares * (usual.rows // rows)
    turns = tiles // _divisor(tiles, groups)
    block = even.block + even.score * rows * (keys + usual.width) + even.byte * block_bytes(parts, keys)
    return turns * (even.tile + usual.keys // keys // shares * block) + even.combining * (shares > 1)


def _fits(parts: HasExtents, hw: HardwareModel, even: EvenTiles, rows: int, keys: int) -> bool:
    padded = -(-rows // even.unit) * even.unit
    product = 4 * padded * max(keys, parts.usual.width)
    # sums, what is added to them, and of scores one in fp32, one as narrow as values, and one for functions
    held = rows * (8 * parts.usual.width + 10 * keys + 32)
    shrink = shrink_of(hw)
    return product <= even.product_bytes // shrink and held <= int(hw.reg_bytes * even.reg_share) // shrink
