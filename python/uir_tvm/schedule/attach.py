# SPDX-License-Identifier: Apache-2.0
"""Make the primitives methods of ``tvm.s_tir.Schedule``."""

from __future__ import annotations

from tvm.s_tir import Schedule

from .group import group_broadcast, group_reduce
from .map_to_units import map_to_units
from .move_to_hierarchy import move_to_hierarchy

PRIMITIVES = (map_to_units, move_to_hierarchy, group_reduce, group_broadcast)


def attach() -> None:
    """Add every primitive to Schedule under its own name (idempotent)."""
    for primitive in PRIMITIVES:
        setattr(Schedule, primitive.__name__, primitive)
