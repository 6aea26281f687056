# SPDX-License-Identifier: Apache-2.0
"""Planted faults: a table of mutators of iGraphs, and what decides whether one was caught."""

from .table import FAULTS, Fault

__all__ = ["FAULTS", "Fault"]
