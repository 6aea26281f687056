# SPDX-License-Identifier: Apache-2.0
"""Batches go by MetaSchedule's task scheduler where the model gains, and what goes wrong comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from uir_tvm.target import registry
from uir_tvm.tune.job import LOST, REFUSED, Result
from uir_tvm.tune.journal import Trial
from uir_tvm.tune.scheduler import spend
from uir_tvm.tune.task import Task
from uir_tvm.tune.task_record import TaskRecord, total_seconds

from .fakes import FakeCandidate
from .kernels import kernel

BATCHES = 12


def record(name: str = "k", weight: int = 1, **fields: object) -> TaskRecord:
    """A task of which a batch of 8 was measured, of 100 us that were 200 us."""
    tried = {str(at): Trial("origin", name, str(at), {}, Result((1e-4,))) for at in range(8)}
    known: dict[str, object] = {"default": 2e-4, "best": 1e-4, "tried": tried}
    task = Task(name, kernel(), registry.resolve("uir-cpu").target, weight)
    return TaskRecord(task, **{**known, **fields})  # type: ignore[arg-type]


def order(records: Sequence[TaskRecord], seconds: Callable[[str, int], float], seed: int = 0) -> list[str]:
    """Who gets the batches, by what the next candidate of each takes; nobody gets more than `BATCHES`."""
    found: list[str] = []

    def take(one: TaskRecord) -> list[FakeCandidate]:
        return [FakeCandidate(one.task, 4)] if len(found) < BATCHES else []

    def measure(one: TaskRecord, candidates: Sequence[FakeCandidate]) -> list[Result]:
        found.append(one.task.name)
        return [Result((seconds(one.task.name, found.count(one.task.name)),)) for _ in candidates]

    spend(records, take, measure, seed)  # type: ignore[arg-type]
    return found


def test_first_batches_come_first_in_the_order_of_the_tasks() -> None:
    names = [f"k{n}" for n in range(4)]
    found = order([record(name) for name in names], lambda name, at: 1e-4)
    assert found[:4] == names and len(found) == BATCHES


def test_what_gains_more_gets_more() -> None:
    """One task saves some of its time with every batch, the other stays as it is."""
    found = order(
        [record("stuck"), record("gaining")],
        lambda name, at: 1e-2 - (7e-4 * at if name == "gaining" else 0.0),
    )
    assert found.count("gaining") > found.count("stuck")


def test_launches_count() -> None:
    found = order([record("once"), record("often", 100)], lambda name, at: 1e-3)
    assert found.count("often") > found.count("once")


def test_equal_seeds_give_equal_orders() -> None:
    records = [record(f"k{n}") for n in range(3)]
    assert order(records, lambda *_: 1e-3, 7) == order(records, lambda *_: 1e-3, 7)


def test_a_task_without_candidates_gets_no_more() -> None:
    asked: list[str] = []

    def take(one: TaskRecord) -> list[FakeCandidate]:
        asked.append(one.task.name)
        return []

    spend([record("a"), record("b")], take, lambda *_: [])  # type: ignore[arg-type]
    assert sorted(asked) == ["a", "b"]


def test_fewer_results_than_candidates_and_failures_go_on() -> None:
    """A batch that was cut short, and one that was refused, are no end of the others."""
    left = [[Result((1e-3,))], [Result(outcome=REFUSED)] * 2, [Result(outcome=LOST)] * 2]

    def take(one: TaskRecord) -> list[FakeCandidate]:
        return [FakeCandidate(one.task, columns) for columns in (4, 8)] if left else []

    spend([record()], take, lambda *_: left.pop())  # type: ignore[arg-type]
    assert left == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_is_raised_comes_out(error: type[BaseException]) -> None:
    """Of measuring and of proposing; nothing more is taken."""
    taken: list[int] = []

    def take(one: TaskRecord) -> list[FakeCandidate]:
        taken.append(1)
        return [FakeCandidate(one.task, 4)]

    def fails(*_: object) -> list[Result]:
        raise error

    with pytest.raises(error):
        spend([record(), record("other")], take, fails)  # type: ignore[arg-type]
    assert taken == [1]
    with pytest.raises(error):
        spend([record()], fails, lambda *_: [])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"bound": 9.7e-5}, "at 97% of its roofline"),
        ({"default": float("inf")}, "its own schedule could"),
    ],
)
def test_who_needs_nothing_more(fields: dict[str, object], why: str) -> None:
    assert record(**fields).why_stopped().startswith(why) and record().why_stopped() == ""


def test_a_bound_that_was_beaten_is_none() -> None:
    """Data in caches are faster than the roofline of the memory."""
    beyond = record(bound=2e-4)
    assert beyond.share_of_bound is None and beyond.why_stopped() == ""


def test_results_count() -> None:
    one = record()
    right = Trial("origin", "k", "a", {}, Result((5e-5, 7e-5, 6e-5)))
    one.take_up(right, FakeCandidate(one.task, 1))  # type: ignore[arg-type]
    one.take_up(Trial("origin", "k", "b", {}, Result(outcome=REFUSED)))
    assert (one.best, one.trials, one.rejected) == (6e-5, 10, 1)
    assert total_seconds([one, record(weight=2)]) == pytest.approx(2.6e-4)
