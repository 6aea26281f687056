# SPDX-License-Identifier: Apache-2.0
"""Softmax and normalisations: several reductions over a row, then an elementwise pass over it.

One pass over the data while a row fits a unit's memory: the row is loaded once, every reduction and
the result are computed from the tile on chip.  Longer rows are walked in chunks; softmax then takes
two passes over the data (`uir_tvm.schedules.normalization.online`), other chains one for each reduction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import reduction_blocks
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.row_chain import output_blocks
from uir_tvm.schedules.demo import from_relax
from uir_tvm.schedules.normalization.rowwise import (
    common_rows,
    reduces_trailing,
    schedule_rows,
)


def matches(sch: Schedule) -> bool:
    """Row reductions whose row space the outputs extend by columns."""
    reductions = reduction_blocks(sch)
    rows = common_rows(reductions)
    if not reductions or rows is None or not all(reduces_trailing(b) for b in reductions):
        return False
    return any(math.prod(b.spatial) > rows for b in output_blocks(sch))


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """Rows over units; see `uir_tvm.schedules.normalization.rowwise`."""
    return schedule_rows(sch, hw, decisions)


def example() -> Any:
    """Softmax of (4, 12, 96, 128) scores with a mask."""

    def reference(x: Any, mask: Any) -> Any:
        e = np.exp(x + mask - (x + mask).max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return from_relax(
        lambda x, m: op.nn.softmax(op.add(x, m), axis=-1), [(4, 12, 96, 128), (4, 1, 1, 128)], reference
    )


RECIPE = Recipe(
    "normalization",
    matches,
    schedule,
    example,
    reason="A row is read once for all its reductions and its result, while it fits on chip.",
)
