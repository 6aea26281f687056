# SPDX-License-Identifier: Apache-2.0
"""How attention in one pass over the keys is cut into tiles."""

from __future__ import annotations

import attrs
from uir_tvm.schedule.blocks import dtype_bytes
from uir_tvm.schedules.attention.parts import HasExtents


@attrs.frozen
class FlashTile:
    """How the work is cut.

    Parameters
    ----------
    rows : int
        Rows of a unit's tile.
    keys : int
        Keys of a block.
    groups : int
        Most groups.
    units : int
        Units of a group, which have neighbouring rows.
    staged : bool
        Whether blocks of keys and values are staged in sram, by the units of a group together.
    stages : int
        Blocks of keys in flight; 1 is none ahead.
    whole_tiles : bool
        Whether rows that do not exist are computed with zeros instead of left out: where registers are
        computed whole anyway, masks cost more than they save.
    turned : bool
        Whether tiles lie in reg with rows along their columns: vectors of queries, to which one element of a
        key or a value at a time is a factor.  Nothing of keys and values is then packed, and maxima and
        sums are those of vectors.
    held : bool
        Whether blocks of values are held in reg as they lie in memory, so that the next one is on its way
        while this one is turned for its product.
    widened : bool
        Whether narrow operands are made fp32 on chip, once for all products that they are in.
    parts : int
        Units that share the keys of a batch: each has every so-manieth block, and what they found is combined
        after a barrier of all.
    even : bool
        Whether tiles divide rows, keys and groups (`uir_tvm.schedules.attention.even`).
    float_places : bool
        Whether places that a rule compares are compared in fp32.
    leaves_out : bool
        Whether blocks of keys that the diagonal closes for all rows of a tile are left out.
    ended : bool
        Whether that is so only where the loop over blocks can end there: every tile has a block, and numbers
        say how many.  Bounds on all operands would cost more than the blocks save.
    bounded : bool
        Whether, where it is ended, bounds leave them out where sizes are open: operands
        have bounds there anyhow.
    spread : bool
        Whether the tiles of a head go to many units where blocks are left out: all then have about as many.
    """

    rows: int
    keys: int
    groups: int
    units: int = 1
    staged: bool = False
    stages: int = 1
    whole_tiles: bool = False
    turned: bool = False
    leaves_out: bool = False
    ended: bool = False
    bounded: bool = False
    spread: bool = False
    widened: bool = False
    parts: int = 1
    even: bool = False
    float_places: bool = False
    held: bool = False


def reg_bytes(parts: HasExtents, rows: int, keys: int) -> int:
    """Bytes of reg: sums and what rescales them, queries; of scores, mask, arguments, weights three."""
    narrow = dtype_bytes(parts.weight_dtype)
    return rows * (8 * parts.usual.width + narrow * parts.usual.head + (12 + narrow) * keys + 32)


def block_bytes(parts: HasExtents, keys: int) -> int:
    """Keys and values of a block."""
    return dtype_bytes(parts.weight_dtype) * keys * (parts.usual.head + parts.usual.width)
