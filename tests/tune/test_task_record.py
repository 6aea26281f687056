# SPDX-License-Identifier: Apache-2.0
"""What is known of a task while it is tuned, on a machine that is busy now and then."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
from uir_tvm.tune.job import Result
from uir_tvm.tune.journal import Confirmation, Trial
from uir_tvm.tune.task_record import TaskRecord


@attrs.frozen
class Named:
    """A candidate as far as a record knows one."""

    digest: str


def record_of(default: float, **seconds: float) -> TaskRecord:
    """A record with candidates by name."""
    record = TaskRecord(task=None)  # type: ignore[arg-type]
    record.take_up(Trial("origin", "kernel", "", None, Result((default,)), 0.1))
    for name, second in seconds.items():
        record.take_up(Trial("origin", "kernel", name, {}, Result((second,))), Named(name))  # type: ignore[arg-type]
    return record


def compared(name: str, default: float, best: float, kept: bool) -> Confirmation:
    return Confirmation("origin", name, (default,), (best,) if math.isfinite(best) else (), kept)


def pending(record: TaskRecord, noise: float = 0.02) -> Any:
    found = record.pending(noise)
    return None if found is None else found.digest


def test_a_default_that_was_measured_on_a_busy_machine() -> None:
    """Beside it every candidate seems twice as fast, until the first of them is compared with it."""
    record = record_of(2.0, a=0.9, b=0.95, c=1.1)
    assert pending(record) == "a"
    record.take_up_confirmation(compared("a", 1.0, 0.97, kept=True))
    assert record.default == 1.0 and record.known == pytest.approx(0.97)
    assert record.seconds_of("a") == pytest.approx(0.97)
    assert pending(record) == "b", "it is faster than what is kept, as far as is known"
    record.take_up_confirmation(compared("b", 1.02, 1.03, kept=False))
    assert pending(record) is None, "the last one is slower than the default"
    assert record.best == pytest.approx(0.97)


def test_a_busy_comparison_changes_no_default() -> None:
    """What counts of it is the ratio."""
    record = record_of(1.0, a=0.9)
    record.take_up_confirmation(compared("a", 3.0, 2.4, kept=True))
    assert record.default == 1.0
    assert record.seconds_of("a") == pytest.approx(0.8)
    assert record.fastest is not None and record.fastest[1] == pytest.approx(0.8)


def test_one_that_failed_beside_the_default_is_no_best() -> None:
    record = record_of(1.0, a=0.5)
    record.take_up_confirmation(compared("a", 1.0, math.inf, kept=False))
    assert record.fastest is None and record.best == 1.0
