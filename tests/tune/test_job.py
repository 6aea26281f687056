# SPDX-License-Identifier: Apache-2.0
"""Jobs and results cross processes as JSON, and say what they are."""

from __future__ import annotations

import json

import attrs
import pytest
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from uir_tvm.schedule.size_points import SizePoint
from uir_tvm.target import registry
from uir_tvm.tune.job import DEFAULTS, OK, OUTCOMES, REFUSED, Job, Result, Settings
from uir_tvm.tune.spaces import design_spaces

from . import kernels


@attrs.frozen
class Subject:
    """A kernel and its target."""

    name: str
    func: tirx.PrimFunc
    target: tvm.target.Target
    points: tuple[SizePoint, ...] = ()


def subject(target: str = "uir-cpu") -> Subject:
    """The kernel of `kernels` for a target, on its host model where it has one."""
    device = "auto" if target == "uir-cpu" else "model"
    name = target.partition(":")[0]
    return Subject("relu", kernels.kernel(target=name), registry.resolve(target, device).target)


def test_a_job_survives_json() -> None:
    """With trace, settings and decisions; the trace is plain data."""
    task = subject()
    (space, *_) = design_spaces(task.func, task.target)
    settings = Settings(repeats=3, tolerance={"float32": 1e-3})
    job = Job.of(task, space, seed=7, settings=settings)
    assert job.decisions == space.decisions(space.schedule)
    assert job.decisions
    assert not job.is_default
    assert job.begun is not None
    replayed = Schedule(tvm.IRModule({"main": tvm.ir.load_json(job.begun)}), debug_mask="none")
    Trace.apply_json_to_schedule(json.loads(json.dumps(job.trace)), replayed)
    tvm.ir.assert_structural_equal(replayed.mod["main"], space.schedule.mod["main"])
    again = Job.from_json(json.loads(json.dumps(job.to_json())))
    assert again == job
    assert again.digest == job.digest


def test_the_compilers_own_schedule_has_no_trace() -> None:
    """A job of a task alone."""
    job = Job.of(subject())
    assert job.is_default
    assert job.begun is None
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_a_digest_tells_schedules_apart_and_nothing_else() -> None:
    """Seed, settings and the kernel's name do not count."""
    task = subject()
    job = Job.of(task)
    assert Job.of(attrs.evolve(task, name="other"), seed=3, settings=Settings(repeats=1)).digest == job.digest
    assert Job.of(task, design_spaces(task.func, task.target)[0]).digest != job.digest


@pytest.mark.parametrize("target", ["uir-cpu", "uir-ascend:910b2", "uir-bang:mlu590", "uir-cuda:h100"])
def test_a_job_names_its_target_so_that_it_is_found_again(target: str) -> None:
    """Hardware model and place included."""
    task = subject(target)
    job = Job.of(task)
    assert job.target == target
    assert str(registry.resolve(job.target, job.place).target) == str(task.target)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_result_survives_json(outcome: str) -> None:
    """Of every outcome; only what is right has a time."""
    seconds = (1e-3, 3e-3, 2e-3) if outcome == OK else ()
    result = Result(seconds, outcome, "why", "report", modelled=True, bound="MTE2")
    assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert result.ok == (outcome == OK)
    assert result.median == (2e-3 if result.ok else float("inf"))


def test_only_what_is_right_has_a_time() -> None:
    """Seconds of a refused candidate, and a right one without seconds, are no results."""
    with pytest.raises(ValueError, match="refused"):
        Result((1.0,), REFUSED)
    with pytest.raises(ValueError, match="ok"):
        Result()


def test_settings_are_checked() -> None:
    """What could not be measured with is refused."""
    assert DEFAULTS.repeats > 1
    for wrong in ({"repeats": 0}, {"timeout_seconds": 0}, {"min_repeat_seconds": -1}):
        with pytest.raises(ValueError, match="must be"):
            Settings.from_json(wrong)
