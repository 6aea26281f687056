# SPDX-License-Identifier: Apache-2.0
"""Optimisation: graph to graph passes, each verified.  `passes.PASSES` is the table, in order."""

from __future__ import annotations

from .optimize import Checker, Optimized, Step, optimize
from .passes import PASSES, Pass, select

__all__ = ["PASSES", "Checker", "Optimized", "Pass", "Step", "optimize", "select"]
