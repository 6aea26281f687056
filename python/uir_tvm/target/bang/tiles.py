# SPDX-License-Identifier: Apache-2.0
"""How kernels are tiled for an MLU."""

from __future__ import annotations

from ...schedule.size_ranges import SizeRanges
from ...schedule.tile_facts import TileSpace
from ...schedules.attention import AttentionSpace
from ...schedules.attention.speed import AttentionSpeed
from ...schedules.contraction.shared_product import ProductSpace, ProductTile

#: A core with a software-managed memory that loads and stores while it computes, or the four of a cluster for
#: a row.  A transposed tile has transfers of 128 bytes or more on both sides.
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
    sets=(1, 4),
    transposed={1: (128, 256), 2: (128, 128), 4: (128, 128), 8: (64, 64)},
    stages=2,
    walkers=16,
    least_walk=1,
    even=True,
    spread_rows=True,
    work_bytes=8,
    matrix_bytes=128,
    matrix_columns=64,
)
#: The four cores of a cluster have rows of their own and share the second factor.
PRODUCTS = ProductSpace(
    tiles=(
        ProductTile(256, 128, 4, 1),
        ProductTile(128, 128, 4, 1),
        ProductTile(64, 128, 4, 1),
        ProductTile(64, 64, 4, 1),
        ProductTile(32, 64, 4, 1),
    ),
    depth={1: 128, 2: 128, 4: 64, 8: 32},
    least_depth_bytes=64,
    stages=1,
    usual=False,
)
#: A core has NRAM for 64 x 128 scores and heads of 128, the keys and values of a block, and the work buffers
#: of products and functions.  It is busy with scores: in modelled time, what a cluster's cores save by
#: sharing keys in SRAM is less than what their meetings and the second copy cost.
ATTENTION = AttentionSpace(
    rows=64,
    key_bytes=512,
    units=1,
    stages=1,
    groups=None,
    whole_tiles=False,
    reg_share=0.6,
    part_keys=128,
    turned_above=32,
    held=True,
    leaves_out=True,
    ended=True,
    bounded=True,
    spread=True,
    speed=AttentionSpeed(reached=1.0, prepared=1.5, times=1.6),
)
#: Rows that few cores, all cores once, and all cores a few times take; lengths at which columns that are not
#: there cost.
SIZE_RANGES = SizeRanges(
    rows=(1, 8, 16, 64, 256, 1024), lengths=(40, 64, 128, 512), rows_by_length=(8, 16, 64), most=10, gain=1.03
)
