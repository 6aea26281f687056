# SPDX-License-Identifier: Apache-2.0
"""Optimisation: graph to graph passes, each verified.  `passes.FIRST` and `passes.PASSES` are the table."""

from __future__ import annotations

from .complete import complete, completed
from .optimize import Checker, Optimized, PassRecord, optimize
from .passes import FIRST, PASSES, Pass, select

__all__ = [
    "FIRST",
    "PASSES",
    "Checker",
    "Optimized",
    "Pass",
    "PassRecord",
    "complete",
    "completed",
    "optimize",
    "select",
]
