# SPDX-License-Identifier: Apache-2.0
"""Row-wise chains (reductions, softmax, normalisations): one pass over the data while rows fit on chip."""

from __future__ import annotations

import math

from tvm.s_tir import Schedule

from ..errors import ScheduleError
from ..igraph import HardwareModel
from .annotations import LOOP
from .blocks import (
    REDUCTION,
    BlockInfo,
    block_info,
    dtype_bytes,
    leaf_blocks,
    loop_extent,
    reduction_loops,
    uses,
)
from .prepare import prepare
from .row_chain import (
    Nest,
    attach_producers,
    groups_for,
    map_chain,
    output_blocks,
    rows_per_tile,
    tile_elements,
)


def reduction_blocks(sch: Schedule) -> list[BlockInfo]:
    """The blocks that reduce, in program order."""
    return [b for b in leaf_blocks(sch) if b.is_reduction]


def reduces_trailing(block: BlockInfo) -> bool:
    """Whether the reduced dimensions are the last of what the block reads along all its variables.

    Decided on the widest read: its region's last indices must be the reduction variables.
    """
    if not block.is_reduction:
        return False
    reduced = [iv.var for iv, k in zip(block.stmt.iter_vars, block.kinds, strict=True) if k == REDUCTION]
    wide = [r for r in block.stmt.reads if any(uses(rng.min, reduced) for rng in r.region)]
    if not wide:
        return False
    return all(uses(r.region[-1].min, reduced) for r in wide if len(r.region) > 1) and any(
        len(r.region) > 1 or not block.spatial or math.prod(block.spatial) == 1 for r in wide
    )


def common_rows(blocks: list[BlockInfo]) -> int | None:
    """The number of rows that all reductions share (None when they differ)."""
    rows = {math.prod(b.spatial) for b in blocks}
    return rows.pop() if len(rows) == 1 else None


def schedule_rows(sch: Schedule, hw: HardwareModel) -> None:
    """Rows dealt to units, a tile of rows at a time through every block of the chain.

    Raises
    ------
    ScheduleError
        The reductions do not share their rows.
    """
    prepare(sch)
    reductions = reduction_blocks(sch)
    rows = common_rows(reductions)
    if rows is None:
        raise ScheduleError(
            "The reductions of this function have different rows.",
            need="one row space",
            limit=", ".join(f"{b.name}: {b.spatial}" for b in reductions),
            remedy="split the function, or let another recipe take it",
        )
    blocks = leaf_blocks(sch)
    cols = max(math.prod(b.reduction) for b in reductions)
    fits = _row_bytes(sch, cols) <= hw.reg_bytes
    row = _row_extent(output_blocks(sch)[-1], rows)
    r = rows_per_tile(tile_elements(hw, blocks), row, cols) if fits else 1
    chunk = None if fits else max(1, tile_elements(hw, blocks))
    nest = map_chain(sch, hw, rows, (r, chunk), num_groups=groups_for(hw, blocks))
    attached = attach_producers(sch, nest)
    if chunk is not None:
        _split_long_rows(sch, attached, nest, chunk)


def _row_extent(root: BlockInfo, rows: int) -> int:
    """Extent of the loop that is cut into row tiles."""
    product, last = 1, 1
    for extent in root.spatial:
        if product == rows:
            break
        product *= extent
        last = extent
    return last


def _row_bytes(sch: Schedule, cols: int) -> int:
    """Bytes of one row of everything that stays on chip: staged rows, and one row of each operand."""
    widths: dict[str, int] = {}
    for block in leaf_blocks(sch):
        for region in (*block.stmt.reads, *block.stmt.writes):
            widths[region.source.name] = dtype_bytes(region.source.ty.dtype)
    return (sum(widths.values()) + 4) * cols


def _split_long_rows(sch: Schedule, attached: list[BlockInfo], nest: Nest, chunk: int) -> None:
    """Walk rows that exceed a unit's memory in chunks; full-row intermediates are computed again."""
    for block in attached:
        if not block.is_reduction and math.prod(block_info(sch, block.rv).extents) > chunk:
            sch.compute_inline(block.rv)
    for block in attached:
        if block.is_reduction:
            for loop in reduction_loops(sch, block.rv):
                if loop_extent(sch, loop) > chunk:
                    outer, _ = sch.split(loop, [None, chunk])
                    sch.annotate(outer, LOOP, 1)
