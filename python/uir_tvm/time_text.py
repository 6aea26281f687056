# SPDX-License-Identifier: Apache-2.0
"""Seconds as people read them."""

from __future__ import annotations

#: Units of time, largest first.
UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


def time_text(seconds: float) -> str:
    """Three digits and a unit: 1.23 ms."""
    unit, size = next(((u, s) for u, s in UNITS if seconds >= s), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def duration(seconds: float) -> str:
    """A duration for people: 45 s, 9:05, 1:02:03."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
