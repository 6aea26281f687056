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
    dtype_bytes,
    leaf_blocks,
    loop_extent,
    param_names,
    reduction_loops,
    uses,
)
from .decisions import OWN, Decisions
from .online import chunk_of, find_pair, rewrite, share_chunks
from .prepare import prepare
from .row_chain import (
    attach_producers,
    groups_for,
    map_chain,
    output_blocks,
    rows_per_tile,
    tile_elements,
)
from .row_sharing import RowWork, members
from .shared_rows import Sharing, schedule_shared
from .space import busy_units, space_of


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


def schedule_rows(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """Rows dealt to units, a tile of rows at a time through every block of the chain.

    Returns
    -------
    Schedule
        ``sch``, or one of a rewritten function where rows exceed a unit's memory.

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
    cols = max(math.prod(b.reduction) for b in reductions)
    blocks = leaf_blocks(sch)
    own = bool(space_of(hw).row_values) or _row_bytes(hw, sch, cols) <= hw.reg_bytes
    sharing = _sharing(hw, blocks, rows, max((b.reduction for b in reductions), key=math.prod), own)
    if sharing is not None:
        return schedule_shared(sch, hw, rows, sharing)
    if not own:
        return _schedule_long_rows(sch, hw, rows, cols)
    row = _row_extent(output_blocks(sch)[-1], rows)
    r = _rows_of_tile(hw, tile_elements(hw, blocks), rows, row, cols)
    groups = groups_for(hw, blocks)
    if space_of(hw).spread_rows:
        # no more than take as many turns: the last ones would have nothing, and masks for it
        groups = math.ceil(rows // r / math.ceil(rows // r / groups))
    attach_producers(sch, map_chain(sch, hw, rows, (r, None), num_groups=groups))
    return sch


def _sharing(
    hw: HardwareModel, blocks: list[BlockInfo], rows: int, extents: tuple[int, ...], own: bool
) -> Sharing | None:
    """How many units share a row; None = each unit has rows of its own.

    Where a unit holds few values, the fewest that hold the row; otherwise as many as take the least time.
    """
    space, cols = space_of(hw), math.prod(extents)
    inner = math.prod(extents[1:]) if len(extents) > 1 else cols
    if not space.row_values:
        held = tile_elements(hw, blocks)
        size = members(hw, RowWork.of(hw, blocks, rows, cols), held, own)
        return Sharing.of(cols, size, held, inner) if size > 1 else None
    if cols <= space.row_values:
        return None
    wanted = space.row_values // 2
    size = next((k for k in space.sets if k > 1 and k * wanted >= cols), space.sets[-1])
    return Sharing.of(cols, size, space.row_values, inner)


def _rows_of_tile(hw: HardwareModel, elements: int, rows: int, row: int, cols: int) -> int:
    """Rows of a tile: what it holds, but fewer where units would be idle."""
    space = space_of(hw)
    if space.spread_rows:
        # each unit its share, in several tiles where these are still whole transfers
        share = math.ceil(rows / busy_units(hw))
        least = math.ceil(int(hw.figures.get("transfer_bytes", 0)) / (cols * space.value_bytes))
        elements = min(elements, min(share, max(math.ceil(share / space.tiles_per_unit), least)) * cols)
    limit = space.row_values
    if not limit:
        return rows_per_tile(elements, row, cols)
    r = rows_per_tile(min(limit, max(elements, limit // 2)), row, cols)
    while r > 1 and rows // r < busy_units(hw):
        r = rows_per_tile(r // 2 * cols, row, cols)
    return r


def _schedule_long_rows(sch: Schedule, hw: HardwareModel, rows: int, cols: int) -> Schedule:
    """Rows in chunks: full-row intermediates are computed again, softmax becomes online."""
    limit = tile_elements(hw, leaf_blocks(sch))
    for block in leaf_blocks(sch):
        if not block.is_reduction and not block.writes_any(param_names(sch)) and block.size > rows:
            sch.compute_inline(block.rv)
    chunk = chunk_of(cols, limit)
    pair = find_pair(sch)
    chunked = rewrite(sch, pair, chunk) if pair is not None and chunk is not None else None
    if chunked is not None:
        sch = Schedule(chunked.func)
    chunk = chunk or limit
    nest = map_chain(sch, hw, rows, (1, chunk), num_groups=groups_for(hw, leaf_blocks(sch)))
    attached = attach_producers(sch, nest)
    if chunked is not None:
        sch.annotate(share_chunks(sch, chunked), LOOP, 1)
    for block in attached:
        if block.is_reduction:
            for loop in reduction_loops(sch, block.rv):
                if loop_extent(sch, loop) > chunk:
                    outer, _ = sch.split(loop, [None, chunk])
                    sch.annotate(outer, LOOP, 1)
    return sch


def _row_extent(root: BlockInfo, rows: int) -> int:
    """Extent of the loop that is cut into row tiles."""
    product, last = 1, 1
    for extent in root.spatial:
        if product == rows:
            break
        product *= extent
        last = extent
    return last


def _row_bytes(hw: HardwareModel, sch: Schedule, cols: int) -> int:
    """Bytes of one row of all that stays on chip: staged rows, one row of each operand, work buffers."""
    widths: dict[str, int] = {}
    for block in leaf_blocks(sch):
        for region in (*block.stmt.reads, *block.stmt.writes):
            widths[region.source.name] = dtype_bytes(region.source.ty.dtype)
    return (sum(widths.values()) + 4 + space_of(hw).work_bytes) * cols
