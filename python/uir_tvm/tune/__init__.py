# SPDX-License-Identifier: Apache-2.0
"""Measured schedules: kept, found again, applied."""

from __future__ import annotations

from .database import Entry, ScheduleDatabase
from .key import Key, key_of

__all__ = ["Entry", "Key", "ScheduleDatabase", "key_of"]
