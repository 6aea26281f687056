# SPDX-License-Identifier: Apache-2.0
"""Durations and numbers of trials as people write them."""

from __future__ import annotations

import pytest
from uir_tvm.errors import TuneError
from uir_tvm.time_text import duration
from uir_tvm.tune.budget import Budget, parse_seconds


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
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "0", "0s", "-1m", "10 minutes", "1d", "m", "nan", "inf", 0, -3.0]
)
def test_what_is_none(text: str | float) -> None:
    with pytest.raises(TuneError, match="no time to tune for"):
        parse_seconds(text)


@pytest.mark.parametrize("trials", [0, -1, True, 2.5])
def test_trials_that_cannot_be_made(trials: int) -> None:
    with pytest.raises(TuneError, match="cannot be made"):
        Budget(trials=trials)


def test_ten_minutes_by_default() -> None:
    """Unless a number of trials is given."""
    assert Budget.of(None, None) == Budget(600.0)
    assert Budget.of(None, 5) == Budget(None, 5)
    assert Budget.of("1m", 5) == Budget(60.0, 5) and str(Budget.of("1m", 5)) == "1:00 or 5 trials"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1:01"), (3723, "1:02:03")])
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
