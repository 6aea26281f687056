# SPDX-License-Identifier: Apache-2.0
"""Gathers (embedding lookups) with elementwise work after them: whole rows of the table at a time."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import BlockInfo, collect, leaf_blocks, uses
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.row_chain import (
    attach_producers,
    decide_groups,
    decide_rows,
    decide_units,
    map_chain,
    most_elements,
    output_blocks,
    rows_per_tile,
    tile_elements,
)
from uir_tvm.schedule.tile_facts import space_of
from uir_tvm.schedules.demo import from_relax


def matches(sch: Schedule) -> bool:
    """An injective function with a data-dependent index."""
    blocks = leaf_blocks(sch)
    return all(b.is_injective for b in blocks) and any(_has_indirect_load(b) for b in blocks)


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """Rows dealt to units, every row whole."""
    prepare(sch)
    blocks = leaf_blocks(sch)
    root = output_blocks(sch)[-1]
    *outer, cols = root.spatial
    r = rows_per_tile(tile_elements(hw, blocks), outer[-1] if outer else 1, cols)
    rows = math.prod(outer)
    work = space_of(hw).fetched_work if any(map(_fetches_elements, blocks)) else 1
    groups = decide_groups(sch, hw, blocks, decisions, rows // r, work=work)
    units = decide_units(sch, hw, decisions)
    r = decide_rows(sch, root, rows, r, most_elements(hw, blocks) // cols, decisions)
    attach_producers(sch, map_chain(sch, hw, rows, (r, None), num_groups=groups, num_units=units))


def _places(block: BlockInfo) -> list[Any]:
    """The loads that say where others load."""
    loads = collect(block.stmt.body, tvm.ir.TensorLoad)
    return [place for load in loads for index in load.indices for place in collect(index, tvm.ir.TensorLoad)]


def _has_indirect_load(block: BlockInfo) -> bool:
    return bool(_places(block))


def _fetches_elements(block: BlockInfo) -> bool:
    """Whether the elements of a row have places of their own."""
    column = block.stmt.iter_vars[-1].var
    return any(uses(index, [column]) for place in _places(block) for index in place.indices)


def example() -> Any:
    """Token plus position embedding."""

    return from_relax(
        lambda table, ids, positions: op.add(op.take(table, ids, axis=0), positions),
        [(1000, 384), (4, 64), (64, 384)],
        lambda table, ids, positions: table[ids] + positions,
        dtypes=["float32", "int64", "float32"],
        high=lambda shapes: shapes[0][0],
    )


RECIPE = Recipe(
    "gather",
    matches,
    schedule,
    example,
    reason="Whole rows are fetched at places that are data.",
)
