# SPDX-License-Identifier: Apache-2.0
"""Concatenation, slicing, padding and reshaping: nothing is computed, pieces are moved.

Each piece becomes a move whose valid box ends where the next piece begins.  Rows and columns are
tiled as for elementwise operators; views that cost nothing (a reshape of whole rows) were made
identities in the kernel graph and do not come here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import leaf_blocks
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedules import elementwise
from uir_tvm.schedules.demo import from_relax


def matches(sch: Schedule) -> bool:
    """Blocks that only move data."""
    blocks = leaf_blocks(sch)
    return bool(blocks) and all(b.is_injective and b.is_copy for b in blocks)


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """Tile rows and columns; see `uir_tvm.schedules.elementwise`."""
    elementwise.schedule(sch, hw, decisions)


def example() -> Any:
    """A class token before the patches: (1, 1, 384) and (1, 196, 384) along the tokens."""

    return from_relax(
        lambda token, patches: op.concat([token, patches], axis=1),
        [(1, 1, 384), (1, 196, 384)],
        lambda token, patches: np.concatenate([token, patches], axis=1),
    )


RECIPE = Recipe(
    "concat",
    matches,
    schedule,
    example,
    reason="Pieces are moved; nothing is computed.",
)
