# SPDX-License-Identifier: Apache-2.0
"""How kernels are tiled for a GPU."""

from __future__ import annotations

from ...schedule.tile_facts import TileSpace
from ...schedules.attention import AttentionSpace
from ...schedules.attention.speed import AttentionSpeed
from ...schedules.contraction.shared_product import JointUnits, ProductSpace, ProductTile

#: A warp: 32 values a lane at most of what it holds, which leaves room for as many temporaries below the
#: 128 registers that four warps on each scheduler may have.  A transposed tile has a line on one side and two
#: sectors at least on the other, and at most 64 elements a lane.
TILES = TileSpace(
    serial_work=0,
    groups=2**31 - 1,
    tiles_per_unit=8,
    flat_tile=2048,
    wide_values=True,
    value_bytes=4,
    least_columns=32,
    least_tile=256,
    row_values=1024,
    sets=(1, 4, 8, 16),
    transposed={1: (64, 32), 2: (64, 32), 4: (32, 32), 8: (16, 32)},
    walkers=64,
    vectors=(0.25, 0.5, 1),
)
#: A warp's part is 64 x 32 sums: 64 registers of a lane, which leaves as many for operands and the epilogue.
PRODUCTS = ProductSpace(
    tiles=(
        ProductTile(128, 128, 2, 4),
        ProductTile(128, 64, 2, 2),
        ProductTile(64, 64, 2, 2),
        ProductTile(32, 64, 1, 4),
        ProductTile(16, 64, 1, 4),
        ProductTile(16, 32, 1, 2),
    ),
    others=(
        ProductTile(64, 128, 2, 4),
        ProductTile(128, 32, 4, 1),
        ProductTile(32, 128, 1, 4),
        ProductTile(64, 32, 2, 1),
    ),
    depth={1: 64, 2: 64, 4: 16, 8: 8},
    least_depth_bytes=32,
    stages=3,
    # wgmma: 16 rows a warp, 64 of four warps that share b.  128 x 128 x 64 of fp16 takes 512 cycles by it,
    # and 814 as parts of 64 x 32 by mma.sync (src/codegen/cuda/wgmma_cost.cc)
    joint={
        "sm_90a": JointUnits(
            units={(128, 128): 8, (128, 64): 8, (64, 64): 4},
            either_way=frozenset({"float16", "bfloat16"}),
            along=frozenset({"int8", "uint8"}),
        )
    },
)
#: A warp has the 16 rows of a tensor core's tile and, with heads of 64 to 128, some 16 KiB of registers in
#: sums, queries and a block of scores.
ATTENTION = AttentionSpace(
    rows=16,
    key_bytes=256,
    units=4,
    stages=2,
    groups=2**31 - 1,
    whole_tiles=True,
    least_rows=16,
    leaves_out=True,
    part_keys=64,
    speed=AttentionSpeed(reached=0.5, library=0.8, narrow_products=True, overlaps=True, usual_gain=3.0),
)
