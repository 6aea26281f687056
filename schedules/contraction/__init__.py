# SPDX-License-Identifier: Apache-2.0
"""Matrix products that no library takes: register tiles, the contracted dimension in serial chunks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.errors import RecipeError
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import CONTRACT, LOOP
from uir_tvm.schedule.blocks import BlockInfo, leaf_blocks, loop_extent, reduction_blocks, reduction_loops
from uir_tvm.schedule.decisions import OWN, Decisions, near, rv_of
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.row_chain import (
    attach_producers,
    decide_groups,
    decide_units,
    map_chain,
    output_blocks,
)
from uir_tvm.schedule.smaller import shrink_of, smaller_product
from uir_tvm.schedule.tile_facts import product_groups
from uir_tvm.schedules.contraction.packed_product import is_packed, packed_product
from uir_tvm.schedules.contraction.place_major_product import is_place_major, one_token, place_major_product
from uir_tvm.schedules.contraction.shared_product import has_tile, is_alone, share_product, space_for
from uir_tvm.schedules.demo import from_relax

TILE = (8, 64)
CHUNK = 64
#: Limits of other tiles (rows, columns) and chunks.
LEAST_TILE, MOST_TILE = (1, 16), (64, 256)
LEAST_CHUNK, MOST_CHUNK = 16, 256


def matches(sch: Schedule) -> bool:
    """One reduction, and it multiplies and adds two operands over one variable, or unpacks one of them."""
    reductions = reduction_blocks(sch)
    if is_place_major(sch):
        return True
    return len(reductions) == 1 and (_is_product(reductions[0]) or is_packed(sch))


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """Output tiles over units, the accumulator in reg, the epilogue on the tile.

    Where the units of a group share tiles (`uir_tvm.schedules.contraction.shared_product`), both operands
    are staged in sram for all of them.

    Returns
    -------
    Schedule
        ``sch``, or one of a rewritten function (`uir_tvm.schedules.contraction.group_sums`).

    Raises
    ------
    RecipeError
        The product's shape is not that of the output.
    """
    if is_place_major(sch):
        return place_major_product(sch, hw, decisions)
    prepare(sch)
    root = output_blocks(sch)[-1]
    (product,) = reduction_blocks(sch)
    if math.prod(root.spatial) != math.prod(product.spatial) or len(root.spatial) < 2:
        raise RecipeError(
            "The product does not have the output's shape.",
            need=f"{product.spatial}",
            limit=f"{root.spatial}",
        )
    if is_packed(sch):
        packed_product(sch, hw, root, product, decisions)
        return sch
    space = space_for(hw)
    if space is not None and is_alone(sch, root, product) and has_tile(sch, hw, product, space):
        if decisions.fork("staged", (0, 1), int(space.usual)):
            share_product(sch, hw, root, product, space, decisions)
            return sch
    _register_tiles(sch, hw, root, product, decisions)
    return sch


def _register_tiles(
    sch: Schedule, hw: HardwareModel, root: BlockInfo, product: BlockInfo, decisions: Decisions
) -> None:
    """Each unit has tiles of its own, and brings their operands itself."""
    *outer, row, column = root.spatial
    # with several products in a row units would come to another one with every tile
    order = (0, 1) if math.prod(outer) == 1 < row else (0,)
    columns_first = decisions.fork("columns_first", order, 0) > 0
    tile, chunk = smaller_product(TILE, CHUNK, shrink_of(hw))
    tiles = math.prod(outer) * math.ceil(row / tile[0]) * math.ceil(column / tile[1])
    groups = decide_groups(sch, hw, leaf_blocks(sch), decisions, tiles, product_groups(hw))
    units = decide_units(sch, hw, decisions)
    own = (min(tile[0], row), min(tile[1], column))
    sizes = near(own[0], min(MOST_TILE[0], row), LEAST_TILE[0])
    rows = decisions.choose(
        sch, "tile_rows", [n for n in sizes if n == own[0] or _fits(hw, n, own[1], chunk)], own[0]
    )
    sizes = near(own[1], min(MOST_TILE[1], column), LEAST_TILE[1])
    columns = decisions.choose(
        sch, "tile_columns", [n for n in sizes if n == own[1] or _fits(hw, own[0], n, chunk)], own[1]
    )
    nest = map_chain(
        sch,
        hw,
        math.prod(outer) * row,
        (rows, columns),
        num_groups=groups,
        num_units=units,
        split_columns=True,
        columns_first=columns_first,
    )
    attach_producers(sch, nest)
    (loop,) = reduction_loops(sch, product.rv)
    extent = loop_extent(sch, loop)
    if extent > chunk:
        sizes = near(chunk, min(MOST_CHUNK, extent), LEAST_CHUNK)
        sizes = [n for n in sizes if n == chunk or _fits(hw, *own, n)]
        steps, _ = sch.split(loop, [None, rv_of(decisions.choose(sch, "chunk", sizes, chunk))])
        *_, row_loop, column_loop, _steps, _inner = sch.get_loops(product.rv)
        sch.reorder(steps, row_loop, column_loop)
        sch.annotate(steps, LOOP, 1)
    sch.annotate(product.rv, CONTRACT, 1)


def _fits(hw: HardwareModel, rows: int, columns: int, chunk: int) -> bool:
    """Whether a unit holds its operands and two results of 4 bytes: the sums, and what is made of them."""
    return 4 * (2 * rows * columns + (rows + columns) * chunk) <= hw.reg_bytes


def _is_product(block: BlockInfo) -> bool:
    store = block.stmt.body
    if not isinstance(store, tvm.tirx.BufferStore) or not isinstance(store.value, tvm.tirx.Add):
        return False
    return (
        isinstance(store.value.b, tvm.tirx.Mul)
        and len(block.reduction) == 1
        and len(block.spatial) >= 2
        and len(block.reads) == 2
    )


def example() -> Any:
    """relu(a @ b + bias), (48, 100) x (100, 72)."""

    return from_relax(
        lambda a, b, c: op.nn.relu(op.add(op.matmul(a, b), c)),
        [(48, 100), (100, 72), (72,)],
        lambda a, b, c: np.maximum(a @ b + c, 0),
    )


RECIPE = Recipe(
    "contraction",
    matches,
    schedule,
    example,
    reason="Tiles of both operands are used many times, on the matrix unit where there is one.",
    forms=({}, {"staged": (0,)}),
    apart=one_token,
)
