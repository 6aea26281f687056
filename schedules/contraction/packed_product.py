# SPDX-License-Identifier: Apache-2.0
"""Products with a weight of few bits: groups of it are unpacked on chip, one after the other.

Before::

    for n, g, h, j: W[n, g, h, j] = s[n, g] * (code(w, n, g, h, j) - zero)
    for m, n, g, h, j: P[m, n] += x[m, (g, h, j)] * W[n, g, h, j]
    for m, n: Y[m, n] = f(P[m, n])

After, with tiles of rows and columns::

    for p in tiles:                                    # uir.parallel
      for g, h:                                        # uir.loop
        for n, j: W.local = s * (code - zero)
        for m, n, j: P.local[m, n] += x * W.local      # uir.contract, where there are several rows
      for m, n: Y[m, n] = f(P.local[m, n])

Where a unit is the lanes of a warp, rows that fill no tile of the matrix unit are products of a matrix and a
vector: a unit has one column, its lanes the groups of it, so that the codes of neighbours lie side by side::

    for p in columns:                                  # uir.parallel
      for g, h:                                        # uir.loop
        for l, j: W.local[l, j] = s * (code - zero)    # of group g * L + l
        for l, j: S.local[l] += x * W.local
      P.local = sum(S.local)
      Y[m, n] = f(P.local)
"""

from __future__ import annotations

import math
from typing import Any

from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.quantized import UNPACKED
from uir_tvm.schedule.annotations import CONTRACT, LOOP
from uir_tvm.schedule.blocks import (
    BlockInfo,
    leaf_blocks,
    loop_extent,
    reduction_blocks,
    reduction_loops,
)
from uir_tvm.schedule.decisions import Decisions
from uir_tvm.schedule.row_chain import attach_producers, decide_groups, map_chain
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedule.tile_facts import product_groups
from uir_tvm.schedules.contraction.shared_product import space_for

#: Codes of one column that the lanes of a warp unpack at a time: at least four, at most sixteen of each.
LEAST_CODES, MOST_CODES = 128, 512
#: Rows and columns of a tile, and the least columns where that gives every unit one.
ROWS, COLUMNS, LEAST_COLUMNS = 16, 64, 16


def is_packed(sch: Schedule) -> bool:
    """Whether the function's one reduction is a product with a weight that it unpacks."""
    reductions = reduction_blocks(sch)
    return len(reductions) == 1 and UNPACKED in dict(reductions[0].stmt.annotations)


def packed_product(
    sch: Schedule, hw: HardwareModel, root: BlockInfo, product: BlockInfo, decisions: Decisions
) -> None:
    """Schedule such a product and its epilogue, whose last block is ``root``."""
    *outer, row, column = root.spatial
    rows = math.prod(outer) * row
    shrink = shrink_of(hw)
    tile_rows = max(1, min(rows, ROWS // min(shrink, ROWS)))
    if space_for(hw) is not None and (tile_rows < ROWS or column % ROWS):
        tile_rows = 1  # lanes of a warp have tiles of 16 x 16 of a product, whole ones
    if tile_rows == 1 and space_for(hw) is not None:
        lanes = _lanes(sch, product)
        if lanes is not None:
            _column_by_lanes(sch, hw, rows, product, lanes, decisions)
            return
    groups = decide_groups(
        sch, hw, leaf_blocks(sch), decisions, most=product_groups(hw) if tile_rows > 1 else None
    )
    tiles = math.ceil(rows / tile_rows)
    most = min(COLUMNS, max(LEAST_COLUMNS, column * tiles // max(1, groups * hw.num_units)))
    columns = _divisor(column, max(1, most // shrink))
    nest = map_chain(sch, hw, rows, (tile_rows, columns), num_groups=groups, split_columns=True)
    attach_producers(sch, nest)
    group, *inner = reduction_loops(sch, product.rv)
    loops = sch.get_loops(product.rv)
    first = len(loops) - len(inner) - 3
    sch.reorder(group, *loops[first : first + 2], *inner)
    sch.annotate(group, LOOP, 1)
    for block in sch.get_producers(product.rv):
        if _unpacks(sch, block):
            sch.compute_at(block, group, preserve_unit_loops=True)
    if tile_rows > 1 and len(inner) > 1:
        sch.fuse(*inner)
    if tile_rows > 1:
        sch.annotate(product.rv, CONTRACT, 1)


def _lanes(sch: Schedule, product: BlockInfo) -> int | None:
    """Groups of a column that lanes unpack at a time, in halves or whole; None where there are too few."""
    group, *inner = (loop_extent(sch, loop) for loop in reduction_loops(sch, product.rv))
    codes = inner[-1]
    fits = (n for n in (32, 16, 8, 4, 2, 1) if group % n == 0 and LEAST_CODES <= n * codes <= MOST_CODES)
    return next(fits, None)


def _column_by_lanes(
    sch: Schedule, hw: HardwareModel, rows: int, product: BlockInfo, lanes: int, decisions: Decisions
) -> None:
    """A column for a unit, its sums apart for each of some groups."""
    weights = [block for block in sch.get_producers(product.rv) if _unpacks(sch, block)]
    _, lane = sch.split(reduction_loops(sch, product.rv)[0], [None, lanes])
    part = sch.rfactor(lane, factor_axis=len(product.spatial))
    groups = decide_groups(sch, hw, leaf_blocks(sch), decisions)
    nest = map_chain(sch, hw, rows, (1, 1), num_groups=groups, split_columns=True)
    attach_producers(sch, nest)
    group, *inner = reduction_loops(sch, part)
    reduced = [sch.get(loop) for loop in (group, *inner)]
    own = sch.get_loops(part)[-len(sch.get(part).iter_vars) :]
    spatial = [loop for loop in own if not any(sch.get(loop).same_as(each) for each in reduced)]
    sch.reorder(group, *inner[:-1], *spatial, inner[-1])
    sch.annotate(group, LOOP, 1)
    for block in weights:
        sch.compute_at(block, group, preserve_unit_loops=True)


def _divisor(count: int, most: int) -> int:
    """The largest divisor of a count up to a number; where it is a small part of that, the number."""
    found = next(n for n in range(min(count, most), 0, -1) if count % n == 0)
    return found if 4 * found >= min(count, most) else min(count, most)


def _unpacks(sch: Schedule, block: Any) -> bool:
    return UNPACKED in dict(sch.get(block).annotations)
