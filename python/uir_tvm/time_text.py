# SPDX-License-Identifier: Apache-2.0
"""Seconds as people read them and write them."""

from __future__ import annotations

import math
import re

#: Units of time, largest first.
UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
#: Seconds of the units of durations, and a part of one.
DURATIONS = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*([hms]?)\s*")


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


def parse_duration(text: str | float) -> float:
    """Seconds of a duration: ``90s``, ``10m``, ``1h30m``, ``90`` or a number.

    Raises
    ------
    ValueError
        It is none, or not above 0.
    """
    seconds = math.nan
    if isinstance(text, int | float):
        seconds = float(text)
    elif re.fullmatch(rf"(?:{_PARTS.pattern})+", text.strip().lower()):
        seconds = sum(float(n) * DURATIONS[unit] for n, unit in _PARTS.findall(text.strip().lower()))
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} is no duration above 0")
    return seconds
