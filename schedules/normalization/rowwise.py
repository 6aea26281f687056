# SPDX-License-Identifier: Apache-2.0
"""Row-wise chains (reductions, softmax, normalisations): one pass over the data while rows fit on chip."""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule
from uir_tvm.errors import ScheduleError
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import (
    REDUCTION,
    BlockInfo,
    dtype_bytes,
    leaf_blocks,
    param_names,
    reduction_blocks,
    uses,
)
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.representative import usual_elements
from uir_tvm.schedule.row_chain import (
    attach_producers,
    decide_groups,
    decide_rows,
    decide_units,
    groups_for,
    line_of,
    map_chain,
    most_elements,
    output_blocks,
    rows_per_tile,
    tile_elements,
)
from uir_tvm.schedule.tile_facts import busy_units, space_of, spread_rows
from uir_tvm.schedules.normalization.long_rows import schedule_long_rows
from uir_tvm.schedules.normalization.pass_rows import pass_elements
from uir_tvm.schedules.normalization.row_sharing import RowWork, members
from uir_tvm.schedules.normalization.shared_rows import Sharing, schedule_shared

#: Forms of rows, beside the number of units that share one: each unit has rows of its own, or walks a row in
#: chunks.
OWN_ROWS, LONG_ROWS = 1, 0
#: What part of its rows the busiest unit keeps at most where tiles get fewer, half of them at least.
WORTH_SPREADING = 0.85
#: Columns of a row that may be worth walking in chunks though a unit holds it.
LEAST_LONG = 1024


def reduces_trailing(block: BlockInfo) -> bool:
    """Whether the reduced dimensions are the last of what the block reads along all its variables.

    Decided on the widest read: its region's last indices must be the reduction variables.  Dimensions of one
    element count for nothing.
    """
    if not block.is_reduction:
        return False
    reduced = [iv.var for iv, k in zip(block.stmt.iter_vars, block.kinds, strict=True) if k == REDUCTION]
    wide = [r for r in block.stmt.reads if any(uses(rng.min, reduced) for rng in r.region)]
    if not wide:
        return False
    indices = [_dimensions(r, reduced) for r in wide]
    return all(uses(i[-1].min, reduced) for i in indices if len(i) > 1) and any(
        len(i) > 1 or math.prod(block.spatial) == 1 for i in indices
    )


def _dimensions(region: Any, reduced: list[Any]) -> list[Any]:
    """What is read along each dimension that is reduced or has more than one element."""
    return [
        rng
        for rng, extent in zip(region.region, region.source.ty.shape, strict=True)
        if uses(rng.min, reduced) or not (isinstance(extent, tirx.IntImm) and int(extent) == 1)
    ]


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
    own = own or _holds_dear(hw, blocks, rows, cols)
    extents = max((b.reduction for b in reductions), key=math.prod)
    size = _members(hw, blocks, rows, cols, own)
    default = size if size > 1 else OWN_ROWS if own else LONG_ROWS
    form = decisions.fork("row_sharing", _forms(hw, cols, own), default)
    if form == LONG_ROWS:
        return schedule_long_rows(sch, hw, rows, cols, decisions)
    if form != OWN_ROWS:
        inner = math.prod(extents[1:]) if len(extents) > 1 else cols
        held = space_of(hw).row_values or tile_elements(hw, blocks)
        return schedule_shared(sch, hw, rows, Sharing.of(cols, form, held, inner), decisions)
    return _schedule_own_rows(sch, hw, rows, cols, decisions)


def _schedule_own_rows(
    sch: Schedule, hw: HardwareModel, rows: int, cols: int, decisions: Decisions
) -> Schedule:
    """Rows dealt to units, each row whole in one."""
    blocks, root = leaf_blocks(sch), output_blocks(sch)[-1]
    elements = pass_elements(hw, blocks, param_names(sch), rows, cols)
    r = _rows_of_tile(hw, elements, rows, _row_extent(root, rows), cols)
    tiles, groups = rows // r, groups_for(hw, blocks)
    if space_of(hw).spread_rows:
        # no more than take as many turns: the last ones would have nothing, and masks for it
        groups = tiles = math.ceil(tiles / math.ceil(tiles / groups))
    if decisions.sampled:
        groups = decide_groups(sch, hw, blocks, decisions, tiles)
    units = decide_units(sch, hw, decisions)
    most = max(most_elements(hw, blocks), space_of(hw).row_values)
    r = decide_rows(sch, root, rows, r, most // cols, decisions)
    attach_producers(sch, map_chain(sch, hw, rows, (r, None), num_groups=groups, num_units=units))
    return sch


def _forms(hw: HardwareModel, cols: int, own: bool) -> list[int]:
    """What rows of so many columns may be: long, a unit's own, shared by several units."""
    space = space_of(hw)
    forms = [k for k in space.sets if 1 < k <= hw.num_units and cols >= k * line_of(hw)]
    if own and (not space.row_values or cols <= 2 * space.row_values):
        forms.insert(0, OWN_ROWS)
    if not space.row_values and cols >= LEAST_LONG:
        forms.append(LONG_ROWS)
    return forms


def _members(hw: HardwareModel, blocks: list[BlockInfo], rows: int, cols: int, own: bool) -> int:
    """How many units share a row; 1 = each unit has rows of its own.

    Where a unit holds few values, the fewest that hold the row; otherwise as many as take the least time.
    """
    space = space_of(hw)
    if not space.row_values:
        return members(hw, RowWork.of(hw, blocks, rows, cols), tile_elements(hw, blocks), own)
    if cols <= space.row_values:
        return 1
    wanted = space.row_values // 2
    return next((k for k in space.sets if k > 1 and k * wanted >= cols), space.sets[-1])


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
        r = rows_per_tile(elements, row, cols)
        busy = space.even and not space.spread_rows and rows // r > busy_units(hw)
        return spread_rows(r, row, rows, busy_units(hw), WORTH_SPREADING, math.ceil(r / 2)) if busy else r
    r = rows_per_tile(min(limit, max(elements, limit // 2)), row, cols)
    while r > 1 and rows // r < busy_units(hw):
        r = rows_per_tile(r // 2 * cols, row, cols)
    return r


def _row_extent(root: BlockInfo, rows: int) -> int:
    """Extent of the loop that is cut into row tiles."""
    product, last = 1, 1
    for extent in root.spatial:
        if product == rows:
            break
        product *= extent
        last = extent
    return last


def _holds_dear(hw: HardwareModel, blocks: list[BlockInfo], rows: int, cols: int) -> bool:
    """Whether a unit that takes operands where they are holds a row of what chunks would compute twice.

    Beside it lies the row that all passes read.
    """
    dear = [b for b in blocks if not b.is_reduction and b.is_expensive and b.size == rows * cols]
    if not space_of(hw).in_place or len(dear) != 1:
        return False
    (block,) = dear
    reads = [r.source for r in block.stmt.reads if usual_elements(r.source) == block.size]
    widths = [dtype_bytes(source.ty.dtype) for source in (*reads, block.stmt.writes[0].source)]
    inner = any(set(block.writes) & set(other.reads) for other in blocks if other.is_reduction)
    return inner and sum(widths) * cols <= hw.reg_bytes


def _row_bytes(hw: HardwareModel, sch: Schedule, cols: int) -> int:
    """Bytes of one row of all that stays on chip: staged rows, one row of each operand, work buffers."""
    widths: dict[str, int] = {}
    for block in leaf_blocks(sch):
        for region in (*block.stmt.reads, *block.stmt.writes):
            widths[region.source.name] = dtype_bytes(region.source.ty.dtype)
    return (sum(widths.values()) + 4 + space_of(hw).work_bytes) * cols
