# SPDX-License-Identifier: Apache-2.0
"""A session spends its budget where it pays, keeps all that it learns, and ends when it is asked to."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Callable, Sequence

import pytest
from uir_tvm.tune import ScheduleDatabase
from uir_tvm.tune.budget import Budget
from uir_tvm.tune.job import CRASHED, LOST, REFUSED, WRONG, Job, Result
from uir_tvm.tune.session import BATCH, Session

from .fakes import COLUMNS, DEFAULT, FakeMeasurer, fastest, seconds_of, session, tasks, time_of

EVERYTHING = len(COLUMNS)


def by_name(made: Session) -> dict[str, object]:
    return {record.task.name: record for record in made.known.records.values()}


def best(folder: pathlib.Path) -> dict[str, float]:
    """What the database has of each kernel."""
    found = {task.name: ScheduleDatabase(folder).best(task.func, task.target) for task in tasks()}
    return {name: entry.mean for name, entry in found.items() if entry is not None}


def test_everything_is_tried(tmp_path: pathlib.Path) -> None:
    """With trials to spare all schedules are measured, and the fastest one of each kernel is kept."""
    measurer = FakeMeasurer()
    made = session(tmp_path, measurer, Budget(trials=1000))
    made.run()
    assert made.ended == "nothing left to try" and made.known.trials == 2 * EVERYTHING
    assert best(tmp_path) == {name: seconds_of(name, fastest(name)) for name in ("once", "thrice")}
    assert all(state.stopped == "every schedule was tried" for state in made.known.states)


def test_defaults_and_one_batch_come_first(tmp_path: pathlib.Path) -> None:
    """The larger share of the model's time first; then the next batches go where more is gained."""
    clock = Clock()
    measurer = FakeMeasurer(result=ticking(clock, 1.0))
    session(tmp_path, measurer, Budget(trials=4 * BATCH), clock=clock).run()
    assert [job.is_default for job in measurer.jobs[:3]] == [True, True, False]
    names = [job.kernel for job in measurer.jobs[2:]]
    assert names[: 2 * BATCH] == ["thrice"] * BATCH + ["once"] * BATCH
    assert names[2 * BATCH :].count("thrice") > names[2 * BATCH :].count("once")


def test_resumes(tmp_path: pathlib.Path) -> None:
    """Trials count over runs; nothing is measured again, the compiler's own schedules included."""
    first, second, third = FakeMeasurer(), FakeMeasurer(), FakeMeasurer()
    session(tmp_path, first, Budget(trials=20)).run()
    made = session(tmp_path, second, Budget(trials=50))
    made.run()
    assert (made.known.resumed, made.known.trials) == (20, 30)
    session(tmp_path, third, Budget(trials=50)).run()
    assert third.jobs == []
    measured = [(job.kernel, job.digest) for job in first.jobs + second.jobs]
    assert len(measured) == len(set(measured)) == 52


def test_only_what_is_faster_again_is_kept(tmp_path: pathlib.Path) -> None:
    """A schedule whose second measurement, beside the default's, shows no gain stays out."""
    measurer = FakeMeasurer()
    lucky = set[str]()

    def once_lucky(job: Job) -> Result:
        seconds = seconds_of(job.kernel, job.decisions.get("columns"))
        if job.digest in lucky:
            return Result((DEFAULT,))
        lucky.add(job.digest)
        return Result((DEFAULT if job.is_default else seconds,))

    measurer.result = once_lucky
    session(tmp_path, measurer, Budget(trials=1000)).run()
    assert measurer.confirmed and best(tmp_path) == {}


def test_modelled_times_are_kept_at_once(tmp_path: pathlib.Path) -> None:
    """They do not vary: after every batch the best is checked by itself, and is in the database."""
    measurer = FakeMeasurer()
    session(tmp_path, measurer, Budget(trials=1000), modelled=True).run()
    assert measurer.confirmed and not any(job.is_default for job in measurer.confirmed)
    assert best(tmp_path) == {name: seconds_of(name, fastest(name)) for name in ("once", "thrice")}


@pytest.mark.parametrize("outcome", [REFUSED, WRONG, CRASHED])
def test_what_is_not_right_is_not_tried_again(outcome: str, tmp_path: pathlib.Path) -> None:
    """It is in the journal, in no database, and a report of a wrong one is in a file."""

    def some_fail(job: Job) -> Result:
        bad = not job.is_default and job.decisions["columns"] % 2 == 0
        return Result(outcome=outcome, said="because", report="all of it") if bad else time_of(job)

    measurer = FakeMeasurer(result=some_fail)
    made = session(tmp_path, measurer, Budget(trials=1000))
    made.run()
    odd = [columns for columns in COLUMNS if columns % 2]
    assert best(tmp_path) == {n: min(seconds_of(n, c) for c in odd) for n in ("once", "thrice")}
    assert all(state.outcomes[outcome] == EVERYTHING // 2 for state in made.known.states)
    reports = sorted((tmp_path / "rejected").glob("*.txt"))
    assert len(reports) == (EVERYTHING if outcome == WRONG else 0)
    again = FakeMeasurer()
    session(tmp_path, again, Budget(trials=1000)).run()
    assert again.jobs == []


def test_lost_candidates_are_tried_again(tmp_path: pathlib.Path) -> None:
    """Where nobody is left to measure the session says so, and another one measures them."""

    def nobody(job: Job) -> Result:
        return time_of(job) if job.is_default else Result(outcome=LOST, said="no server")

    made = session(tmp_path, FakeMeasurer(result=nobody), Budget(trials=1000))
    made.run()
    assert made.ended == "nobody is left to measure" and made.known.trials == 0
    made = session(tmp_path, FakeMeasurer(), Budget(trials=1000))
    made.run()
    assert made.known.trials == 2 * EVERYTHING


def test_a_default_that_fails(tmp_path: pathlib.Path) -> None:
    """Its kernel gets no trials: there is nothing to be faster than."""

    def one_fails(job: Job) -> Result:
        bad = job.is_default and job.kernel == "thrice"
        return Result(outcome=REFUSED, said="no room\nat all") if bad else time_of(job)

    measurer = FakeMeasurer(result=one_fails)
    made = session(tmp_path, measurer, Budget(trials=1000))
    made.run()
    assert {job.kernel for job in measurer.jobs if not job.is_default} == {"once"}
    stopped = {state.task.name: state.stopped for state in made.known.states}
    assert stopped["thrice"] == "its own schedule is not measured (refused: no room)"


class Clock:
    """Seconds that pass as they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ticking(clock: Clock, seconds: float) -> Callable[[Job], Result]:
    """A machine on which a job takes so long."""

    def measure(job: Job) -> Result:
        clock.now += seconds
        return time_of(job)

    return measure


@pytest.mark.parametrize("seconds", [20.0, 60.0, 300.0])
def test_a_budget_of_time_is_kept(seconds: float, tmp_path: pathlib.Path) -> None:
    """All of it, confirmations included: what was found first in the last moment is in the database too."""
    clock = Clock()
    measurer = FakeMeasurer(result=ticking(clock, 1.0))
    made = session(tmp_path, measurer, Budget(seconds=seconds), clock=clock)
    made.run()
    assert made.seconds <= seconds + 2
    assert made.ended == ("time is up" if seconds < 100 else "nothing left to try")
    assert all(made.known.pending(record) is None for record in made.known.records.values())
    assert best(tmp_path)


def test_time_that_confirming_did_not_take_is_spent(tmp_path: pathlib.Path) -> None:
    """The first confirmation is slow, as the workers may be; those after it leave time for more trials."""
    clock = Clock()
    measurer = FakeMeasurer(result=ticking(clock, 0.5))
    confirm, slow = measurer.confirm, [14.0]

    def first_slow(jobs: Sequence[Job]) -> list[Result]:
        clock.now += slow.pop() if slow else 0.0
        return confirm(jobs)

    measurer.confirm = first_slow  # type: ignore[method-assign]
    made = session(tmp_path, measurer, Budget(seconds=50.0), clock=clock)
    made.run()
    assert made.ended == "time is up" and 45 <= made.seconds <= 52
    assert all(made.known.pending(record) is None for record in made.known.records.values())


def test_ctrl_c_ends_with_what_there_is(tmp_path: pathlib.Path) -> None:
    """The batch is not finished, the best is confirmed, and handlers are as before."""
    before = signal.getsignal(signal.SIGINT)
    count = 0

    def interrupted(job: Job) -> Result:
        nonlocal count
        count += 1
        if count == 12:
            os.kill(os.getpid(), signal.SIGINT)
        return time_of(job)

    made = session(tmp_path, FakeMeasurer(result=interrupted), Budget(trials=1000))
    made.run()
    assert made.ended == "interrupted" and made.interrupt.signal == signal.SIGINT
    assert made.known.trials == 10 and best(tmp_path)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_twice_ends_at_once(tmp_path: pathlib.Path) -> None:
    def interrupted(job: Job) -> Result:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return time_of(job)

    with pytest.raises(KeyboardInterrupt):
        session(tmp_path, FakeMeasurer(result=interrupted), Budget(trials=1000)).run()
    again = session(tmp_path, FakeMeasurer(), Budget(trials=8))
    again.run()
    assert again.known.trials == 8
