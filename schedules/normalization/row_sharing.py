# SPDX-License-Identifier: Apache-2.0
"""How many units of a group share a reduction: as many as take the least modelled time.

A unit that has rows of its own waits for nobody, but few long rows leave most units idle, and a row that does
not fit a unit's memory is computed twice.  Units that share a row have parts of it, and pay for every
reduction: they meet, and hand their parts and the result around in sram.

The time is a roofline of the busiest unit, from the rates of the hardware model (`hardware.rates`): what it
computes and what it moves overlap but for the first and the last tile.  The cost of a shared reduction is
the model's figure ``group_reduce_cycles``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
from uir_tvm.hardware.rates import rates_of
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import BlockInfo, dtype_bytes
from uir_tvm.schedule.representative import usual_elements
from uir_tvm.schedule.tile_facts import groups_at_once, space_of, units_of

#: What walking a row again costs: a softmax computes half of its functions twice, and loads it twice.
AGAIN = 1.5
#: Sharing must save at least a tenth: what the model leaves out (meetings wait for the last) is against it.
LEAST_GAIN = 0.9


@attrs.frozen
class RowWork:
    """A chain of row-wise blocks.

    Attributes
    ----------
    rows, columns : int
        Of the reductions.
    operations : float
        Vector operations of an element of a row.
    bytes : float
        Moved between dram and the units for an element.
    reductions : int
        Of every row.
    walks : int
        How often a row is walked: by each reduction, and to make results of its length.
    """

    rows: int
    columns: int
    operations: float
    bytes: float
    reductions: int
    walks: int

    @staticmethod
    def of(hw: HardwareModel, blocks: Sequence[BlockInfo], rows: int, columns: int) -> RowWork:
        """What blocks do with rows of ``columns`` elements."""
        steps = rates_of(hw).steps["transcendental"]
        operations = sum(
            math.prod(b.extents) * (1 + b.flops + (steps if b.is_expensive else 0)) for b in blocks
        )
        made = {name for b in blocks for name in b.writes}
        used = {name for b in blocks for name in b.reads}
        moved = {
            r.source.name: usual_elements(r.source) * dtype_bytes(r.source.ty.dtype)
            for b in blocks
            for r in (*b.stmt.reads, *b.stmt.writes)
            if not (r.source.name in made and r.source.name in used)
        }
        elements = rows * columns
        reductions = sum(b.is_reduction for b in blocks)
        walks = reductions + any(not b.is_reduction and b.size >= elements for b in blocks)
        return RowWork(
            rows, columns, operations / elements, sum(moved.values()) / elements, reductions, walks
        )


def seconds(hw: HardwareModel, work: RowWork, size: int, chunks: int) -> float:
    """Modelled time of the busiest unit where ``size`` units share a row.

    Parameters
    ----------
    chunks : int
        In how many pieces a unit takes its part of a row; several are walked again.
    """
    figures = hw.figures
    groups = groups_at_once(hw, max(units_of(hw), size))
    sets = groups * max(units_of(hw), size) // size
    busy = min(work.rows, sets)
    turns = math.ceil(work.rows / sets)
    elements = turns * work.columns * (AGAIN if chunks > 1 and work.walks > 1 else 1.0)
    operations = float(rates_of(hw).operations.per_second or math.inf)
    unit = operations / (hw.num_groups * hw.num_units)
    shared = turns * work.reductions * float(figures.get("group_reduce_cycles", 0)) if size > 1 else 0.0
    computing = elements / size * work.operations / unit + shared / float(figures["clock_hz"])
    moving = elements * work.bytes / _rate(hw, busy, size)
    return max(computing, moving) + min(computing, moving) / (turns * chunks)


def column_seconds(hw: HardwareModel, work: RowWork, columns: int, size: int, width: int) -> float:
    """Modelled time where sets of ``size`` units add up tiles of ``width`` columns, each some of the rows.

    Parameters
    ----------
    work : RowWork
        Its rows are the results, its columns what is reduced for each.
    columns : int
        Of the results, side by side in memory.
    """
    held = max(units_of(hw), size)
    sets = groups_at_once(hw, held) * held // size
    tiles = work.rows // columns * math.ceil(columns / width)
    turns, busy = math.ceil(tiles / sets), min(tiles, sets)
    share = turns * math.ceil(work.columns / size)
    clock = float(hw.figures["clock_hz"])
    unit = float(rates_of(hw).operations.per_second or math.inf) / (hw.num_groups * hw.num_units)
    shared = turns * float(hw.figures.get("group_reduce_cycles", 0)) / clock if size > 1 else 0.0
    moving = share * size * width * work.bytes / _rate(hw, busy, size)
    if width < columns:
        moving += share * float(hw.figures.get("segment_cycles", 0)) / clock
    return max(share * width * work.operations / unit, moving) + shared


def has_times(hw: HardwareModel) -> bool:
    """Whether the hardware model has the figures that times need."""
    return "clock_hz" in hw.figures and "dram_bytes_per_second" in hw.figures


def _rate(hw: HardwareModel, busy: int, size: int) -> float:
    """Bytes per second of each of ``busy`` sets of units that move at once."""
    dram = float(hw.figures["dram_bytes_per_second"])
    group = float(hw.figures.get("cluster_bytes_per_second", dram))
    groups = min(hw.num_groups, busy)
    # a unit alone reaches half of what its group does
    return min(dram / busy, group * groups / busy, group * min(1.0, size / 2))


def members(hw: HardwareModel, work: RowWork, elements: int, own: bool) -> int:
    """How many units share a row; 1: each has rows of its own.

    Parameters
    ----------
    elements : int
        Of a row that a unit holds.
    own : bool
        Whether it holds a whole row.
    """
    sets = [k for k in space_of(hw).sets if k > 1 and k <= hw.num_units and work.columns >= k]
    if not sets or not has_times(hw):
        return 1
    times = {k: seconds(hw, work, k, math.ceil(work.columns / k / elements)) for k in sets}
    best = min(sets, key=lambda k: times[k])
    alone = seconds(hw, work, 1, 1 if own else max(2, math.ceil(work.columns / elements)))
    return best if times[best] < LEAST_GAIN * alone else 1
