# SPDX-License-Identifier: Apache-2.0
"""Schedules that are found by measuring: searched for, kept, found again, applied."""

from __future__ import annotations

from .database import Entry, ScheduleDatabase
from .key import Key, key_of
from .task import Task, extract_tasks

__all__ = ["Entry", "Key", "ScheduleDatabase", "Task", "extract_tasks", "key_of"]
