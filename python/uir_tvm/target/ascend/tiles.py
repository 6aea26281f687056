# SPDX-License-Identifier: Apache-2.0
"""How kernels are tiled for an NPU."""

from __future__ import annotations

from ...schedule.size_ranges import SizeRanges
from ...schedule.tile_facts import TileSpace
from ...schedules.attention import AttentionSpace
from ...schedules.attention.even import EvenTiles
from ...schedules.attention.speed import AttentionSpeed

#: A vector core with a software-managed memory: long tiles, loaded and stored while others are computed with,
#: the same number on every core, since all start at once.  A transposed tile has transfers of 512 bytes or
#: more on both sides where its four places leave room.
TILES = TileSpace(
    serial_work=0,
    groups=None,
    tiles_per_unit=4,
    flat_tile=1 << 20,
    wide_values=True,
    value_bytes=4,
    least_columns=128,
    least_tile=0,
    row_values=0,
    sets=(1,),
    transposed={1: (128, 128), 2: (128, 128), 4: (64, 128), 8: (64, 64)},
    stages=2,
    walkers=16,
    least_walk=1,
    even=True,
    # a fractal of the cube
    matrix_bytes=32,
    matrix_columns=16,
)
#: Keys and values are turned in reg, and a core that takes turns holds a bound tile beside the next one.
ATTENTION = AttentionSpace(
    rows=32,
    key_bytes=512,
    units=1,
    stages=1,
    groups=None,
    whole_tiles=False,
    reg_share=0.35,
    part_keys=128,
    leaves_out=True,
    ended=True,
    bounded=True,
    spread=True,
    # a fractal of the cube; half of its results' memory; cycles by the host model
    even=EvenTiles(
        unit=16,
        rows=(128, 16),
        keys=(512, 64),
        product_bytes=65536,
        reg_share=0.8,
        tile=1500,
        block=1300,
        score=0.35,
        byte=0.02,
        combining=4000,
    ),
    speed=AttentionSpeed(times=1.8),
)
#: Rows that few cores, all 48 of them once, and all of them a few times take; lengths at which columns that
#: are not there cost.
SIZE_RANGES = SizeRanges(
    rows=(8, 32, 64, 256, 1024), lengths=(40, 64, 128, 512), rows_by_length=(8, 16, 48, 64), most=10
)
