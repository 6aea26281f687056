# SPDX-License-Identifier: Apache-2.0
"""Durations as people write and read them."""

from __future__ import annotations

import pytest
from uir_tvm.time_text import duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("1h", 3600),
        ("1h30m", 5400),
        (" 2H ", 7200),
        ("1.5m", 90),
        ("45", 45),
        (2.5, 2.5),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "0", "0s", "-1m", "10 minutes", "1d", "m", "nan", "inf", 0, -3.0]
)
def test_what_is_none(text: str | float) -> None:
    with pytest.raises(ValueError, match="no duration"):
        parse_duration(text)


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1:01"), (3723, "1:02:03")])
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
