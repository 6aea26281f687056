# SPDX-License-Identifier: Apache-2.0
"""What is known of a task while it is tuned, on a machine that is busy now and then."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
from uir_tvm.tune.job import Result
from uir_tvm.tune.journal import Confirmation
from uir_tvm.tune.lane import Lane
from uir_tvm.tune.scheduler import TaskState


@attrs.frozen
class Named:
    """A candidate as far as a lane knows one."""

    digest: str


def lane_of(default: float, **seconds: float) -> Lane:
    """A lane with candidates by name."""
    lane = Lane(TaskState(task=None))  # type: ignore[arg-type]
    lane.take_up_default(Result((default,)), 0.1)
    for name, second in seconds.items():
        lane.tried[name] = Named(name), second
        lane.state.measured(Result((second,)))
    return lane


def compared(name: str, default: float, best: float, kept: bool) -> Confirmation:
    return Confirmation("origin", name, (default,), (best,) if math.isfinite(best) else (), kept)


def pending(lane: Lane, noise: float = 0.02) -> Any:
    found = lane.pending(noise)
    return None if found is None else found.digest


def test_a_default_that_was_measured_on_a_busy_machine() -> None:
    """Beside it every candidate seems twice as fast, until the first of them is compared with it."""
    lane = lane_of(2.0, a=0.9, b=0.95, c=1.1)
    assert pending(lane) == "a"
    lane.take_up_confirmation(compared("a", 1.0, 0.97, kept=True))
    assert lane.state.default == 1.0 and lane.known == pytest.approx(0.97)
    assert lane.seconds_of("a") == pytest.approx(0.97)
    assert pending(lane) == "b", "it is faster than what is kept, as far as is known"
    lane.take_up_confirmation(compared("b", 1.02, 1.03, kept=False))
    assert pending(lane) is None, "the last one is slower than the default"
    assert lane.state.best == pytest.approx(0.97)


def test_a_busy_comparison_changes_no_default() -> None:
    """What counts of it is the ratio."""
    lane = lane_of(1.0, a=0.9)
    lane.take_up_confirmation(compared("a", 3.0, 2.4, kept=True))
    assert lane.state.default == 1.0
    assert lane.seconds_of("a") == pytest.approx(0.8)
    assert lane.best is not None and lane.best[1] == pytest.approx(0.8)


def test_one_that_failed_beside_the_default_is_no_best() -> None:
    lane = lane_of(1.0, a=0.5)
    lane.take_up_confirmation(compared("a", 1.0, math.inf, kept=False))
    assert lane.best is None and lane.state.best == 1.0
