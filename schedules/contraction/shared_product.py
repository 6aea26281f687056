# SPDX-License-Identifier: Apache-2.0
"""Matrix products in tiles that the units of a group share: operands staged in sram, sums in registers.

Before::

    for i, j, k in grid(M, N, K): P[i, j] += A[i, k] * B[k, j]
    for i, j in grid(M, N): Y[i, j] = f(P[i, j])

After, with tiles of (bm, bn), depth bk, and (wr, wc) units::

    for p in M/bm * N/bn:                              # uir.parallel, uir.group: a group for every tile
      for ko in K/bk:                                  # uir.loop, uir.pipeline: loads run ahead
        for w in wr*wc: A.shared = A[its rows, ko]     # uir.group: each unit brings some rows
        for w in wr*wc: B.shared = B[its rows, ko]
        for w in wr*wc: P.local[its part] += A.shared * B.shared     # uir.contract
      for w in wr*wc: Y[its part] = f(P.local)

Which tiles there are is data, by kind of hardware.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import CONTRACT, GROUP, LOOP, PARALLEL, parallel_value
from uir_tvm.schedule.blocks import (
    REDUCTION,
    SPATIAL,
    BlockInfo,
    dtype_bytes,
    leaf_blocks,
    loop_extent,
    reduction_loops,
    uses,
)
from uir_tvm.schedule.decisions import OWN, Decisions, near, rv_of
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedule.tile_facts import groups_at_once, space_of
from uir_tvm.target_facts import Facts


@attrs.frozen
class ProductTile:
    """What the units of a group compute together: rows and columns, and how many units share each."""

    rows: int
    cols: int
    row_units: int
    col_units: int

    @property
    def units(self) -> int:
        """How many units a group has."""
        return self.row_units * self.col_units


@attrs.frozen
class JointUnits:
    """Products that neighbouring units make by one instruction, on an architecture that has such.

    Parameters
    ----------
    units : Mapping[tuple[int, int], int]
        Rows and columns of a tile -> units, each of which has some rows and all columns.
    either_way : frozenset of str
        dtypes whose second factor may lie in memory with its contracted dimension last or not.
    along : frozenset of str
        dtypes for which that dimension is the last one.
    """

    units: Mapping[tuple[int, int], int]
    either_way: frozenset[str]
    along: frozenset[str]


@attrs.frozen
class ProductSpace:
    """The products of one kind of hardware.

    Parameters
    ----------
    tiles : tuple of ProductTile
        Largest first: the first that fits the result and gives every processor a group is taken.
    depth : Mapping[int, int]
        How much of the contracted dimension is staged at once, by bytes of an operand's element: rows of
        operands that shared memory serves without bank conflicts, steps of a matrix instruction.
    least_depth_bytes : int
        Bytes of the contracted dimension that one matrix instruction takes.
    stages : int
        Iterations in flight.
    joint : Mapping[str, JointUnits]
        By architecture: how other units share a tile where neighbours make its product together.
    others : tuple of ProductTile
        Tiles that no rule takes, to choose from beside ``tiles``.
    usual : bool
        Whether units share tiles unless that is decided otherwise.
    """

    tiles: tuple[ProductTile, ...]
    depth: Mapping[int, int]
    least_depth_bytes: int
    stages: int
    joint: Mapping[str, JointUnits] = attrs.field(factory=dict)
    others: tuple[ProductTile, ...] = ()
    usual: bool = True


#: Kind of hardware -> its products (`uir_tvm.target.record`).
PRODUCT_SPACES: Mapping[str, ProductSpace] = Facts("product_space")


def space_for(hw: HardwareModel) -> ProductSpace | None:
    """The products of a hardware model's kind; None where its units cannot share tiles."""
    return PRODUCT_SPACES.get(str(hw.kind))


#: Tiles to choose from at most, depths and stages.
MOST_TILES, IN_FLIGHT = 6, (2, 3, 4)
#: A unit's sums, and two results of its epilogue, are in registers at once.
HELD = 3


def possible_tiles(hw: HardwareModel, tiles: Sequence[ProductTile], sum_bytes: int = 4) -> list[ProductTile]:
    """Those whose units a group has, with registers for their sums."""
    return [
        tile
        for tile in tiles
        if tile.units <= hw.num_units
        and HELD * tile.rows * tile.cols // tile.units * sum_bytes <= hw.reg_bytes
    ]


def has_tile(sch: Schedule, hw: HardwareModel, product: BlockInfo, space: ProductSpace) -> bool:
    """Whether units of the hardware hold their part of any tile."""
    written = sch.get(product.rv).writes[0].source
    return bool(possible_tiles(hw, space.tiles, dtype_bytes(written.ty.dtype)))


def decide_tile(
    space: ProductSpace,
    hw: HardwareModel,
    own: ProductTile,
    shape: tuple[int, int],
    sum_bytes: int,
    decisions: Decisions,
) -> ProductTile:
    """The tile ``own``, or one near it in size and form that a result of ``shape`` fills by half.

    What is decided is a place in ``tiles + others``.
    """
    tiles = (*space.tiles, *space.others)
    fitting = [
        t for t in possible_tiles(hw, tiles, sum_bytes) if t.rows < 2 * shape[0] and t.cols < 2 * shape[1]
    ]
    far = {
        tiles.index(tile): abs(math.log2(tile.rows / own.rows)) + abs(math.log2(tile.cols / own.cols))
        for tile in (own, *fitting)
    }
    candidates = sorted(far, key=lambda place: (far[place], place))[:MOST_TILES]
    return tiles[decisions.fork("tile", candidates, tiles.index(own))]


def choose(
    space: ProductSpace, hw: HardwareModel, outer: int, rows: int, cols: int, sum_bytes: int = 4
) -> ProductTile:
    """The tile for ``outer`` results of (rows, cols): no larger than they are, groups for all processors.

    Parameters
    ----------
    sum_bytes : int
        Bytes of one sum; a unit's part of the tile fits its registers.
    """
    possible = possible_tiles(hw, space.tiles, sum_bytes)
    fitting = [tile for tile in possible if tile.rows < 2 * rows and tile.cols < 2 * cols]
    processors = int(hw.figures.get("sms", hw.num_groups))
    enough = [
        tile
        for tile in fitting
        if outer * math.ceil(rows / tile.rows) * math.ceil(cols / tile.cols) >= processors
    ]
    own = (enough or (fitting or possible)[-1:])[0]
    # where memory lacks room: the first that is so many times smaller, else the smallest there is
    most = own.rows * own.cols // shrink_of(hw)
    smallest = min((own, *possible), key=lambda tile: tile.rows * tile.cols)
    return next((tile for tile in (own, *possible) if tile.rows * tile.cols <= most), smallest)


def with_joint(space: ProductSpace, hw: HardwareModel, dtype: str, along: bool) -> ProductSpace:
    """The space for factors of a dtype; ``along``: the contracted dimension is the second one's last.

    Tiles whose product neighbouring units can make together are shared out as that needs it.
    """
    joint = space.joint.get(str(hw.figures.get("arch", "")))
    if joint is None or not (dtype in joint.either_way or (along and dtype in joint.along)):
        return space
    tiles = tuple(
        ProductTile(tile.rows, tile.cols, units, 1)
        if (units := joint.units.get((tile.rows, tile.cols))) is not None
        else tile
        for tile in space.tiles
    )
    return attrs.evolve(space, tiles=tiles)


def share_product(
    sch: Schedule,
    hw: HardwareModel,
    root: BlockInfo,
    product: BlockInfo,
    space: ProductSpace,
    decisions: Decisions = OWN,
) -> None:
    """Schedule a product and its epilogue ``root``, which has the same shape, for units that share tiles."""
    *_, rows, cols = root.spatial
    outer = math.prod(root.spatial[:-2])
    written = sch.get(product.rv).writes[0].source
    space = with_joint(space, hw, *_second_factor(sch, product))
    sum_bytes = dtype_bytes(written.ty.dtype)
    tile = choose(space, hw, outer, rows, cols, sum_bytes)
    tile = decide_tile(space, hw, tile, (rows, cols), sum_bytes, decisions)
    columns_first = decisions.fork("columns_first", (0, 1), 0) > 0
    at = _share_result(sch, hw, root, tile, columns_first)
    sch.compute_at(product.rv, at, preserve_unit_loops=True)
    sch.set_scope(product.rv, 0, "local")
    (contracted,) = reduction_loops(sch, product.rv)
    extent = loop_extent(sch, contracted)
    own, least = _depth(sch, space, product, extent)
    own = max(least, own // shrink_of(hw) // least * least)
    most = max(own, math.ceil(extent / least) * least)
    depth = decisions.choose(sch, "depth", near(own, min(4 * own, most), least), own)
    size = max(dtype_bytes(region.source.ty.dtype) for region in sch.get(product.rv).reads)
    # half of sram: what results exchange on their way to memory needs the rest
    room = hw.sram_bytes // 2 // ((tile.rows + tile.cols) * depth * size)
    steps = _split_sums(sch, product, tile, depth)
    for operand in range(len(sch.get(product.rv).reads)):
        _stage(sch, product, operand, steps, tile)
    if (stages := min(space.stages, room, loop_extent(sch, steps))) > 1:
        sch.pipeline(steps, decisions.choose(sch, "stages", [s for s in IN_FLIGHT if s <= room], stages))
    sch.annotate(product.rv, CONTRACT, 1)


def is_alone(sch: Schedule, root: BlockInfo, product: BlockInfo) -> bool:
    """Whether the function is a product of the result's shape and an epilogue, nothing else."""
    names = {block.name for block in leaf_blocks(sch)}
    return names == {root.name, product.name} and root.spatial == product.spatial and len(root.spatial) >= 2


def _second_factor(sch: Schedule, product: BlockInfo) -> tuple[str, bool]:
    """Its dtype (empty where factors differ), and whether its last dimension is the contracted one."""
    block = sch.get(product.rv)
    reduced = [iv.var for iv in block.iter_vars if int(iv.iter_type) == REDUCTION]
    column = [iv.var for iv in block.iter_vars if int(iv.iter_type) == SPATIAL][-1:]
    dtypes = {str(region.source.ty.dtype) for region in block.reads}
    second = [r for r in block.reads if any(uses(side.min, column) for side in r.region)]
    if len(dtypes) != 1 or len(second) != 1:
        return "", False
    return dtypes.pop(), uses(second[0].region[-1].min, reduced)


def _share_result(
    sch: Schedule, hw: HardwareModel, root: BlockInfo, tile: ProductTile, columns_first: bool
) -> Any:
    """The result's loops as tiles, one of a group each, whose parts its units have; gives that over tiles."""
    *outer, row, col = sch.get_loops(root.rv)
    row_tiles, row = sch.split(row, [None, tile.rows])
    col_tiles, col = sch.split(col, [None, tile.cols])
    row_unit, row = sch.split(row, [tile.row_units, None])
    col_unit, col = sch.split(col, [tile.col_units, None])
    tiles = [*outer, col_tiles, row_tiles] if columns_first else [*outer, row_tiles, col_tiles]
    sch.reorder(*tiles, row_unit, col_unit, row, col)
    parallel = sch.fuse(*tiles)
    units = sch.fuse(row_unit, col_unit)
    at, groups = parallel, loop_extent(sch, parallel)
    if space_of(hw).groups is None and groups > groups_at_once(hw, tile.units):
        # what runs at once takes the tiles one after the other
        groups = groups_at_once(hw, tile.units)
        parallel, at = sch.split(parallel, [groups, None])
        sch.annotate(at, LOOP, 1)
    sch.annotate(parallel, PARALLEL, parallel_value(groups, tile.units))
    sch.annotate(parallel, GROUP, tile.units)
    sch.annotate(units, GROUP, tile.units)
    return at


def _split_sums(sch: Schedule, product: BlockInfo, tile: ProductTile, depth: int) -> Any:
    """The product's loops: steps along the contracted dimension, the units' parts; gives the steps."""
    (contracted,) = reduction_loops(sch, product.rv)
    *_, row, col, _ = sch.get_loops(product.rv)
    # the parts of the result's loops, also where the result is smaller than a tile
    row_unit, row = sch.split(row, [tile.row_units, tile.rows // tile.row_units])
    col_unit, col = sch.split(col, [tile.col_units, tile.cols // tile.col_units])
    steps, inner = sch.split(contracted, [None, rv_of(depth)])
    sch.reorder(steps, row_unit, col_unit, row, col, inner)
    units = sch.fuse(row_unit, col_unit)
    sch.annotate(units, GROUP, tile.units)
    sch.annotate(steps, LOOP, 1)
    return steps


def _depth(sch: Schedule, space: ProductSpace, product: BlockInfo, extent: int) -> tuple[int, int]:
    """How much of the contracted dimension is staged at once, and that of the instructions it is made of."""
    size = max(dtype_bytes(region.source.ty.dtype) for region in sch.get(product.rv).reads)
    least = max(1, space.least_depth_bytes // size)
    return min(space.depth.get(size, least), math.ceil(extent / least) * least), least


def _stage(sch: Schedule, product: BlockInfo, operand: int, steps: Any, tile: ProductTile) -> None:
    """Bring an operand's tile to sram, its rows shared out."""
    staged = sch.cache_read(product.rv, operand, "shared")
    sch.compute_at(staged, steps, preserve_unit_loops=True)
    *_, row, _ = sch.get_loops(staged)
    unit, _ = sch.split(row, [tile.units, None])
    sch.annotate(unit, GROUP, tile.units)
