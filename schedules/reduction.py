# SPDX-License-Identifier: Apache-2.0
"""Reductions over the trailing dimensions, with elementwise work before and after."""

from __future__ import annotations

from typing import Any

from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import reduction_blocks
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedules.demo import from_relax
from uir_tvm.schedules.normalization.row_parts import parts_of, schedule_parts
from uir_tvm.schedules.normalization.rowwise import (
    common_rows,
    reduces_trailing,
    schedule_rows,
)


def matches(sch: Schedule) -> bool:
    """Every reduction runs over trailing dimensions of the same rows."""
    reductions = reduction_blocks(sch)
    return (
        bool(reductions)
        and common_rows(reductions) is not None
        and all(reduces_trailing(b) for b in reductions)
    )


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """Rows over units (`uir_tvm.schedules.normalization.rowwise`), parts of them where there are few."""
    parts = parts_of(sch, hw)
    # one answer is no question: schedules that were kept say what was asked
    if parts > 1 and decisions.fork("row_parts", (1, parts), parts) > 1:
        return schedule_parts(sch, hw, parts, decisions)
    return schedule_rows(sch, hw, decisions)


def example() -> Any:
    """Sum of squares over rows of 1000."""

    return from_relax(lambda x: op.sum(op.multiply(x, x), axis=-1), [(300, 1000)], lambda x: (x * x).sum(-1))


RECIPE = Recipe(
    "reduction",
    matches,
    schedule,
    example,
    reason="A row is read once, with the elementwise work before and after.",
    forms=({}, {"row_parts": (1,)}),
)
