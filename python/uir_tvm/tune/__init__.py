# SPDX-License-Identifier: Apache-2.0
"""Schedules that are found by measuring: searched for, kept, found again, applied."""

from __future__ import annotations

import importlib
from typing import Any

from .database import Entry, ScheduleDatabase
from .key import Key, key_of

#: Public name -> module that defines it, imported when first used: compilation needs none of them.
_LAZY = {
    "LocalMeasurer": ".measure",
    "RpcMeasurer": ".rpc",
    "CostModel": ".cost_model",
    "Summary": "..explain.tuning_summary",
    "Task": ".task",
    "extract_tasks": ".task",
    "tune": ".tune_model",
}

__all__ = [
    "CostModel",
    "Entry",
    "Key",
    "LocalMeasurer",
    "RpcMeasurer",
    "ScheduleDatabase",
    "Summary",
    "Task",
    "extract_tasks",
    "key_of",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
