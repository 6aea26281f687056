# SPDX-License-Identifier: Apache-2.0
"""``group_reduce``, ``group_broadcast``, ``group_share``: units of a group share a tile.

A *set* is ``group_size`` units with consecutive pids.  ``map_to_units(..., group_size=k)`` deals tiles to
sets; inside, what is shared each unit does a part of, and what is not every unit does, but only the first
of the set writes it to memory that others see.
"""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule

from ..errors import ScheduleError
from ..igraph import HardwareModel
from .annotations import BROADCAST, GROUP
from .blocks import REDUCTION, block_info, is_open_loop, loop_extent, reduction_loops
from .hardware_of import check_group, hardware_for
from .split_loop import split
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

        for u in group_size:                 # of a block annotated uir.group
          for i in M:
            for k in K / group_size: S.rf[u, i] += X[i, u*K/group_size + k]   # S.rf in sram
        for i in M:
          for u in group_size: S[i] += S.rf[u, i]

    Map a block with `map_to_units` and the same ``group_size`` afterwards, and attach both under its row
    loop (``compute_at``).  Unit ``pid`` then runs iteration ``pid % group_size`` of the partial block; the
    two become one ``reduce.OP.AXIS.group``, whose result the first unit of the set has, or all of them
    where all go on with it (a broadcast follows).

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
    check_group(hw, group_size)
    info = block_info(sch, rv)
    kinds = dict(zip([sch.get(lp).loop_var.name for lp in sch.get_loops(rv)], info.kinds, strict=False))
    if kinds.get(sch.get(loop).loop_var.name) != REDUCTION:
        raise ScheduleError(
            f"Loop {sch.get(loop).loop_var.name!r} of block {info.name!r} does not reduce.",
            need="a reduction loop of the block",
            remedy="to share spatial work use map_to_units",
        )
    _check_divides(sch, loop, group_size)
    units, _ = split(sch, loop, [group_size, None])
    partial = sch.rfactor(units, 0)
    for index in range(len(sch.get(partial).writes)):
        sch.set_scope(partial, index, "shared")
    sch.annotate(partial, GROUP, group_size)
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
        for i in M: S.shared[i] = S[i]                         # annotated: a broadcast.AXIS.group
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
    check_group(hw, group_size)
    name = buffer if isinstance(buffer, str) else buffer.name
    reads = [r.source.name for r in sch.get(rv).reads]
    if name not in reads:
        raise ScheduleError(
            f"Block {sch.get(rv).name_hint!r} does not read {name!r}.",
            need=f"one of {sorted(set(reads))}",
            remedy="name a buffer that the block reads",
        )
    copy = sch.cache_read(rv, reads.index(name), "shared")
    sch.annotate(copy, BROADCAST, group_size)
    return copy


@primitive(remedy="share a spatial loop that belongs to the block alone")
def group_share(
    sch: Schedule,
    block: Any,
    loop: Any,
    group_size: int,
    *,
    share: int | None = None,
    hardware: HardwareModel | str | None = None,
) -> list[Any]:
    """Let each unit of a set run its part of a loop.

    Before::

        for j in N: E[i, j] = exp(X[i, j])

    After::

        for u in group_size:                      # annotated uir.group: unit pid runs pid % group_size
          for j in ceil(N / group_size): E[i, u*ceil(N / group_size) + j] = exp(...)

    What is stored in reg only the unit has that computed it: consumers must be shared alike.  What is
    stored in sram all units of the set see, which is how they stage a tile together: also without
    sets in `map_to_units`, where all units of a group read the same tile.

    Parameters
    ----------
    block : SBlockRV or str
        The block whose work is shared.
    loop : LoopRV
        One of its spatial loops.
    group_size : int
        How many units share it; divides the units of a group.
    share : int, optional
        Iterations of each unit, of the last ones fewer; all alike by default. Where sizes decide the loop's
        extent, each ``group_size * share`` iterations are dealt so, in a loop around the units'.

    Returns
    -------
    list of LoopRV
        The loop over the units, and the rest.

    Raises
    ------
    ScheduleError
        The loop reduces; group_size does not divide the units of a group.
    """
    hw = hardware_for(sch, hardware)
    rv = sch.get_sblock(block) if isinstance(block, str) else block
    check_group(hw, group_size)
    name = sch.get(loop).loop_var.name
    if any(sch.get(lp).loop_var.name == name for lp in reduction_loops(sch, rv)):
        raise ScheduleError(
            f"Loop {name!r} of block {sch.get(rv).name_hint!r} reduces.",
            need="a spatial loop of the block",
            remedy="share a reduction with group_reduce",
        )
    if share is not None and is_open_loop(sch, loop):
        # TVM does not know the greatest of a size
        _, outer, inner = split(sch, loop, [None, group_size, share])
    else:
        outer, inner = split(sch, loop, [group_size, share])
    sch.annotate(outer, GROUP, group_size)
    return [outer, inner]


def _check_divides(sch: Schedule, loop: Any, group_size: int) -> None:
    extent = loop_extent(sch, loop)
    if extent % group_size:
        raise ScheduleError(
            f"{group_size} units cannot share a loop of {extent} iterations evenly.",
            need=f"an extent divisible by {group_size}",
            limit=f"extent {extent}",
            remedy="pad the loop (sch.pad_einsum) or choose a divisor",
        )
