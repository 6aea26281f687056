# SPDX-License-Identifier: Apache-2.0
"""Jobs become times, if what they compute is right; whatever else happens is a result too."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import attrs
import numpy as np
import pytest
import tvm
import uir_tvm
from tvm.s_tir import Schedule
from uir_tvm import pipeline
from uir_tvm.runtime import timed_places
from uir_tvm.runtime.timed_places import Called
from uir_tvm.schedule.annotations import PARALLEL
from uir_tvm.tune import evaluate
from uir_tvm.tune.evaluate import BUILDING, COMPARING, TIMING, run_in_turns, run_job
from uir_tvm.tune.job import CRASHED, OK, REFUSED, WRONG, Job, Settings, trace_json
from uir_tvm.tune.spaces import design_spaces

from . import kernels
from .test_job import subject

FAST = Settings(repeats=3, min_repeat_seconds=0.0)
TARGETS = ("uir-cpu", "uir-ascend:910b2", "uir-bang:mlu590")


def _jobs(target: str = "uir-cpu") -> list[Job]:
    """The compiler's own schedule, and one of every design space."""
    task = subject(target)
    spaces = design_spaces(task.func, task.target)
    return [Job.of(task, settings=FAST)] + [Job.of(task, space, settings=FAST) for space in spaces]


@pytest.mark.parametrize("target", TARGETS)
def test_schedules_are_measured(target: str) -> None:
    """The compiler's own and those of all spaces; the first space's is the compiler's own."""
    stages: list[str] = []
    results = [run_job(job, stages.append) for job in _jobs(target)]
    modelled = target != "uir-cpu"
    for result in results:
        assert result.outcome == OK, result.said
        assert result.modelled == modelled
        assert bool(result.bound) == modelled
        assert len(result.seconds) == (1 if modelled else FAST.repeats)
        assert all(0 < second < 1 for second in result.seconds)
    assert stages[:4] == [COMPARING, BUILDING, TIMING, TIMING]
    if modelled:
        assert results[0] == results[1]


def test_modelled_time_is_that_of_the_model_run() -> None:
    """Of the kernel among the launches of the compiled model."""
    exe = uir_tvm.compile(kernels.model(), "uir-ascend:910b2", options=uir_tvm.CompileOptions(device="model"))
    x = np.zeros(kernels.SHAPE, "float32")
    (launch,) = exe.modelled(x, x).launches
    result = run_job(_jobs("uir-ascend:910b2")[0])
    assert result.seconds == (launch.seconds,)
    assert result.bound == launch.bound


def test_what_a_trace_cannot_do_is_refused() -> None:
    """A trace of another kernel, and one that is none."""
    _, job, *_ = _jobs()
    other = attrs.evolve(job, begun=str(tvm.ir.save_json(kernels.kernel(double=True))))
    for wrong in (other, attrs.evolve(job, trace=[["nothing"], []])):
        result = run_job(wrong)
        assert result.outcome == REFUSED
        assert "The trace does not apply" in result.said


def test_what_no_stage_takes_is_refused() -> None:
    """A schedule that deals loops to units twice has no iGraph: no recipe takes its place."""
    own, *_ = _jobs()
    sch = Schedule(kernels.kernel(), debug_mask="none")
    for loop in sch.get_loops("compute"):
        sch.annotate(loop, PARALLEL, 1)
    result = run_job(attrs.evolve(own, trace=trace_json(sch.trace)))
    assert result.outcome == REFUSED
    assert result.said.startswith("igraph: ")


def test_a_host_model_without_time_is_refused() -> None:
    """That of a GPU; the reason names what there would have to be."""
    result = run_job(_jobs("uir-cuda:h100")[0])
    assert result.outcome == REFUSED
    assert "counts no time" in result.said
    assert "uir-cuda on model" in result.said


def test_what_an_unknown_target_says() -> None:
    """Its name is that of another version."""
    result = run_job(attrs.evolve(_jobs()[0], target="uir-tpu"))
    assert result.outcome == REFUSED
    assert "uir-tpu" in result.said


def test_the_environment_of_a_worker_does_not_count(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database, an override or a dump that a user has set is for compilations."""
    monkeypatch.setenv("UIR_DATABASE", str(tmp_path / "none"))
    monkeypatch.setenv("UIR_DUMP_DIR", str(tmp_path / "dumps"))
    (tmp_path / "relu.igraph").write_text("nonsense")
    monkeypatch.setenv("UIR_OVERRIDE_DIR", str(tmp_path))
    assert run_job(_jobs()[0]).ok
    assert not (tmp_path / "dumps").exists()


def test_a_kernel_without_an_igraph_is_timed_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As TVM lowers it, which is what a model gets; the result says so. A host model cannot time it."""

    def refuse(*_args: Any) -> Any:
        raise uir_tvm.errors.ExtractionError("planted")

    stages = tuple(attrs.evolve(s, make=refuse) if s.name == "igraph" else s for s in pipeline.STAGES)
    monkeypatch.setattr(pipeline, "STAGES", stages)
    result = run_job(_jobs()[0])
    assert result.ok
    assert "planted" in result.said
    assert run_job(_jobs()[1]).outcome == REFUSED
    assert run_job(_jobs("uir-bang:mlu590")[0]).outcome == REFUSED


class Fake:
    """A runner without a kernel: what it computes is as it is told, and it notes when it is timed."""

    modelled = False
    bound = ""
    order: list[str] = []

    def __init__(
        self, record: pipeline.KernelRecord, _func: Any, _target: Any, arguments: Any, *_: Any
    ) -> None:
        self.name, self.arguments = record.name, arguments

    def call(self) -> Called:
        """The right results for kernels called ``right``."""
        if self.name == "raises":
            raise ZeroDivisionError("planted")
        x, y, _ = self.arguments
        return Called((x, y, np.maximum(x + y, 0) if "right" in self.name else x))

    def sample(self, _least: float) -> float:
        """One second."""
        self.order.append(self.name)
        return 1.0


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order of samples of `Fake`, which takes the place of the CPU."""
    monkeypatch.setattr(timed_places, "runner_of", Fake)
    monkeypatch.setattr(Fake, "order", [])
    return Fake.order


def test_only_what_is_right_is_timed(fake: list[str]) -> None:
    """What is not has a report with trace and elements; what raises says what."""
    job = _jobs()[1]
    wrong = run_job(attrs.evolve(job, kernel="another"))
    assert wrong.outcome == WRONG
    assert "differ" in wrong.said
    assert "apply_trace" in wrong.report
    raises = run_job(attrs.evolve(job, kernel="raises"))
    assert raises.outcome == CRASHED
    assert raises.said == "ZeroDivisionError: planted"
    assert not fake
    assert run_job(attrs.evolve(job, kernel="right")).seconds == (1.0,) * FAST.repeats


def test_turns_go_both_ways_round(fake: list[str]) -> None:
    """A sample of each in every round; what is not right takes no turns, and has its place in the results."""
    own, candidate, *_ = _jobs()
    jobs = [attrs.evolve(own, kernel="right a"), own, attrs.evolve(candidate, kernel="right b")]
    results = run_in_turns(jobs)
    assert [result.outcome for result in results] == [OK, WRONG, OK]
    assert fake == ["right a", "right b", "right b", "right a", "right a", "right b"]


def test_turns_ask_for_equivalence(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is about to enter a database is compared as it will be when it is used."""
    asked: list[str] = []
    stock = pipeline.recording

    def recording(options: Any) -> Any:
        asked.append(options.equivalence)
        return stock(options)

    monkeypatch.setattr(pipeline, "recording", recording)
    job = _jobs()[1]
    assert all(result.ok for result in run_in_turns([job]))
    assert run_job(job).ok
    assert asked == ["sampled", "none"]


def test_a_file_with_a_job_is_measured_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a report of a wrong candidate says."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps(_jobs()[0].to_json()))
    monkeypatch.setattr("sys.argv", ["work", str(path)])
    assert evaluate.main() == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == OK
    monkeypatch.setattr("sys.argv", ["work"])
    assert evaluate.main() == 2
