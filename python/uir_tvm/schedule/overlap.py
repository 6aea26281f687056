# SPDX-License-Identifier: Apache-2.0
"""Loops over tiles load and store while they compute, on hardware whose pipes run at the same time."""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule

from ..errors import ScheduleError
from .annotations import LOOP, PARALLEL, PIPELINE
from .blocks import leaf_blocks, loop_extent


def overlap(sch: Schedule, stages: int) -> None:
    """Pipeline the innermost serial loop around every block, where that is possible.

    Parameters
    ----------
    stages : int
        Iterations in flight; a loop that can have none more than one stays as it is.
    """
    for block in leaf_blocks(sch):
        loop = _innermost(sch, block.rv)
        if loop is None or PIPELINE in sch.get(loop).annotations:
            continue
        try:
            sch.pipeline(loop, stages)
        except ScheduleError:
            # it carries a value, loads nothing, or has too few iterations
            continue


def _innermost(sch: Schedule, block: Any) -> Any:
    """The innermost loop around a block that is serial and runs more than once."""
    found = None
    for loop in sch.get_loops(block):
        annotations = sch.get(loop).annotations
        if LOOP in annotations and PARALLEL not in annotations and loop_extent(sch, loop) > 1:
            found = loop
    return found
