# SPDX-License-Identifier: Apache-2.0
"""The next batch goes where a second of tuning saves most of the model's time."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from uir_tvm.target import registry
from uir_tvm.tune.job import OK, REFUSED, Result
from uir_tvm.tune.scheduler import choose, total_seconds
from uir_tvm.tune.task import Task
from uir_tvm.tune.task_record import TaskRecord, TrialBatch

from .kernels import kernel


def state(name: str = "k", weight: int = 1, **fields: object) -> TaskRecord:
    """A task of which a batch of 8 was measured, of 100 us that were 200 us."""
    known: dict[str, object] = {
        "default": 2e-4,
        "best": 1e-4,
        "outcomes": Counter({OK: 8}),
        "batches": [TrialBatch(8, 2e-4, 1e-4, 4.0)],
    }
    task = Task(name, kernel(), registry.resolve("uir-cpu").target, weight)
    return TaskRecord(task, **{**known, **fields})  # type: ignore[arg-type]


def chosen(*states: TaskRecord) -> str:
    found = choose(states)
    assert found is not None
    return found.state.task.name


@pytest.mark.parametrize(
    "better",
    [
        {"weight": 3},
        {"best": 1.9e-4, "default": 4e-4},
        {"batches": [TrialBatch(8, 2e-4, 1e-4, 2.0)]},
        {"promised": 0.5},
        {"bound": 1e-6},
    ],
    ids=["launches", "seconds", "cheap trials", "promise", "far from its roofline"],
)
def test_what_is_better(better: dict[str, object]) -> None:
    """Each thing alone decides, in whatever order the tasks are."""
    usual = {"bound": 4e-5, "promised": 0.1}
    one, other = state("usual", **usual), state("better", **{**usual, **better})
    assert chosen(one, other) == chosen(other, one) == "better"


def test_what_brought_nothing_gives_way() -> None:
    """Batches without a gain, and trials without one, are worth less and less."""
    stuck = state("stuck", batches=[TrialBatch(8, 1e-4, 1e-4, 4.0)] * 2, outcomes=Counter({OK: 80}))
    assert chosen(stuck, state("gaining", weight=1)) == "gaining"


def test_first_batches_come_first() -> None:
    """Those of the largest share before others, however much a second batch of another may bring."""
    new = [state(f"new{n}", n, batches=[], outcomes=Counter(), best=2e-4) for n in (1, 3, 2)]
    found = choose([state("huge", 1000), *new])
    assert found is not None and found.state is new[1] and "first batch" in found.why


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"bound": 9.7e-5}, "at 97% of its roofline"),
        ({"default": float("inf")}, "its own schedule could not be measured"),
        ({"stopped": "every schedule was tried"}, "every schedule was tried"),
    ],
)
def test_who_gets_nothing(fields: dict[str, object], why: str) -> None:
    """And says why."""
    left = state("left", 1000, **fields)
    assert chosen(left, state("other")) == "other" and left.stopped == why
    assert choose([left]) is None


def test_a_bound_that_was_beaten_is_none() -> None:
    """Data in caches are faster than the roofline of the memory."""
    beyond = state(bound=2e-4)
    assert beyond.share_of_bound is None and choose([beyond]) is not None


def test_results_count() -> None:
    one = state()
    one.measured(Result((5e-5, 7e-5, 6e-5)))
    one.measured(Result(outcome=REFUSED))
    assert (one.best, one.trials, one.rejected) == (6e-5, 10, 1)
    assert total_seconds([one, state(weight=2)]) == pytest.approx(2.6e-4)
    assert (
        attrs.asdict(TrialBatch(8, 2e-4, 1e-4, 1.0))["trials"] == 8
        and TrialBatch(8, 2e-4, 1e-4, 1.0).saved == 0.5
    )
