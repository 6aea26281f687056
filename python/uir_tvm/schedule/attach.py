# SPDX-License-Identifier: Apache-2.0
"""Make the primitives methods of ``tvm.s_tir.Schedule``."""

from __future__ import annotations

from tvm.s_tir import Schedule

from .group import group_broadcast, group_reduce, group_share
from .map_to_units import map_to_units
from .move_to_hierarchy import move_to_hierarchy
from .pipeline_loop import pipeline

PRIMITIVES = (map_to_units, move_to_hierarchy, group_reduce, group_broadcast, group_share, pipeline)


def attach() -> None:
    """Add every primitive to Schedule under its own name (idempotent)."""
    for primitive in PRIMITIVES:
        setattr(Schedule, primitive.__name__, primitive)
