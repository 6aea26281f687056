# SPDX-License-Identifier: Apache-2.0
"""How kernels are tiled for a CPU."""

from __future__ import annotations

from ...schedule.tile_facts import TileSpace
from ...schedules.attention import AttentionSpace

#: A core: its tile stays in L1, a cache line of 4-byte elements by four is transposed at a time.  What takes
#: less than 1.8 us alone takes no less with another thread: a softmax of 4,000 numbers, a sum of 24,000.
TILES = TileSpace(
    serial_work=72_000,
    groups=None,
    tiles_per_unit=4,
    flat_tile=4096,
    wide_values=False,
    value_bytes=1,
    least_columns=256,
    least_tile=0,
    row_values=0,
    sets=(1,),
    transposed=dict.fromkeys((1, 2, 4, 8), (16, 64)),
    bands=True,
    line_rounds=4,
    turned_work=5,
    fetched_work=20,
    wide_elements=8,
    single_lines={"x86_64": 512},
    whole_lines={"x86_64": 4096},
    tall_columns=16,
    level_columns=True,
    in_place=True,
    least_part=65_536,
    short_row=256,
    runs=4,
    run_bytes=512,
    vectors=(0.5, 1, 2, 4),
)
#: A core keeps a tile of scores in L1 (64 x 64 fp32), of four vectors of 16 queries.
ATTENTION = AttentionSpace(
    rows=64,
    key_bytes=256,
    units=1,
    stages=1,
    groups=None,
    whole_tiles=False,
    turned_above=8,
    few_row_keys=256,
    leaves_out=True,
    part_keys=256,
    widened=True,
)
