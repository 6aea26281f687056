# SPDX-License-Identifier: Apache-2.0
"""The primitive ``map_to_units``: spatial loops become units, serial loops and a 2-D tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import sym as arith
from tvm.s_tir import Schedule

from ..errors import ScheduleCapacityError, ScheduleError
from ..function_attributes import SCATTERS
from ..igraph import HardwareModel
from .annotations import GROUP, LITTLE_WORK, LOOP, PARALLEL, WORK_PARTS, parallel_value
from .blocks import (
    REDUCTION,
    SPATIAL,
    BlockInfo,
    block_info,
    collect,
    dtype_bytes,
    is_open_loop,
    leaf_blocks,
    loop_extent,
    most_iterations,
    reduction_loops,
    total_work,
)
from .decisions import Choice, rv_of
from .hardware_of import check_group, hardware_for
from .split_loop import split
from .tile_facts import TileSpace, groups_at_once, space_of, units_of
from .transaction import primitive


@primitive(
    remedy="map a block whose loops belong to it alone: fuse or inline its neighbours first, "
    "or attach them afterwards with move_to_hierarchy(..., at=loop)"
)
def map_to_units(
    sch: Schedule,
    block: Any,
    num_groups: int | None = None,
    num_units: int | None = None,
    tile: Sequence[int | None] = (None, None),
    *,
    row_loops: int | None = None,
    split_columns: bool = False,
    columns_first: bool = False,
    repeated: int = 0,
    group_size: int = 1,
    share: int | None = None,
    hardware: HardwareModel | str | None = None,
) -> list[Any]:
    """Distribute a block over the units of a device.

    Before, with ``tile=(r, c)``::

        for b, i, j in grid(B, M, N): block

    After (``T`` row tiles, each unit takes ``L = ceil(T / (G*U))`` consecutive ones)::

        for pid in G*U:            # annotated uir.parallel = "G,U"
          for lid in L:            # annotated uir.loop
            for jo in ceil(N / c): # annotated uir.loop; joins the tiles when split_columns
              for ii, ji in grid(r, c): block

    The last row loop is cut in tiles of r rows, so no tile crosses the end of a dimension; the outer
    loops and the row tiles together are numbered and dealt to the units.  Reduction loops of the
    block are its columns.

    With ``group_size=k`` tiles are dealt to sets of k units of a group (units ``k*p .. k*p + k - 1`` for
    iteration p) that share the columns; a reduction is shared by `group_reduce` before::

        for p in G*U / k:          # annotated uir.parallel = "G,U" and uir.group = k
          for lid in L:            # annotated uir.loop
            for ii in r:
              for u in k:          # annotated uir.group = k: unit pid runs iteration pid % k
                for ji in ceil(c / k): block

    Parameters
    ----------
    block : SBlockRV or str
        A leaf block whose loops carry nothing else; they may have been split before.
    num_groups, num_units : int, optional
        Parallel groups and units per group; those that the hardware model prefers by default, fewer
        when there are not that many tiles.
    tile : (int or None, int or None)
        Rows and columns of a tile; None = 1 row, all columns.
    row_loops : int, optional
        How many leading spatial loops are rows; all but the last by default (all, for a reduction).
    split_columns : bool
        Deal column tiles to the units too (few rows, long columns).
    columns_first : bool
        With ``split_columns``: all rows of the first tile of columns are numbered before those of the next.
    repeated : int
        So many spatial loops, the last ones, are no columns: loops around the rows and columns of every tile.
    group_size : int
        How many units of a group share a tile; divides their number.
    share : int, optional
        Columns of a tile that each of these units takes, the last ones fewer; all alike by default.
        0: the first takes all, what the others have a part in is made before.
    hardware : HardwareModel or str, optional
        Default: the model of the current target.

    Returns
    -------
    list of LoopRV
        pid, lid, jo, ii, ji (jo is None where columns are whole or dealt to units).  Where several row loops
        are open, lid is the innermost of those that a unit walks.

    Raises
    ------
    ScheduleError
        The tile exceeds the unit's reg memory; a store is not affine; the block carries a dependence
        over its loops; units do not fit the hardware; the block shares its loops.
    """
    hw = hardware_for(sch, hardware)
    rv = sch.get_sblock(block) if isinstance(block, str) else block
    info = block_info(sch, rv)
    _refuse_unmappable(info)
    groups, units = _units(hw, num_groups, num_units)
    check_group(hw, group_size, units)

    loops = list(sch.get_loops(rv)) or [sch.add_unit_loop(rv)]
    reduced = {sch.get(lp).loop_var.name for lp in reduction_loops(sch, rv)}
    spatial = [lp for lp in loops if sch.get(lp).loop_var.name not in reduced]
    reduction = [lp for lp in loops if sch.get(lp).loop_var.name in reduced]
    spatial, each = (spatial[:-repeated], spatial[-repeated:]) if repeated else (spatial, [])
    rows, cols = _split_roles(sch, info, spatial, reduction, row_loops)

    col = sch.fuse(*cols) if len(cols) > 1 else (cols[0] if cols else sch.add_unit_loop(rv))
    row = rows[-1] if rows else sch.add_unit_loop(sch.get_loops(rv)[0])
    r, c = _tile_sizes(tile, loop_extent(sch, row), loop_extent(sch, col))
    _refuse_overflow(hw, info, r, -(-c // group_size))

    row_outer, row_inner = split(sch, row, [None, rv_of(r)])
    # a sampled tile that is whole now may not be after another decision
    whole = c >= most_iterations(sch, col) and not isinstance(c, Choice)
    col_outer, col_inner = (None, col) if whole else split(sch, col, [None, rv_of(c)])
    tiles = [*rows[:-1], row_outer]
    order = [*tiles, *([] if whole else [col_outer]), *each, row_inner, col_inner]
    sch.reorder(*order)
    if split_columns and not whole and not reduction:
        if (columns_first and tiles) or (not rows and is_open_loop(sch, col_outer)):
            sch.reorder(col_outer, *tiles)
            # TVM's fused index of one row and open columns would keep a remainder by their number
            tiles = [col_outer, *tiles] if rows else [col_outer]
        else:
            tiles.append(col_outer)
        col_outer = None
    given = tiles
    tiles, walked = _apart(sch, tiles, space_of(hw))
    if tiles != given:
        outer = [] if col_outer is None else [col_outer]
        sch.reorder(*tiles, *walked, *outer, *each, row_inner, col_inner)
    numbered = sch.fuse(*tiles) if len(tiles) > 1 else tiles[0]
    sampled = any(isinstance(number, Choice) for number in (r, c, groups, units))
    if is_open_loop(sch, numbered):
        # who walks a dimension has enough to do
        turns = 1 if walked else space_of(hw).open_turns
        pid, lid = _deal_open(sch, hw, numbered, groups, units, group_size, turns)
    elif sampled:
        # where more groups are given than run at once there are as many as tiles fill
        follow = not isinstance(groups, Choice) and groups > groups_at_once(hw, units)
        pid, lid = _deal_sampled(sch, numbered, None if follow else groups, units, group_size)
    else:
        pid, lid = _deal(sch, numbered, groups, units, group_size)
    if group_size > 1:
        sch.annotate(pid, GROUP, group_size)
        width = loop_extent(sch, col_inner)
        if not reduction and width > 1 and share != 0:
            part = share if share is not None and share < width else None
            # TVM does not know the greatest of a size: a loop around them, of one round
            around = [None] if part is not None and is_open_loop(sch, col_inner) else []
            *_, member, col_inner = split(sch, col_inner, [*around, group_size, part])
            sch.annotate(member, GROUP, group_size)
    for loop in (lid, *walked, *each):
        sch.annotate(loop, LOOP, 1)
    lid = walked[-1] if walked else lid
    if col_outer is not None:
        sch.annotate(col_outer, LOOP, 1)
    return [pid, lid, col_outer, row_inner, col_inner]


def _apart(sch: Schedule, tiles: list[Any], space: TileSpace) -> tuple[list[Any], list[Any]]:
    """The loops whose iterations are numbered, and those that each unit walks.

    How many units there are is affine in sizes: of several open loops the first is dealt to them, with all
    that are not open. It is numbered outside of those, so that a unit's number is parted by numbers.
    Up to ``walkers`` units walk a long one together, each every so many iterations, or one each.
    """
    is_open = [is_open_loop(sch, loop) for loop in tiles]
    if not any(is_open):
        return tiles, []
    first = is_open.index(True)
    numbered = [tiles[first], *(loop for k, loop in enumerate(tiles) if not is_open[k])]
    walked = [loop for k, loop in enumerate(tiles) if k != first and is_open[k]]
    if not walked:
        return numbered, []
    most = most_iterations(sch, walked[0])
    together = min(space.walkers, most // space.least_walk)
    if together > 1:
        members = together if together == most else 1 << (together.bit_length() - 1)
        walked[0], member = split(sch, walked[0], [None, members])
        numbered.append(member)
    return numbered, walked


def _deal(sch: Schedule, numbered: Any, groups: int, units: int, group_size: int) -> tuple[Any, Any]:
    """The loops over units and over the tiles of one."""
    groups, units = _shrink(loop_extent(sch, numbered) * group_size, groups, units)
    pid, lid = split(sch, numbered, [groups * units // group_size, None])
    sch.annotate(pid, PARALLEL, parallel_value(groups, units))
    return pid, lid


def _deal_sampled(
    sch: Schedule, numbered: Any, groups: int | None, units: int, group_size: int
) -> tuple[Any, Any]:
    """The same where the number of tiles follows decisions; so does that of groups where it is None."""
    each = 1 if groups is None else None
    return _deal_members(sch, numbered, groups, units, each, group_size)


def _deal_members(
    sch: Schedule, numbered: Any, groups: int | None, units: int, each: int | None, group_size: int
) -> tuple[Any, Any]:
    """The loops over units and over the tiles of one: of ``groups`` and ``each`` one follows (None)."""
    sets = rv_of(units) if group_size == 1 else units // group_size
    group, member, lid = split(sch, numbered, [None if groups is None else rv_of(groups), sets, each])
    pid = sch.fuse(group, member)
    sch.annotate(pid, PARALLEL, rv_of(units) if group_size == 1 else int(units))
    return pid, lid


def _deal_open(
    sch: Schedule, hw: HardwareModel, numbered: Any, groups: int, units: int, group_size: int, most: int
) -> tuple[Any, Any]:
    """The same where sizes decide the number of tiles: as many groups as these fill, a few for each unit.

    A target that has fewer groups at once deals them itself.
    """
    tiles, least_work = loop_extent(sch, numbered), space_of(hw).serial_work
    turns = tiles * group_size // max(1, groups * units)
    each = max(1, min(turns, most))
    pid, lid = _deal_members(sch, numbered, None, units, each, group_size)
    if least_work:
        work = total_work(leaf_blocks(sch)) * each // tiles
        sch.annotate(pid, LITTLE_WORK, max(1, least_work * WORK_PARTS // max(1, work)))
    return pid, lid


def _split_roles(
    sch: Schedule, info: BlockInfo, spatial: list[Any], reduction: list[Any], row_loops: int | None
) -> tuple[list[Any], list[Any]]:
    """Row loops and column loops, in order."""
    if reduction:
        sch.reorder(*spatial, *reduction)
        return spatial, reduction
    count = len(spatial) - 1 if row_loops is None else row_loops
    if not 0 <= count <= len(spatial):
        raise ScheduleError(
            f"row_loops={count} of block {info.name!r} is out of range.", limit=f"0..{len(spatial)}"
        )
    return spatial[:count], spatial[count:]


def _units(hw: HardwareModel, num_groups: int | None, num_units: int | None) -> tuple[int, int]:
    units = units_of(hw) if num_units is None else num_units
    groups = groups_at_once(hw, max(1, units)) if num_groups is None else num_groups
    if groups < 1 or units < 1:
        raise ScheduleError(
            f"({groups}, {units}) units are not possible.",
            limit="at least one group of one unit",
            remedy="leave num_groups and num_units to the hardware model",
        )
    if units > hw.num_units:
        raise ScheduleError(
            "More units per group than the hardware has.",
            need=f"{units} units",
            limit=f"{hw.num_units} units in a group of {hw.name}",
            remedy=f"use num_units <= {hw.num_units}",
        )
    return groups, units


def _shrink(tiles: int, groups: int, units: int) -> tuple[int, int]:
    """No more groups than tiles fill."""
    return max(1, min(groups, math.ceil(tiles / units))), units


def _tile_sizes(tile: Sequence[int | None], rows: int, cols: int) -> tuple[int, int]:
    if len(tile) != 2:
        raise ScheduleError(f"A tile is (rows, columns), not {tuple(tile)!r}.", remedy="pass tile=(r, c)")
    r = 1 if tile[0] is None else tile[0]
    c = cols if tile[1] is None else tile[1]
    if r < 1 or c < 1:
        raise ScheduleError(f"Tile ({r}, {c}) is empty.", limit="at least one row and one column")
    return min(r, rows), min(c, cols)


def _refuse_overflow(hw: HardwareModel, info: BlockInfo, r: int, c: int) -> None:
    """A tile that does not fit a unit's memory even once."""
    widest = max(dtype_bytes(region.source.ty.dtype) for region in (*info.stmt.reads, *info.stmt.writes))
    need = r * c * widest
    if need > hw.reg_bytes:
        fits = max(1, hw.reg_bytes // (widest * c))
        advice = (
            f"tile=({fits}, {c})"
            if fits * c * widest <= hw.reg_bytes
            else f"tile=(1, {hw.reg_bytes // widest})"
        )
        raise ScheduleCapacityError(
            f"Tile ({r}, {c}) of block {info.name!r} exceeds the memory of a unit.",
            memory="reg",
            needed=need,
            available=int(hw.reg_bytes),
            need=f"{need} bytes of reg for one slice",
            limit=f"{hw.reg_bytes} bytes on {hw.name}",
            remedy=f"use at most {advice}",
        )


def _refuse_unmappable(info: BlockInfo) -> None:
    if any(e == 0 for e in info.extents):
        raise ScheduleError(
            f"Block {info.name!r} has a dimension of size zero.",
            need="extents of at least 1",
            remedy="drop the operator: it computes nothing",
        )
    if any(e < 0 for e in info.extents):
        raise ScheduleError(
            f"Block {info.name!r} has a loop whose extent other loops decide.",
            need="extents that are numbers, or expressions of the sizes of the parameters' shapes",
            remedy="bind the symbolic dimensions before scheduling",
        )
    other = [k for k in info.kinds if k not in (SPATIAL, REDUCTION)]
    # a block of no variables that stores a scalar is one iteration; what more it may do, nothing says
    scalar = isinstance(info.stmt.body, tvm.tirx.BufferStore)
    if other or not (info.kinds or scalar):
        raise ScheduleError(
            f"Block {info.name!r} has iteration variables that are neither spatial nor reductions.",
            need="a block whose iterations are independent",
            remedy="write it with T.axis.spatial and T.axis.reduce, or leave it to the scalar fallback",
        )
    refuse_carried_dependence(info)
    _refuse_non_affine_store(info)


def refuse_carried_dependence(info: BlockInfo) -> None:
    """An element that reads what another iteration writes (B[i] = B[i - 1] + ...)."""
    written = {store.buffer.name: store.indices for store in collect(info.stmt.body, tvm.tirx.BufferStore)}
    analyzer = arith.Analyzer()
    for load in collect(info.stmt.body, tvm.ir.TensorLoad):
        name = getattr(load.source, "name", "")
        if name not in written:
            continue
        if not all(analyzer.can_prove_equal(a, b) for a, b in zip(load.indices, written[name], strict=True)):
            raise ScheduleError(
                f"Block {info.name!r} carries a dependence over its loops.",
                where=f"{load} is read while {name}{list(written[name])} is written",
                need="iterations that do not depend on each other",
                remedy="keep the loop serial (write it as a reduction), or leave it to the scalar fallback",
            )


def _refuse_non_affine_store(info: BlockInfo) -> None:
    if SCATTERS in info.stmt.annotations:
        return
    variables = [iv.var for iv in info.stmt.iter_vars]
    for store in collect(info.stmt.body, tvm.tirx.BufferStore):
        for index in store.indices:
            if not len(arith.detect_linear_equation(index, variables)):
                raise ScheduleError(
                    f"Block {info.name!r} stores at an index that is not affine.",
                    where=f"{store.buffer.name}{list(store.indices)}: {index}",
                    need="store indices linear in the block's iteration variables",
                    remedy="reindex the output (sch.transform_layout), or express the store as a scatter",
                )
