# SPDX-License-Identifier: Apache-2.0
"""Chains whose operators have no rows or tiles in common: all units run one phase, then the next.

What a phase hands to the next lies in dram, behind a barrier of all units (`uir_tvm.schedule.phases`).
"""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import leaf_blocks, prim_func
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.phases import schedule_phases, statements

HERO = "phases"


def matches(sch: Schedule) -> bool:
    """Several statements, with blocks in all of them."""
    return len(leaf_blocks(sch)) > 1 and len(statements(prim_func(sch))) > 1


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """Each phase by the first recipe that fits it; see `uir_tvm.schedule.phases`."""
    from . import RECIPES, fallback

    own = [recipe for recipe in RECIPES if recipe is not fallback and recipe.HERO != HERO]
    return schedule_phases(sch, hw, own, decisions)


def example() -> Any:
    """Two reductions over different rows: the mean of every row, then of all rows."""
    from tvm.relax import op
    from uir_tvm.schedule.demo import from_relax

    return from_relax(
        lambda x: op.mean(op.mean(x, axis=-1), axis=0), [(60, 500)], lambda x: x.mean(-1).mean(0)
    )


if __name__ == "__main__":
    from uir_tvm.schedule.demo import main

    main("phases")
