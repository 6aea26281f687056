# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators: every output element depends on one element of each operand (or a broadcast one).

Also concatenation, slicing and padding, whose pieces become guarded moves.  Where all operands have
the output's own layout the loops are one flat run of elements; otherwise rows and columns are kept,
so that a broadcast operand is read once per tile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm
from tvm.relax import op
from tvm.s_tir import Schedule
from tvm_ffi.structural import structural_equal
from uir_tvm.hardware.last_cache import last_cache_bytes
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import (
    BlockInfo,
    collect,
    dtype_bytes,
    is_open_loop,
    leaf_blocks,
    loop_extent,
    uses,
)
from uir_tvm.schedule.decisions import OWN, Decisions, tile_sizes
from uir_tvm.schedule.distant_runs import distant_runs, walk_distant_runs
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.representative import is_open
from uir_tvm.schedule.row_chain import (
    attach_producers,
    column_tile,
    decide_groups,
    decide_rows,
    decide_units,
    line_of,
    map_chain,
    most_elements,
    output_blocks,
    row_loops_of,
    rows_per_tile,
    tile_elements,
)
from uir_tvm.schedule.tile_facts import busy_units, even_tile, space_of, spread_rows
from uir_tvm.schedules import transpose
from uir_tvm.schedules.demo import from_relax

#: Bytes of rows that are made at once where their operands lie in pages of their own: half a page, where no
#: processor says otherwise.
RUN = 2048
#: What part of its work the busiest unit keeps at most where tiles get fewer rows: more take more starts.
WORTH_SPREADING = 0.75


def matches(sch: Schedule) -> bool:
    """There are blocks, and none reduces."""
    blocks = leaf_blocks(sch)
    return bool(blocks) and all(b.is_injective for b in blocks)


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """Tile rows and columns (or the flat run), deal tiles to the units."""
    prepare(sch, any_size=space_of(hw).least_tile > 0)
    blocks = leaf_blocks(sch)
    roots = output_blocks(sch)
    root = roots[-1]
    elements = tile_elements(hw, blocks)
    units = decide_units(sch, hw, decisions)
    elements = _enough_tiles(hw, root, elements)
    most = most_elements(hw, blocks)
    flat = all(_is_flat(b) for b in blocks) and len({b.extents for b in roots}) == 1
    flat = flat and not _opens_inside(sch, root)
    short = transpose.short_rows(root, hw) if len(blocks) == 1 else None
    if short is not None and decisions.fork("as_elements", (1, 0), 1):
        transpose.schedule_tiles(sch, hw, root, short, decisions, root.extents[-1])
        return
    turned = _band(root, hw) if space_of(hw).bands and len(blocks) == 1 else None
    apart = None if turned is not None or len(blocks) > 1 else distant_runs(root, hw, flat)
    if apart is not None and decisions.fork("apart", (1, 0), 1):
        walk_distant_runs(sch, root, apart)
        groups = decide_groups(sch, hw, blocks, decisions, apart.tiles)
        nest = map_chain(
            sch, hw, apart.rows, apart.tile, num_groups=groups, num_units=units, split_columns=True
        )
    elif decisions.fork("flat", (1, 0) if flat and len(root.spatial) > 1 else (int(flat),), int(flat)):
        total = math.prod(root.spatial)
        own = _flat_tile(hw, blocks, total, min(elements, space_of(hw).flat_tile))
        groups = decide_groups(sch, hw, blocks, decisions, math.ceil(total / own))
        columns = decisions.choose(sch, "tile_columns", tile_sizes(total, own, most, line_of(hw)), own)
        nest = map_chain(sch, hw, 1, (1, columns), num_groups=groups, num_units=units, split_columns=True)
    else:
        if turned is not None:
            _walk_bands(sch, root, turned)
            blocks, root = leaf_blocks(sch), output_blocks(sch)[-1]
        if space_of(hw).even and len(blocks) == 1 and (longer := _longer_rows(root, hw)) is not None:
            _walk_last(sch, root, longer)
            blocks, root = leaf_blocks(sch), output_blocks(sch)[-1]
        if len(blocks) == 1 and _rows_share_lines(hw, root):
            elements *= space_of(hw).line_rounds
        rows, (r, c) = _row_tile(hw, root, elements)
        groups = decide_groups(sch, hw, blocks, decisions, rows // r * math.ceil(root.spatial[-1] / c))
        # what is the same for all rows stays where it is while these go by
        again = len(root.spatial) > 1 and rows > 1 and _is_same_for_rows(root)
        columns_first = decisions.fork("columns_first", (0, 1) if again else (0,), 0) > 0
        c = decisions.choose(sch, "tile_columns", tile_sizes(root.spatial[-1], c, most, line_of(hw)), c)
        r = decide_rows(sch, root, rows, r, most // c, decisions)
        nest = map_chain(
            sch,
            hw,
            rows,
            (r, c),
            num_groups=groups,
            num_units=units,
            split_columns=True,
            columns_first=columns_first,
        )
    attach_producers(sch, nest)


def _flat_tile(hw: HardwareModel, blocks: list[BlockInfo], total: int, limit: int) -> int:
    """Elements of a tile of a flat run."""
    if not space_of(hw).even:
        return column_tile(hw, total, limit)
    narrow = min(dtype_bytes(r.source.ty.dtype) for b in blocks for r in (*b.stmt.reads, *b.stmt.writes))
    return even_tile(hw, total, limit, narrow)


def _enough_tiles(hw: HardwareModel, root: BlockInfo, elements: int) -> int:
    """Elements of a tile: fewer where units would be idle, but one wide access each at least."""
    least = space_of(hw).least_tile
    if not least:
        return elements
    elements = 1 << (elements * 2 // 3).bit_length()  # the power of two that is nearest
    while elements > least and math.prod(root.spatial) < elements * busy_units(hw):
        elements //= 2
    return elements


def _rows_share_lines(hw: HardwareModel, root: BlockInfo) -> bool:
    """Whether rows of a result that no cache holds are no whole lines, and a vector is a line.

    Then lines are put together in registers where rows of one tile share them, and tiles may be larger than a
    core's first cache: what two tiles share costs more.  A concatenation is put together in that cache.
    """
    if _has_pieces(root):
        return False
    line, cache = int(hw.figures.get("line_bytes", 0)), last_cache_bytes(hw)
    size = dtype_bytes(root.stmt.writes[0].source.ty.dtype)
    if cache is None or int(hw.vector_bytes) != line or size < 2 or min(root.spatial, default=-1) < 1:
        return False
    return root.spatial[-1] * size % line != 0 and math.prod(root.spatial) * size > cache


def _has_pieces(root: BlockInfo) -> bool:
    """Whether some elements are of one operand, and others of another: a choice whose sides both load."""
    calls = collect(root.stmt.body, tvm.ir.Call)
    choices = [call for call in calls if str(getattr(call.op, "name", "")).endswith("if_then_else")]
    return any(all(collect(side, tvm.ir.TensorLoad) for side in choice.args[1:]) for choice in choices)


def _row_tile(hw: HardwareModel, root: BlockInfo, elements: int) -> tuple[int, tuple[int, int]]:
    """(rows, tile) for a block of two or more dimensions."""
    *outer, cols = root.spatial
    rows = 1
    for extent in outer:
        rows *= extent
    least = space_of(hw).least_tile
    narrow = least and len(outer) > 0 and _is_same_for_rows(root)
    c = column_tile(hw, cols, min(elements, least) if narrow else elements)
    row = outer[-1] if outer else 1
    assert row_loops_of(root, rows) is not None
    r = rows_per_tile(elements, row, c)
    if space_of(hw).even:
        r = spread_rows(r, row, rows * math.ceil(cols / c), busy_units(hw), WORTH_SPREADING)
    return rows, (r, c)


def _band(block: BlockInfo, hw: HardwareModel) -> int | None:
    """Rows of a band, where rows that are neighbours lie far apart in an operand.

    A result (.., N, M, c) of an operand (.., M, N, c): along its own rows the result takes c elements of
    every line of the operand, or of every page, so that each line comes once for every row that it holds, and
    nothing that is read follows what was read before.  A band is one or two lines of rows that are much
    shorter than a line; it is a `RUN` of rows of whole lines, where a core's own cache does not hold the
    operand.  None: it is no such result, a size is open, or M has no such divisor.
    """
    extents = [iv.dom.extent for iv in block.stmt.iter_vars]
    if len(extents) < 3 or any(map(is_open, extents)):
        return None
    *_, before, row, column = [iv.var for iv in block.stmt.iter_vars]
    turned = [
        load.source
        for load in collect(block.stmt.body, tvm.ir.TensorLoad)
        if len(load.indices) > 2
        and load.indices[-1].same_as(column)
        and load.indices[-2].same_as(before)
        and any(uses(index, [row]) for index in load.indices[:-2])
    ]
    widths = {block.spatial[-1] * dtype_bytes(source.ty.dtype) for source in turned}
    if len(widths) != 1:
        return None
    (width,), rows = widths, block.spatial[-2]
    line = int(hw.figures.get("line_bytes", 64))
    far = math.prod(block.spatial[:-1]) * width > int(hw.figures.get("l2_bytes", hw.reg_bytes))
    if 4 * width <= line:
        least, most = line // width, 2 * line // width
    elif width >= line and far:
        least, most = 2, _run(block, hw) // width
    else:
        return None
    return max((n for n in range(least, most + 1) if n < rows and rows % n == 0), default=None)


def _run(block: BlockInfo, hw: HardwareModel) -> int:
    """Bytes of rows that are made at once: what a processor wants where a cache holds the result."""
    return RUN if transpose.leaves_caches(block, hw) else int(hw.figures.get("band_bytes", RUN))


def _walk_bands(sch: Schedule, block: BlockInfo, band: int) -> None:
    """Cut the rows into bands, and walk all of the dimension before within each.

    Before::

        for .., i, j, k in grid(.., N, M, c): result[.., i, j, k] = operand[.., j, i, k]

    After: what the lines of a band hold is used while they are in the first cache::

        for .., jo, i, ji, k in grid(.., M / band, N, band, c): the same, with j = jo * band + ji
    """

    def banded(*index: Any) -> list[Any]:
        return [*index[:-3], index[-2] // band, index[-3], index[-2] % band, index[-1]]

    sch.transform_block_layout(block.rv, tvm.tirx.IndexMap.from_func(banded, ndim=len(block.spatial)))


def _longer_rows(block: BlockInfo, hw: HardwareModel) -> int | None:
    """The loop whose rows make wider transfers than those of the last one before the columns; None: no other.

    A result (.., N, M, c) of an operand (.., M, N, c): a tile of rows along M is one run of the result, one
    along N is one run of the operand. Where M rows are less than a transfer, N is longer, and every unit has
    such rows, tiles go along N.
    """
    *outer, columns = block.spatial
    if len(outer) < 2 or min(outer) < 2:
        return None
    variables = [iv.var for iv in block.stmt.iter_vars]
    width = max(dtype_bytes(r.source.ty.dtype) for r in (*block.stmt.reads, *block.stmt.writes))
    if outer[-1] * columns * width >= int(hw.figures.get("transfer_bytes", 0)):
        return None
    for load in collect(block.stmt.body, tvm.ir.TensorLoad):
        place = next((k for k, var in enumerate(variables[:-2]) if _is_row(load, var, variables[-1])), None)
        if place is None or outer[place] <= outer[-1]:
            continue
        if math.prod(outer) // outer[place] >= busy_units(hw):
            return place
    return None


def _is_row(load: Any, row: Any, column: Any) -> bool:
    """Whether a variable walks the rows of what is loaded, and another their columns."""
    return len(load.indices) > 1 and load.indices[-1].same_as(column) and load.indices[-2].same_as(row)


def _walk_last(sch: Schedule, block: BlockInfo, place: int) -> None:
    """Make a loop the last one before the columns.

    Before::

        for i, j, k in grid(N, M, c): result[i, j, k] = operand[j, i, k]

    After::

        for j, i, k in grid(M, N, c): the same
    """

    def moved(*index: Any) -> list[Any]:
        return [*index[:place], *index[place + 1 : -1], index[place], index[-1]]

    sch.transform_block_layout(block.rv, tvm.tirx.IndexMap.from_func(moved, ndim=len(block.spatial)))


def _is_same_for_rows(block: BlockInfo) -> bool:
    """Whether an operand of the columns is the same for all rows of a tile: many rows use what is loaded."""
    *_, row, column = [iv.var for iv in block.stmt.iter_vars]
    loads = collect(block.stmt.body, tvm.ir.TensorLoad)
    return any(
        any(uses(i, [column]) for i in load.indices) and not any(uses(i, [row]) for i in load.indices)
        for load in loads
    )


def _is_flat(block: BlockInfo) -> bool:
    """Whether every access has the indices of the store, so that one linear index serves all."""
    stores = collect(block.stmt.body, tvm.tirx.BufferStore)
    loads = collect(block.stmt.body, tvm.ir.TensorLoad)
    if len(stores) != 1:
        return False
    wanted, shape = stores[0].indices, stores[0].buffer.shape
    return all(
        len(ld.indices) == len(wanted)
        and all(a.same_as(b) for a, b in zip(ld.indices, wanted, strict=True))
        and structural_equal(ld.source.ty.shape, shape)
        for ld in loads
    )


def _opens_inside(sch: Schedule, block: BlockInfo) -> bool:
    """Whether a dimension is open that others are outside of: the parts of one index are then not affine."""
    loops = [loop for loop in sch.get_loops(block.rv) if loop_extent(sch, loop) != 1]
    return any(is_open_loop(sch, loop) for loop in loops[1:])


def example() -> Any:
    """gelu(x + bias) on (512, 768)."""
    from math import erf, sqrt

    def reference(x: Any, bias: Any) -> Any:
        y = x + bias
        return 0.5 * y * (1 + np.vectorize(erf)(y / sqrt(2)))

    return from_relax(lambda x, b: op.nn.gelu(op.add(x, b)), [(512, 768), (768,)], reference)


RECIPE = Recipe(
    "elementwise",
    matches,
    schedule,
    example,
    reason="Every element is read and written once.",
)
