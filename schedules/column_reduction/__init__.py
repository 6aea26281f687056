# SPDX-License-Identifier: Apache-2.0
"""Reductions over leading or middle dimensions: columns stay side by side, rows are added up.

The result's columns are dealt to the units; each unit walks the reduced dimension serially and keeps
its accumulators in reg, so memory is read in whole lines.  Where the result has the reduced dimension
again (softmax over channels), a tile holds all of it for some columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.errors import RecipeError
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import LOOP
from uir_tvm.schedule.blocks import (
    BlockInfo,
    dtype_bytes,
    leaf_blocks,
    loop_extent,
    own_loops,
    reduction_blocks,
    reduction_loops,
)
from uir_tvm.schedule.decisions import OWN, Decisions, rv_of, tile_sizes
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.row_chain import (
    attach_producers,
    column_tile,
    decide_groups,
    decide_rows,
    decide_units,
    groups_for,
    line_of,
    map_chain,
    most_elements,
    output_blocks,
    tile_elements,
)
from uir_tvm.schedule.tile_facts import busy_units, space_of
from uir_tvm.schedules.column_reduction.shared_columns import schedule_columns
from uir_tvm.schedules.demo import from_relax

#: Results of a tile along the rows at most: short columns fill a tile with those of several.
MOST_RESULTS = 16
#: What part of its columns the unit with most keeps at most where tiles are widened for it.
WORTH_LEVELLING = 0.85
#: Forms of the reduction: by units that share nothing, by sets of units where modelled time is less, by sets.
OWN_COLUMNS, SHARED_IF_FASTER, SHARED_COLUMNS = 0, 1, 2


def matches(sch: Schedule) -> bool:
    """At least one reduction."""
    return bool(reduction_blocks(sch))


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """Columns over units, the reduced dimension serial, or shared by the units of a group.

    Raises
    ------
    RecipeError
        The outputs do not have the columns of the reductions.
    """
    prepare(sch)
    reductions = reduction_blocks(sch)
    root = output_blocks(sch)[-1]
    blocks = leaf_blocks(sch)
    elements = tile_elements(hw, blocks)
    kept, outer = _kept_rows(reductions, root)
    rows = math.prod(root.spatial[:outer])
    width = math.prod(root.spatial[outer:])
    groups = groups_for(hw, blocks)
    limit = max(1, max(elements, space_of(hw).row_values) // kept, _tall_columns(hw, blocks, kept))
    columns = _columns(hw, width, limit, rows // kept, groups)
    sharing = kept == 1 and len(space_of(hw).sets) > 1
    timed = sharing and not space_of(hw).row_values
    forms = (OWN_COLUMNS, *([SHARED_IF_FASTER] if sharing else []), *([SHARED_COLUMNS] if timed else []))
    form = decisions.fork("shared_columns", forms, SHARED_IF_FASTER if sharing else OWN_COLUMNS)
    if form != OWN_COLUMNS:
        own = (columns, elements) if timed else (0, 0)
        forced = form == SHARED_COLUMNS
        shared = schedule_columns(sch, hw, rows, width, *own, decisions=decisions, forced=forced)
        if shared is not None:
            return shared
    return _schedule_own_columns(sch, hw, kept, outer, columns, decisions)


def _schedule_own_columns(
    sch: Schedule, hw: HardwareModel, kept: int, outer: int, columns: int, decisions: Decisions
) -> Schedule:
    """Tiles of columns, each all in one unit."""
    blocks, root = leaf_blocks(sch), output_blocks(sch)[-1]
    rows, width = math.prod(root.spatial[:outer]), math.prod(root.spatial[outer:])
    elements = max(tile_elements(hw, blocks), space_of(hw).row_values)
    most = max(elements, most_elements(hw, blocks))
    whole, least = most // kept, line_of(hw)
    sizes: Sequence[int] = tile_sizes(width, columns, whole, least)
    if outer < len(root.spatial) - 1:
        # what a tile needs of a producer is a box only where no tile crosses from row to row
        last = root.spatial[-1]
        columns = columns if columns >= width else next(c for c in range(columns, 0, -1) if last % c == 0)
        inner = [c for c in tile_sizes(last, min(columns, last), whole, least) if last % c == 0]
        sizes = [*inner, *([width] if width <= whole else [])]
    groups = groups_for(hw, blocks)
    if decisions.sampled:
        tiles = math.ceil(rows / kept) * math.ceil(width / columns)
        groups = decide_groups(sch, hw, blocks, decisions, tiles)
    units = decide_units(sch, hw, decisions)
    columns = decisions.choose(sch, "tile_columns", sizes, columns)
    results = kept if kept > 1 else decide_rows(sch, root, rows, 1, MOST_RESULTS, decisions)
    nest = map_chain(
        sch, hw, rows, (results, columns), num_groups=groups, num_units=units, split_columns=True
    )
    at_once: dict[int, int] = {}
    for block in attach_producers(sch, nest):
        if not block.is_reduction:
            continue
        reduced = reduction_loops(sch, block.rv)
        held = kept == 1 and (space_of(hw).stages > 1 or decisions.sampled)
        if held:
            own = elements // columns if space_of(hw).stages > 1 else 1
            reduced = _rows_at_once(sch, reduced, max(1, own), most // columns, decisions, at_once)
        names = {sch.get(lp).loop_var.name for lp in reduced}
        spatial = [lp for lp in own_loops(sch, block.rv) if sch.get(lp).loop_var.name not in names]
        sch.reorder(*reduced, *spatial)
        if kept == 1:
            for loop in reduced[:-1] if held else reduced:
                sch.annotate(loop, LOOP, 1)
    return sch


def _rows_at_once(
    sch: Schedule, reduced: list[Any], own: int, most: int, decisions: Decisions, decided: dict[int, int]
) -> list[Any]:
    """The reduced loops with the last one in tiles of rows, which one transfer brings.

    Parameters
    ----------
    own, most : int
        Rows of a tile that a unit holds by preference, and at most.
    decided : dict of int to int
        Rows of a tile by the extent of the loop, for reductions that have the same.
    """
    *outer, last = reduced
    extent = loop_extent(sch, last)
    if extent <= own and not decisions.sampled:
        return list(reduced)
    if extent not in decided:
        own = min(own, extent)
        divisor = next((r for r in range(own, own // 2, -1) if extent % r == 0), own)
        sizes = tile_sizes(extent, divisor, max(most, divisor))
        decided[extent] = decisions.choose(sch, "rows_at_once", sizes, divisor)
    return [*outer, *sch.split(last, [None, rv_of(decided[extent])])]


def _columns(hw: HardwareModel, columns: int, limit: int, row_tiles: int, groups: int) -> int:
    """Columns of a tile: as many as fit, since what is read in whole rows streams; fewer for idle units."""
    space = space_of(hw)
    wanted = space.tiles_per_unit * busy_units(hw) if groups > 1 else space.tiles_per_unit
    tile = column_tile(hw, columns, limit)
    while tile > space.least_columns and row_tiles * math.ceil(columns / tile) < wanted:
        tile = column_tile(hw, columns, max(space.least_columns, tile // 2))
    return _level(hw, columns, tile, limit, row_tiles) if space.level_columns and groups > 1 else tile


def _level(hw: HardwareModel, columns: int, tile: int, limit: int, row_tiles: int) -> int:
    """Columns of a tile, more of them where the unit with most columns has much less then.

    Of 768 columns two units take one tile of 384 each, where one took two of 256.
    """

    def longest(each: int) -> int:
        return math.ceil(row_tiles * math.ceil(columns / each) / busy_units(hw)) * each

    wider = [c for c in range(tile, min(limit, columns) + 1, line_of(hw)) if columns % c == 0]
    best = min(wider, key=longest, default=tile)
    return best if longest(best) < WORTH_LEVELLING * longest(tile) else tile


def _tall_columns(hw: HardwareModel, blocks: list[BlockInfo], kept: int) -> int:
    """Columns of a tile at least, by the rows that it keeps: less than a line would take a vector apart."""
    widest = max(dtype_bytes(r.source.ty.dtype) for b in blocks for r in (*b.stmt.reads, *b.stmt.writes))
    return min(space_of(hw).tall_columns, int(hw.reg_bytes) // (widest * kept)) if kept > 1 else 1


def _kept_rows(reductions: list[BlockInfo], root: BlockInfo) -> tuple[int, int]:
    """Rows of a tile, and how many of the result's dimensions are rows (the others are columns).

    1 row where the result is what was reduced, all that are reduced where it keeps them.
    """
    elements = math.prod(root.spatial)
    if all(math.prod(b.spatial) == elements for b in reductions):
        return 1, max(0, len(root.spatial) - 1)
    reduced = {math.prod(b.reduction) for b in reductions}
    whole = all(math.prod(b.spatial) * math.prod(b.reduction) == elements for b in reductions)
    if len(reduced) == 1 and whole:
        for position in range(len(root.spatial) - 2, -1, -1):
            if root.spatial[position] in reduced:
                return root.spatial[position], position + 1
    raise RecipeError(
        "The result has neither the shape that is left by the reductions nor the one before them.",
        need=", ".join(f"{b.name}: {b.spatial}" for b in reductions),
        limit=f"{root.spatial}",
    )


def example() -> Any:
    """Mean over the tokens of (4, 128, 384)."""

    return from_relax(lambda x: op.mean(x, axis=1), [(4, 128, 384)], lambda x: x.mean(1))


RECIPE = Recipe(
    "column reduction",
    matches,
    schedule,
    example,
    reason="Columns stay side by side, so that memory is read in whole lines.",
    forms=({}, {"shared_columns": (0,)}),
)
