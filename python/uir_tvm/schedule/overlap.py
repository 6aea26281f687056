# SPDX-License-Identifier: Apache-2.0
"""Loops over tiles load and store while they compute, on hardware whose pipes run at the same time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tvm.s_tir import Schedule

from ..errors import ScheduleError
from .annotations import LOOP, PARALLEL, PIPELINE
from .blocks import block_info, leaf_blocks, loop_extent
from .decisions import OWN, Decisions
from .pipeline_loop import refuse_unpipelined

#: Iterations in flight, to choose from; 1 loads nothing ahead.
IN_FLIGHT = (1, 2, 3)


def overlap(sch: Schedule, stages: int, decisions: Decisions = OWN) -> None:
    """Pipeline the innermost serial loops, where that is possible.

    Parameters
    ----------
    stages : int
        Iterations in flight, by default; a loop that can have none more than one stays as it is.
    """
    around = [sch.get_loops(block.rv) for block in leaf_blocks(sch)]
    # by the statement: loops of different nests may have variables of one name
    count = Counter(sch.get(loop) for loops in around for loop in loops)
    found: dict[Any, Any] = {}
    outer: set[Any] = set()
    for loops in around:
        # a loop of one iteration may have more after another decision
        least = 1 if decisions.sampled else 2
        serial = [loop for loop in loops if _is_serial(sch, loop, count[sch.get(loop)], least)]
        outer |= {sch.get(loop) for loop in serial[:-1]}
        found |= {sch.get(loop): loop for loop in serial}
    number: int | None = None if decisions.sampled else stages
    for statement, loop in found.items():
        if statement in outer or PIPELINE in statement.annotations or _only_brings(sch, loop):
            continue
        try:
            refuse_unpipelined(sch, loop)
            number = decisions.choose(sch, "stages", IN_FLIGHT, stages) if number is None else number
            sch.pipeline(loop, number)
        except ScheduleError:
            # it carries a value, loads nothing, or has too few iterations
            continue


def _only_brings(sch: Schedule, loop: Any) -> bool:
    """Whether a loop does nothing but fill memory on chip, which is read behind it."""
    blocks = [block_info(sch, rv) for rv in sch.get_child_blocks(loop)]
    return all(
        b.is_copy and all(str(w.source.scope()) not in ("global", "") for w in b.stmt.writes) for b in blocks
    )


def _is_serial(sch: Schedule, loop: Any, blocks: int, least: int) -> bool:
    """Whether a loop runs ``least`` times, and is no loop of a tile: asked for, or around several blocks."""
    annotations = sch.get(loop).annotations
    around = LOOP in annotations or blocks > 1
    # no decision gives a loop of a tile more iterations
    least = least if LOOP in annotations else 2
    return PARALLEL not in annotations and around and loop_extent(sch, loop) >= least
