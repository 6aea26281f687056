# SPDX-License-Identifier: Apache-2.0
"""Make the primitives methods of ``tvm.s_tir.Schedule``."""

from __future__ import annotations

import functools

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import _type_checker

from .group import group_broadcast, group_reduce, group_share
from .map_to_units import map_to_units
from .move_to_hierarchy import move_to_hierarchy
from .pipeline_loop import pipeline

PRIMITIVES = (map_to_units, move_to_hierarchy, group_reduce, group_broadcast, group_share, pipeline)


def attach() -> None:
    """Add every primitive to Schedule under its own name (idempotent)."""
    for primitive in PRIMITIVES:
        setattr(Schedule, primitive.__name__, primitive)
    _remember_annotations()


def _remember_annotations() -> None:
    """Let TVM take the annotations of its instructions apart once, not whenever one is called.

    Each call checks the types of its arguments; finding out what an annotation says takes most of that.
    """
    known = _type_checker._dispatcher
    if not hasattr(known, "cache_info"):
        _type_checker._dispatcher = functools.cache(known)
