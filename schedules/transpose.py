# SPDX-License-Identifier: Apache-2.0
"""Transposes (with elementwise work around them): square tiles, so that both sides move whole lines.

The loop that walks the operand's contiguous dimension becomes the tile's rows, the output's last
dimension its columns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.errors import RecipeError
from uir_tvm.hardware.last_cache import last_cache_bytes
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import BlockInfo, collect, dtype_bytes, leaf_blocks, loop_extent
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.map_to_units import map_to_units
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.representative import is_open
from uir_tvm.schedule.row_chain import (
    Nest,
    attach_producers,
    decide_groups,
    decide_units,
    most_elements,
    output_blocks,
    tile_sides,
)
from uir_tvm.schedule.tile_facts import space_of
from uir_tvm.schedules.demo import from_relax

#: Lines of a row of the result that go to memory together, where tiles are put together in the cache.
RUN_LINES = 4
#: Rows of the operand that are read beside each other at most for lines that go to memory one by one.
SINGLE_ROWS = 16


def matches(sch: Schedule) -> bool:
    """An injective function whose widest operand is contiguous along another loop than the result."""
    blocks = leaf_blocks(sch)
    return all(b.is_injective for b in blocks) and any(_row_variable(b) is not None for b in blocks)


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """Square tiles over the two contiguous dimensions.

    Raises
    ------
    RecipeError
        After inlining no single block transposes.
    """
    prepare(sch)
    roots = output_blocks(sch)
    root = roots[-1]
    var = _row_variable(root)
    if len(roots) != 1 or var is None:
        raise RecipeError(
            "The transposition is not in the output block alone.",
            need="one output, transposed",
        )
    schedule_tiles(sch, hw, root, var, decisions)


def schedule_tiles(
    sch: Schedule, hw: HardwareModel, root: BlockInfo, var: int, decisions: Decisions, elements: int = 1
) -> None:
    """Square tiles of the loop ``var`` and the last one.

    ``elements``: of the rows that change places, the loop behind these, all of which every tile goes through.
    """
    loops = list(sch.get_loops(root.rv))
    each = [loops.pop()] if elements > 1 else []
    row = loops.pop(var)
    sch.reorder(*loops[:-1], row, loops[-1], *each)
    width = elements * max(dtype_bytes(r.source.ty.dtype) for r in (*root.stmt.reads, *root.stmt.writes))
    blocks = leaf_blocks(sch)
    m, n = loop_extent(sch, row), loop_extent(sch, loops[-1])
    r, c = (min(own, extent) for own, extent in zip(space_of(hw).transposed[width], (m, n), strict=True))
    along = leaves_caches(root, hw)
    if along:
        is_known = not any(is_open(iv.dom.extent) for iv in root.stmt.iter_vars)
        apart = math.prod(root.spatial[var + 1 :]) * width if root.is_copy and is_known else 0
        r, c = _lines(hw, (m, n), (r, c), width, apart)
    most = most_elements(hw, blocks)
    tiles = math.prod(root.spatial) // (m * n * elements) * math.ceil(m / r) * math.ceil(n / c)
    work = max(1, space_of(hw).turned_work // elements)
    groups = decide_groups(sch, hw, blocks, decisions, tiles, work=work)
    units = decide_units(sch, hw, decisions)
    columns_first = decisions.fork("columns_first", (0, 1), int(along)) > 0
    tile = (
        decisions.choose(sch, "tile_rows", tile_sides(m, r, most // c), r),
        decisions.choose(sch, "tile_columns", tile_sides(n, c, most // r), c),
    )
    pid, lid, *_ = map_to_units(
        sch,
        root.rv,
        groups,
        units,
        tile,
        row_loops=len(loops),
        split_columns=True,
        columns_first=columns_first,
        repeated=len(each),
        hardware=hw,
    )
    attach_producers(sch, Nest(pid, lid, (root,)))


def short_rows(block: BlockInfo, hw: HardwareModel) -> int | None:
    """The loop along which an operand has the rows that a copy turns, where a row is as one element.

    None: it is no such copy.
    A result (.., N, M, c) of an operand (.., M, N, c), with rows of 2, 4 or 8 bytes, all that there is along
    their dimension: a matrix of M by N elements of so many bytes, transposed.
    """
    loads = collect(block.stmt.body, tvm.ir.TensorLoad)
    stores = collect(block.stmt.body, tvm.tirx.BufferStore)
    if not block.is_copy or len(loads) != 1 or len(stores) != 1 or min(block.extents, default=-1) < 1:
        return None
    (load,), elements, extents = loads, block.extents[-1], block.extents
    variables = [iv.var for iv in block.stmt.iter_vars]
    size = elements * dtype_bytes(load.source.ty.dtype)
    if elements < 2 or size not in (2, 4, 8) or size > space_of(hw).wide_elements or len(load.indices) < 3:
        return None
    shapes = [load.source.ty.shape, stores[0].buffer.shape]
    whole = all(isinstance(shape[-1], tvm.tirx.IntImm) and int(shape[-1]) == elements for shape in shapes)
    if not whole or not load.indices[-1].same_as(variables[-1]):
        return None
    place = next((k for k, v in enumerate(variables[:-2]) if load.indices[-2].same_as(v)), None)
    lanes = int(hw.vector_bytes) // size
    if place is None or min(extents[place], extents[-2]) < lanes or not _mentions(load, variables[-2]):
        return None
    return place


def leaves_caches(root: BlockInfo, hw: HardwareModel) -> bool:
    """Whether the result is more than the last cache holds, and its lines go to memory as they are written.

    Then tiles follow each other along the operand's rows, for which memory and its pages are read in order;
    along the result's rows each next tile would read other pages.
    """
    (write,) = root.stmt.writes
    cache = last_cache_bytes(hw)
    return cache is not None and math.prod(root.spatial) * dtype_bytes(write.source.ty.dtype) > cache


def _lines(
    hw: HardwareModel, sides: tuple[int, int], own: tuple[int, int], width: int, apart: int
) -> tuple[int, int]:
    """Rows and columns of a tile that goes to memory by whole lines.

    One line of the result at a time where memory takes such lines as fast as runs of them, else several,
    which are put together in the cache.  As many rows as fit: whole lines of the operand, or vectors where
    lines divide no row of it; the tile's own rows where neither do.

    Parameters
    ----------
    sides : (int, int)
        All rows and columns.
    own : (int, int)
        Those of a tile that stays in the caches.
    width : int
        Bytes of an element.
    apart : int
        Of a copy of known sizes, bytes from one row of the result to the next; 0 of others, whose columns
        stay as they are.
    """
    (rows, cols), (least, columns) = sides, own
    line = max(1, int(hw.figures.get("line_bytes", 0)) // width)
    lanes = max(1, int(hw.vector_bytes) // width)
    machine, space = str(hw.figures.get("machine", "")), space_of(hw)
    pitch, is_whole = space.single_lines.get(machine, 0), lanes >= line
    if pitch and apart:
        is_near = is_whole and apart <= space.whole_lines.get(machine, 0)
        is_single = line <= SINGLE_ROWS and (apart % pitch != 0 or is_near)
        # vectors of a whole line are not put together in the cache
        run = line if is_single else columns if is_whole else max(columns, RUN_LINES * line)
        columns = run if cols % run == 0 else columns
    most = int(hw.figures.get("tile_bytes", 0)) // (columns * width)
    tall = (r for step in (line, lanes) for r in range(most // step * step, least, -step))
    return next((r for r in tall if rows % r == 0), least), columns


def _row_variable(block: BlockInfo) -> int | None:
    """Which iteration variable walks the contiguous dimension of a transposed operand."""
    variables = [iv.var for iv in block.stmt.iter_vars]
    if len(variables) < 2 or block.extents[-1] == 1:
        return None
    for load in collect(block.stmt.body, tvm.ir.TensorLoad):
        for position, var in enumerate(variables[:-1]):
            if (
                block.extents[position] > 1
                and len(load.indices) > 0
                and load.indices[-1].same_as(var)
                and _mentions(load, variables[-1])
            ):
                return position
    return None


def _mentions(load: Any, var: Any) -> bool:
    return any(index.same_as(var) for index in load.indices)


def example() -> Any:
    """exp(x) with its last two dimensions swapped, (20, 160, 170)."""

    return from_relax(
        lambda x: op.permute_dims(op.exp(x), [0, 2, 1]),
        [(20, 160, 170)],
        lambda x: np.exp(x).transpose(0, 2, 1),
    )


RECIPE = Recipe(
    "transpose",
    matches,
    schedule,
    example,
    reason="Square tiles move whole lines on both sides.",
)
