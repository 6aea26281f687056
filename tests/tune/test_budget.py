# SPDX-License-Identifier: Apache-2.0
"""Durations and numbers of trials as people write them."""

from __future__ import annotations

import pytest
from uir_tvm.errors import TuneError
from uir_tvm.tune.budget import Budget


@pytest.mark.parametrize("text", ["soon", 0, "0s"])
def test_no_time(text: str | float) -> None:
    with pytest.raises(TuneError, match="no time to tune for"):
        Budget.of(text, None)


@pytest.mark.parametrize("trials", [0, -1, True, 2.5])
def test_trials_that_cannot_be_made(trials: int) -> None:
    with pytest.raises(TuneError, match="cannot be made"):
        Budget(trials=trials)


def test_ten_minutes_by_default() -> None:
    """Unless a number of trials is given."""
    assert Budget.of(None, None) == Budget(600.0)
    assert Budget.of(None, 5) == Budget(None, 5)
    assert Budget.of("1m", 5) == Budget(60.0, 5) and str(Budget.of("1m", 5)) == "1:00 or 5 trials"
