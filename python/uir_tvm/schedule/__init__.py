# SPDX-License-Identifier: Apache-2.0
"""Schedules: the primitives, and the recipe that a PrimFunc gets by itself."""

from .attach import PRIMITIVES, attach
from .begin import is_scheduled
from .driver import apply_default
from .group import group_broadcast, group_reduce, group_share
from .map_to_units import map_to_units
from .move_to_hierarchy import move_to_hierarchy
from .pipeline_loop import pipeline

attach()

__all__ = [
    "PRIMITIVES",
    "apply_default",
    "attach",
    "group_broadcast",
    "group_reduce",
    "group_share",
    "is_scheduled",
    "map_to_units",
    "move_to_hierarchy",
    "pipeline",
]
