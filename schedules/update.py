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
from uir_tvm.schedules.demo import Example, Numbers, Shapes


def matches(sch: Schedule) -> bool:
    """Injective blocks, the last of which stores where data says, in any order."""
    blocks = leaf_blocks(sch)
    if not blocks or not all(block.is_injective for block in blocks):
        return False
    return SCATTERS in blocks[-1].stmt.annotations


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """Rows dealt to units, every row whole; see `uir_tvm.schedules.gather`."""
    gather.schedule(sch, hw, decisions)


#: Rows of the cache in the example.
LENGTH = 64


def _function(shapes: Shapes) -> Any:
    (outer, count, inner), (sets, _), _ = shapes
    return row_update(Rows(outer, LENGTH, count, inner, sets=sets), "float32", "int64")


def _numbers(shapes: Shapes) -> Numbers:
    (outer, count, inner), (sets, _), _ = shapes
    rng = np.random.default_rng(0)
    values = rng.standard_normal((outer, count, inner)).astype("float32")
    index = np.array([rng.permutation(LENGTH)[:count] for _ in range(sets)])
    memory = rng.standard_normal((outer * LENGTH, inner)).astype("float32")
    expected = memory.astype("float64").reshape(outer, LENGTH, inner)
    expected[:, index[0]] = values
    return [values, index, memory], [expected.reshape(memory.shape)]


def example() -> Any:
    """Two rows of a step's keys into a cache of 64."""
    return Example.of(_function, _numbers, [(2, 2, 32), (1, 2), (2 * LENGTH, 32)])


RECIPE = Recipe(
    "update",
    matches,
    schedule,
    example,
    reason="Whole rows are stored at places that are data; nothing else is touched.",
)
