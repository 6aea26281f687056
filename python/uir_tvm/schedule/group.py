# SPDX-License-Identifier: Apache-2.0
"""The primitives ``group_reduce`` and ``group_broadcast``: units of a group share a tile through sram."""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule

from ..errors import ScheduleError
from ..igraph import HardwareModel
from .annotations import GROUP
from .blocks import REDUCTION, block_info, loop_extent
from .hardware_of import hardware_for
from .transaction import primitive


@primitive(remedy="share a reduction loop that belongs to the block alone, before mapping the block to units")
def group_reduce(
    sch: Schedule, block: Any, loop: Any, group_size: int, *, hardware: HardwareModel | str | None = None
) -> Any:
    """Share a reduction between the units of a group.

    Before::

        for i in M:
          for k in K: S[i] += X[i, k]

    After, with ``group_size`` units::

        for u in group_size:                 # annotated uir.group
          for i in M:
            for k in K / group_size: S.rf[u, i] += X[i, u*K/group_size + k]   # S.rf in sram
        for i in M:
          for u in group_size: S[i] += S.rf[u, i]

    Map the final block with `map_to_units` afterwards and attach the partial one under its row loop
    with `move_to_hierarchy`; unit ``u`` of every group then runs iteration ``u``, and the sum lands
    in the units with ``pid % group_size == 0``.

    Parameters
    ----------
    block : SBlockRV or str
        A reduction block.
    loop : LoopRV
        One of its reduction loops.
    group_size : int
        How many units share the reduction; divides the units of a group and the loop's extent.

    Returns
    -------
    SBlockRV
        The block of the partial results.

    Raises
    ------
    ScheduleError
        Not a reduction loop; group_size does not divide the units of a group or the loop.
    """
    hw = hardware_for(sch, hardware)
    rv = sch.get_sblock(block) if isinstance(block, str) else block
    _check_group(hw, group_size)
    info = block_info(sch, rv)
    kinds = dict(zip([sch.get(lp).loop_var.name for lp in sch.get_loops(rv)], info.kinds, strict=False))
    if kinds.get(sch.get(loop).loop_var.name) != REDUCTION:
        raise ScheduleError(
            f"Loop {sch.get(loop).loop_var.name!r} of block {info.name!r} does not reduce.",
            need="a reduction loop of the block",
            remedy="to share spatial work use map_to_units",
        )
    _check_divides(sch, loop, group_size)
    units, _ = sch.split(loop, [group_size, None])
    partial = sch.rfactor(units, 0)
    sch.set_scope(partial, 0, "shared")
    sch.annotate(_unit_loop(sch, partial, group_size), GROUP, group_size)
    return partial


@primitive(remedy="broadcast a buffer that one block makes and later blocks read")
def group_broadcast(
    sch: Schedule, block: Any, buffer: Any, group_size: int, *, hardware: HardwareModel | str | None = None
) -> Any:
    """Let all units of a group read what the first of them holds.

    Before::

        for i in M: S[i] = ...
        for i, j: Y[i, j] = f(X[i, j], S[i])

    After::

        for i in M: S[i] = ...                                 # unit pid % group_size == 0
        for i in M: S.shared[i] = S[i]                         # annotated uir.group: the broadcast
        for i, j: Y[i, j] = f(X[i, j], S.shared[i])

    Parameters
    ----------
    block : SBlockRV or str
        The block that reads the value in all units.
    buffer : str or Buffer
        What it reads.
    group_size : int
        How many units share it; divides the units of a group.

    Returns
    -------
    SBlockRV
        The block of the broadcast, to be attached with ``compute_at``.

    Raises
    ------
    ScheduleError
        group_size does not divide the units of a group; the block does not read the buffer.
    """
    hw = hardware_for(sch, hardware)
    rv = sch.get_sblock(block) if isinstance(block, str) else block
    _check_group(hw, group_size)
    name = buffer if isinstance(buffer, str) else buffer.name
    reads = [r.source.name for r in sch.get(rv).reads]
    if name not in reads:
        raise ScheduleError(
            f"Block {sch.get(rv).name_hint!r} does not read {name!r}.",
            need=f"one of {sorted(set(reads))}",
            remedy="name a buffer that the block reads",
        )
    copy = sch.cache_read(rv, reads.index(name), "shared")
    sch.annotate(copy, GROUP, group_size)
    return copy


def _check_group(hw: HardwareModel, group_size: int) -> None:
    if group_size < 1 or hw.num_units % group_size:
        divisors = [d for d in range(1, hw.num_units + 1) if hw.num_units % d == 0]
        raise ScheduleError(
            f"A group of {hw.name} cannot be shared by {group_size} units.",
            need=f"group_size {group_size}",
            limit=f"{hw.num_units} units in a group",
            remedy=f"use one of {divisors}",
        )


def _check_divides(sch: Schedule, loop: Any, group_size: int) -> None:
    extent = loop_extent(sch, loop)
    if extent % group_size:
        raise ScheduleError(
            f"{group_size} units cannot share a loop of {extent} iterations evenly.",
            need=f"an extent divisible by {group_size}",
            limit=f"extent {extent}",
            remedy="pad the loop (sch.pad_einsum) or choose a divisor",
        )


def _unit_loop(sch: Schedule, partial: Any, group_size: int) -> Any:
    """The loop of the partial block that rfactor made of the units."""
    stmt = sch.get(partial)
    wanted = stmt.writes[0].region[0].min
    for loop, iter_var in zip(sch.get_loops(partial), stmt.iter_vars, strict=False):
        if iter_var.var.same_as(wanted) and loop_extent(sch, loop) == group_size:
            return loop
    return next(loop for loop in sch.get_loops(partial) if loop_extent(sch, loop) == group_size)
