# SPDX-License-Identifier: Apache-2.0
"""Local processes: results in order, and candidates that crash or never end cost their own result alone."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import attrs
import pytest
from uir_tvm.errors import DeviceError
from uir_tvm.tune.job import CRASHED, OK, REFUSED, TIMEOUT, Job, Result, Settings
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.spaces import design_spaces

from .planted import CRASHES, HANGS
from .test_job import subject

FAST = Settings(repeats=2, min_repeat_seconds=0.0)


def _jobs(settings: Settings = FAST, target: str = "uir-cpu") -> list[Job]:
    """The compiler's own schedule, then one of every design space."""
    task = subject(target)
    spaces = design_spaces(task.func, task.target)
    return [Job.of(task, settings=settings)] + [Job.of(task, space, settings=settings) for space in spaces]


def _named(job: Job, name: str, seconds: float = 0.5) -> Job:
    """A job whose kernel misbehaves, if its name says so; it may take so long."""
    return attrs.evolve(job, kernel=name, settings=attrs.evolve(FAST, timeout_seconds=seconds))


@pytest.fixture(scope="module")
def measurer() -> Iterator[LocalMeasurer]:
    """One process, in which kernels misbehave that are called so."""
    with LocalMeasurer(prepare="tests.tune.planted:misbehave") as made:
        yield made


def test_results_come_in_order_and_one_by_one(measurer: LocalMeasurer) -> None:
    """A job that is refused has its place among those that are right; its process goes on."""
    good = _jobs()
    bad = attrs.evolve(good[1], trace=[[], "no trace"])
    seen: list[tuple[int, Result]] = []
    results = measurer.measure([good[0], bad, good[1]], lambda *found: seen.append(found))
    assert [result.outcome for result in results] == [OK, REFUSED, OK]
    assert seen == list(enumerate(results))
    assert all(len(results[n].seconds) == FAST.repeats and min(results[n].seconds) > 0 for n in (0, 2))
    assert "trace" in results[1].said
    assert measurer.measure([]) == []
    assert [result.outcome for result in measurer.confirm([good[0], good[1]])] == [OK, OK]
    assert measurer.confirm([]) == []


def test_a_crash_costs_one_result(measurer: LocalMeasurer) -> None:
    """What is said names the signal, the stage and the last words; the next job gets another process."""
    own, candidate, *_ = _jobs()
    results = measurer.measure([own, _named(candidate, CRASHES, 30), own])
    assert [result.outcome for result in results] == [OK, CRASHED, OK]
    for part in ("SIGABRT", "building", "last words"):
        assert part in results[1].said


def test_what_never_ends_is_ended(measurer: LocalMeasurer) -> None:
    """After its time, whatever starting the process took; in turns, all of the batch are lost."""
    own, candidate, *_ = _jobs()
    # the first one leaves the reference behind, so that only what hangs takes long
    results = measurer.measure([own, _named(candidate, HANGS, 2)])
    assert [result.outcome for result in results] == [OK, TIMEOUT]
    assert results[1].said == "still building after 2 s"
    confirmed = measurer.confirm([_named(candidate, HANGS, 1)] * 2)
    assert [result.outcome for result in confirmed] == [TIMEOUT, TIMEOUT]
    assert confirmed[0].said == "still building after 2 s"


def test_a_process_that_does_not_start_is_an_error() -> None:
    """No candidate is to blame for it."""
    with LocalMeasurer(prepare="tests.tune.planted:broken_import") as measurer:
        with pytest.raises(DeviceError, match="planted"):
            measurer.measure(_jobs()[:1])


def test_modelled_jobs_share_processes() -> None:
    """Several processes give the same modelled times as one; what they compiled goes with them."""
    jobs = _jobs(target="uir-ascend:910b2")
    with LocalMeasurer(2) as measurer:
        results = measurer.measure(jobs)
        folder = pathlib.Path(measurer._folder.name)
        assert list(folder.glob("ascendc/*.so"))
        again = measurer.measure(jobs)
    assert all(result.ok and result.modelled and result.bound for result in results)
    assert again == results
    assert not folder.exists()


def test_interrupted_jobs_leave_nothing_behind(measurer: LocalMeasurer) -> None:
    """An exception out of `on_result`, as Ctrl-C is one, ends what is measured; the measurer goes on."""
    own = _jobs()[0]

    def interrupt(_number: int, _result: Result) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measurer.measure([own, own], interrupt)
    assert [result.outcome for result in measurer.measure([own])] == [OK]


def test_processes_end_with_their_parent(measurer: LocalMeasurer) -> None:
    """A worker whose parent's end of the pipe closes is gone; no job is blamed for that."""
    own = _jobs()[0]
    measurer.measure([own])
    (process,) = measurer._idle
    number = process._process.pid
    process._pipe.close()
    assert process._process.wait(timeout=10) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert [result.outcome for result in measurer.measure([own])] == [OK]


def test_a_closed_measurer_measures_nothing() -> None:
    """Nor one without processes."""
    measurer = LocalMeasurer()
    measurer.close()
    with pytest.raises(ValueError, match="closed"):
        measurer.measure([])
    with pytest.raises(ValueError, match="workers"):
        LocalMeasurer(0)
