# SPDX-License-Identifier: Apache-2.0
"""Reductions over leading dimensions shared by the units of a group: each adds up some of the rows.

Before::

    for j in N:
      for i in M: S[j] += X[i, j]

After, with k units, tiles of c columns and s rows at a time::

    for pid in N/c * k:                      # a set of k units for each tile of columns
      for io in M/(k*s):                     # uir.loop
        for ii in s, j in c: R[j] += X[(pid % k)*M/k + io*s + ii, j]
      S = reduce.add.col.group R             # the first unit stores it

Rows are read in whole lines, and as many of them are in flight as a tile holds.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import GROUP, LOOP
from uir_tvm.schedule.blocks import BlockInfo, leaf_blocks, loop_extent, own_loops, reduction_loops
from uir_tvm.schedule.decisions import OWN, Decisions, near
from uir_tvm.schedule.row_chain import attach_producers, groups_for, map_chain
from uir_tvm.schedule.tile_facts import busy_units, space_of, units_of
from uir_tvm.schedules.normalization.partial import Bound, Partials, give_loops, prepare_partials
from uir_tvm.schedules.normalization.row_sharing import LEAST_GAIN, RowWork, column_seconds, has_times
from uir_tvm.schedules.normalization.shared_rows import decide_set_units

#: Columns of a tile that are read at once: 16 bytes a lane of 4-byte elements, and a line of them.
WIDE, NARROW = 128, 32
#: Columns of a tile among which modelled time chooses, besides all; rows are taken in so many steps at least.
WIDTHS, STEPS = (512, 256, 128, 64, 32), 4


@attrs.frozen
class ColumnSharing:
    """A set of ``size`` units takes ``columns``; each adds up ``steps`` times ``rows`` rows of them."""

    size: int
    columns: int
    rows: int
    steps: int

    @staticmethod
    def of(hw: HardwareModel, tiles: int, columns: int, reduced: int, exact: bool) -> ColumnSharing:
        """How ``tiles`` rows of results with ``columns`` each share ``reduced`` rows.

        ``exact``: only as the rows divide evenly.
        """
        space, processors = space_of(hw), busy_units(hw) // units_of(hw)
        width = WIDE
        while width > NARROW and tiles * math.ceil(columns / width) < processors:
            width //= 2
        width = min(width, columns)
        sets = tiles * math.ceil(columns / width)
        wanted = busy_units(hw) * space.tiles_per_unit // 2
        fitting = [k for k in space.sets if k * 4 <= reduced and (not exact or reduced % k == 0)] or [1]
        size = next((k for k in fitting if sets * k >= wanted), fitting[-1])
        share = math.ceil(reduced / size)
        rows = min(share, max(1, space.row_values // width))
        if exact:
            rows = next(r for r in range(rows, 0, -1) if share % r == 0)
        return ColumnSharing(size, width, rows, math.ceil(share / rows))

    @staticmethod
    def timed(
        hw: HardwareModel,
        work: RowWork,
        columns: int,
        own: int,
        elements: int,
        exact: bool,
        forced: bool = False,
    ) -> ColumnSharing | None:
        """The sharing of least modelled time; None where units that share nothing take as little.

        Parameters
        ----------
        own : int
            Columns of a tile of a unit that shares nothing.
        elements : int
            Of a tile that a unit holds.
        exact : bool
            Only as the rows divide evenly.
        forced : bool
            The best sharing even where units that share nothing take less.
        """
        reduced = work.columns
        if not has_times(hw):
            return None
        sizes = [k for k in space_of(hw).sets if 1 < k <= hw.num_units and k * STEPS <= reduced]
        sizes = [k for k in sizes if not exact or reduced % k == 0]
        widths = [w for w in (columns, *WIDTHS) if w <= columns and w <= elements]
        times = {(k, w): column_seconds(hw, work, columns, k, w) for k in sizes for w in widths}
        best = min(times, key=lambda one: times[one], default=None)
        if best is None:
            return None
        if not forced and times[best] >= LEAST_GAIN * column_seconds(hw, work, columns, 1, own):
            return None
        size, width = best
        share = math.ceil(reduced / size)
        rows = max(1, min(math.ceil(share / STEPS), elements // width))
        if exact:
            rows = next(r for r in range(rows, 0, -1) if share % r == 0)
        return ColumnSharing(size, width, rows, math.ceil(share / rows))


def schedule_columns(
    sch: Schedule,
    hw: HardwareModel,
    tiles: int,
    columns: int,
    own: int = 0,
    elements: int = 0,
    decisions: Decisions = OWN,
    forced: bool = False,
) -> Schedule | None:
    """Column tiles dealt to sets of units; returns the schedule, or one with bounds restored.

    None where units that share nothing take as little time, if ``own`` says how many columns such a unit
    takes at once (`ColumnSharing.timed`), unless it is ``forced``.
    """
    give_loops(sch)
    reductions = [b for b in leaf_blocks(sch) if b.is_reduction]
    extents = [loop_extent(sch, _longest(sch, block)) for block in reductions]
    extent = max(extents)
    exact = any(len(reduction_loops(sch, b.rv)) > 1 for b in reductions) or len(set(extents)) > 1
    apart = exact and any(other != extent for other in extents)
    if own:
        work = RowWork.of(hw, leaf_blocks(sch), tiles * columns, extent)
        timed = ColumnSharing.timed(hw, work, columns, own, elements, exact, forced)
        if timed is None or apart:
            return None
        sharing = timed
    else:
        sharing = ColumnSharing.of(hw, tiles, columns, extent, exact)
    if apart:
        sharing = ColumnSharing(1, sharing.columns, 1, extent)
    else:
        sharing = decide_sharing(hw, sharing, columns, extent, exact, decisions)
    sch, partials = prepare_partials(sch, decisions)
    reductions = [b for b in leaf_blocks(sch) if b.is_reduction]
    longest = [_longest(sch, block) for block in reductions]
    inner = {
        _share(sch, block, loop, sharing, partials) for block, loop in zip(reductions, longest, strict=True)
    }
    units = decide_set_units(hw, sharing.size, decisions)
    nest = map_chain(
        sch,
        hw,
        tiles,
        (1, sharing.columns),
        num_groups=groups_for(hw, leaf_blocks(sch), units),
        num_units=units,
        split_columns=True,
        group_size=sharing.size,
        share=0,
    )
    for block in attach_producers(sch, nest):
        if block.name in inner:
            _walk(sch, block, sharing)
    return partials.restore(sch, decisions)


def decide_sharing(
    hw: HardwareModel, own: ColumnSharing, columns: int, reduced: int, exact: bool, decisions: Decisions
) -> ColumnSharing:
    """The sharing ``own``, or one with other units, columns or rows of a step, about as many values at once.

    Parameters
    ----------
    columns : int
        Of the results, side by side in memory.
    reduced : int
        Rows that are added up.
    exact : bool
        Only as the rows divide evenly.
    """
    sizes = [k for k in space_of(hw).sets if k <= hw.num_units and k * STEPS <= reduced]
    sizes = [k for k in sizes if (k > 1 or own.size == 1) and (not exact or reduced % k == 0)]
    size = decisions.fork("sharing_units", sorted(sizes, key=lambda k: abs(k - own.size)), own.size)
    width = decisions.fork("tile_columns", near(own.columns, columns, min(NARROW, own.columns)), own.columns)
    share, rows = math.ceil(reduced / size), own.rows
    if (size, width) != (own.size, own.columns):
        rows = max(1, min(share, own.rows * own.columns // width))
    tall = near(rows, share)
    if exact:
        rows = next(r for r in range(rows, 0, -1) if share % r == 0)
        tall = [r for r in tall if share % r == 0]
    rows = decisions.fork("tile_rows", tall, rows)
    return ColumnSharing(size, width, rows, math.ceil(share / rows))


def _longest(sch: Schedule, block: BlockInfo) -> Any:
    return max(reduction_loops(sch, block.rv), key=lambda loop: loop_extent(sch, loop))


def _share(sch: Schedule, block: BlockInfo, loop: Any, sharing: ColumnSharing, partials: Partials) -> str:
    """Cut a reduction into units, steps and rows; the name of the block of the partial results."""
    extent = loop_extent(sch, loop)
    member, _, _ = sch.split(loop, [sharing.size, sharing.steps, sharing.rows])
    if sharing.size == 1:
        return block.name
    name = partials.make(sch, block.rv, member, sharing.size)
    part = sharing.steps * sharing.rows
    if sharing.size * part > extent:
        partials.bounds.append(Bound(name, ((0, part), (-2, sharing.rows), (-1, 1)), extent))
    return name


def _walk(sch: Schedule, block: BlockInfo, sharing: ColumnSharing) -> None:
    """Steps outside, the rows of a step and the columns as the tile."""
    reduced = reduction_loops(sch, block.rv)
    names = {sch.get(lp).loop_var.name for lp in reduced}
    spatial = [lp for lp in own_loops(sch, block.rv) if sch.get(lp).loop_var.name not in names]
    if GROUP in sch.get(block.rv).annotations:
        spatial = spatial[1:]  # the loop over the units stays outside
    sch.reorder(*reduced, *spatial)
    for loop in reduced[:-1]:
        if loop_extent(sch, loop) > 1:
            sch.annotate(loop, LOOP, 1)
