# SPDX-License-Identifier: Apache-2.0
"""The primitive ``pipeline``: a loop loads iterations ahead of those that it computes."""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule

from ..errors import ScheduleError
from .annotations import LOOP, PARALLEL, PIPELINE
from .blocks import REDUCTION, SPATIAL, BlockInfo, bindings, block_info, loop_extent, uses
from .decisions import Choice, rv_of
from .map_to_units import refuse_carried_dependence
from .transaction import primitive


@primitive(remedy="name a serial loop of the function, as map_to_units returns them")
def pipeline(sch: Schedule, loop: Any, stages: int) -> None:
    """Load the operands of a loop ``stages - 1`` iterations ahead.

    Before::

        for k in K:
          X.local[..] = X[k, ..]
          Y[k, ..] = f(X.local[..])

    The iGraph after, ``X.local`` being ``stages`` times as large, with S = stages::

        for k in S - 1: move X.local[k], X[k]                        # prologue
        for k in K - (S - 1):
          move X.local[(k + S - 1) % S], X[k + S - 1]
          move Y[k], f(X.local[k % S])
        for k in S - 1: the rest of iteration K - (S - 1) + k         # epilogue

    The loop is only annotated (``uir.pipeline``); the pass ``multibuffer`` does it on the iGraph, where it
    is known what the loop loads.  What the loop accumulates stays single.

    Parameters
    ----------
    loop : LoopRV
        A serial loop inside of the parallel one.
    stages : int
        How many iterations are in flight; 2 is double buffering.  Each buffer that is loaded or stored
        takes that many times its bytes.

    Raises
    ------
    ScheduleError
        Fewer than 2 stages; fewer iterations than stages; the loop over units; a block of the loop whose
        iterations depend on each other, but for a reduction; nothing in the loop that is loaded.
    """
    extent, name = loop_extent(sch, loop), str(sch.get(loop).loop_var.name)
    sampled = isinstance(stages, Choice)
    if not sampled and (type(stages) is not int or stages < 2):
        raise ScheduleError(
            f"Loop {name!r} cannot have {stages} stages.",
            need="at least 2: one that is loaded while another is used",
            remedy="use stages=2",
        )
    if PARALLEL in sch.get(loop).annotations:
        raise ScheduleError(
            f"Loop {name!r} is that over the units, which do not run one after the other.",
            need="a serial loop inside of it",
            remedy="use the second loop that map_to_units returns",
        )
    if extent < stages and not sampled:
        raise ScheduleError(
            f"Loop {name!r} has fewer iterations than stages.",
            need=f"{stages} iterations",
            limit="no constant extent" if extent < 0 else f"{extent} iterations",
            remedy="use fewer stages, or a smaller tile so that the loop runs more often",
        )
    refuse_unpipelined(sch, loop)
    if LOOP not in sch.get(loop).annotations:
        sch.annotate(loop, LOOP, 1)
    sch.annotate(loop, PIPELINE, rv_of(stages))


def refuse_unpipelined(sch: Schedule, loop: Any) -> None:
    """A loop that gains nothing by iterations in flight, however many, or computes something else.

    Raises
    ------
    ScheduleError
        See `pipeline`.
    """
    name = str(sch.get(loop).loop_var.name)
    infos = [block_info(sch, rv) for rv in sch.get_child_blocks(loop)]
    for info in infos:
        _refuse_dependence(sch, info, loop, name)
    if not _loads(infos):
        raise ScheduleError(
            f"Loop {name!r} moves nothing that could be loaded ahead.",
            where=", ".join(info.name for info in infos),
            need="a block that reads memory which the loop does not write",
            remedy="stage an operand inside the loop with move_to_hierarchy, or leave the loop as it is",
        )


def _refuse_dependence(sch: Schedule, info: BlockInfo, loop: Any, name: str) -> None:
    """A block whose iterations of this loop need each other, and that no accumulator explains."""
    refuse_carried_dependence(info)
    variable = sch.get(loop).loop_var
    for iter_var, value, kind in zip(info.stmt.iter_vars, bindings(sch, info.rv), info.kinds, strict=True):
        if kind not in (SPATIAL, REDUCTION) and uses(value, [variable]):
            raise ScheduleError(
                f"Block {info.name!r} carries a dependence over loop {name!r}.",
                where=f"{iter_var.var.name} = {value}",
                need="iterations that do not depend on each other, or a reduction",
                remedy="write it with T.axis.spatial and T.axis.reduce, or pipeline an inner loop",
            )


def _loads(infos: list[BlockInfo]) -> bool:
    """Whether some block reads memory of all units that no block here writes."""
    written = {name for info in infos for name in info.writes}
    return any(
        region.source.scope() in ("global", "") and region.source.name not in written
        for info in infos
        for region in info.stmt.reads
    )
