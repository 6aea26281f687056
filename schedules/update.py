# SPDX-License-Identifier: Apache-2.0
"""Updates in place: rows of a tensor get new values, all others stay as they are and are not touched.

A tile of rows is read and stored as a whole, where an index says (a scatter of rows) or at a known place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.s_tir import Schedule
from uir_tvm.function_attributes import SCATTERS
from uir_tvm.igraph import HardwareModel
from uir_tvm.row_updates import Rows, row_update
from uir_tvm.schedule.blocks import leaf_blocks
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedules import gather
from uir_tvm.schedules.demo import Example


def matches(sch: Schedule) -> bool:
    """Injective blocks, the last of which stores where data says, in any order."""
    blocks = leaf_blocks(sch)
    if not blocks or not all(block.is_injective for block in blocks):
        return False
    return SCATTERS in blocks[-1].stmt.annotations


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """Rows dealt to units, every row whole; see `uir_tvm.schedules.gather`."""
    gather.schedule(sch, hw, decisions)


def example() -> Any:
    """Two rows of a step's keys into a cache of 64."""
    rows = Rows(outer=2, length=64, count=2, inner=32, sets=1)
    rng = np.random.default_rng(0)
    values, index = rng.standard_normal(rows.values).astype("float32"), np.array([[5, 60]])
    memory = rng.standard_normal((2 * 64, 32)).astype("float32")
    expected = memory.astype("float64").reshape(2, 64, 32)
    expected[:, index[0]] = values
    func = row_update(rows, "float32", "int64")
    return Example(func, [values, index, memory], [expected.reshape(memory.shape)])


RECIPE = Recipe(
    "update",
    matches,
    schedule,
    example,
    reason="Whole rows are stored at places that are data; nothing else is touched.",
)
