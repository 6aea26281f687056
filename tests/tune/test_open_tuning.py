# SPDX-License-Identifier: Apache-2.0
"""A schedule for all sizes is right and faster at representative ones, is kept with these, and is used."""

from __future__ import annotations

import json
import logging
import pathlib
from typing import Any

import attrs
import numpy as np
import pytest
import uir_tvm
from uir_tvm import CompileOptions, pipeline
from uir_tvm.errors import ExtractionError
from uir_tvm.explain.tuning_summary import SizeTime
from uir_tvm.igraph.space import Size
from uir_tvm.runtime import timed_places
from uir_tvm.stages import Variant
from uir_tvm.target import registry
from uir_tvm.tune import ScheduleDatabase, evaluate, extract_tasks, tune
from uir_tvm.tune.candidates import Checker
from uir_tvm.tune.cost_model import CostModel
from uir_tvm.tune.evaluate import run_in_turns, run_job
from uir_tvm.tune.job import OK, WRONG, Job, Result, Settings
from uir_tvm.tune.journal import Trial
from uir_tvm.tune.representative_graphs import AtSizes, bound_of, graph_at, learned_of
from uir_tvm.tune.search import TaskSearch
from uir_tvm.tune.spaces import design_spaces
from uir_tvm.tune.task import Task
from uir_tvm.tune.task_record import TaskRecord
from uir_tvm.tune.training import train
from uir_tvm.verify.agreement import Reference

from ..asked import asked
from .open_models import WIDTH, InProcess, expected, open_kernel, rows_module

SIZES = ["n=1:3", "n=40"]
#: Where times are modelled.
MODELLED = ["uir-ascend", "uir-bang"]


def task_of(target: str = "uir-bang") -> Task:
    device = "auto" if target == "uir-cpu" else "model"
    return extract_tasks(open_kernel(), target, device, sizes=SIZES).tasks[0]


@pytest.mark.parametrize("target", asked(["uir-cpu"], ["uir-cpu", *MODELLED]))
def test_a_candidate_is_timed_at_each_size(target: str) -> None:
    """Through JSON, the own schedule and another beside it; the score is the weighted sum."""
    task = task_of(target)
    space = design_spaces(task.func, task.target)[0]
    settings = Settings(repeats=2, min_repeat_seconds=0)
    jobs = [Job.of(task, settings=settings), Job.of(task, space, settings=settings)]
    jobs = [Job.from_json(json.loads(json.dumps(job.to_json()))) for job in jobs]
    assert jobs[0].points == task.points
    for result in run_in_turns(jobs):
        assert result.outcome == OK, result.said
        assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result
        assert len(result.by_size) == 2 and result.modelled == (target in MODELLED)
        sums = [0.75 * small + 0.25 * large for small, large in zip(*result.by_size, strict=True)]
        assert result.seconds == pytest.approx(sums)


def test_what_is_wrong_at_one_size_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says at which."""
    task = task_of("uir-cpu")

    def planted(text: str, seed: int) -> Reference:
        made = real(text, seed)
        large = made.arguments[0].shape[0] == 40
        return attrs.evolve(made, results=[[r + large for r in row] for row in made.results])

    real = evaluate.reference_of
    monkeypatch.setattr(evaluate, "reference_of", planted)
    result = run_job(Job.of(task, design_spaces(task.func, task.target)[0]))
    assert result.outcome == WRONG and "at n = 40: " in result.said


def test_each_size_counts_by_its_ratio() -> None:
    """A long call does not decide alone: twice as fast at n = 1 is worth more than 10 % of a long call."""
    task = task_of("uir-cpu")
    record = TaskRecord(task)
    job = Job.of(task)
    assert record.weighted(job) is job  # nothing is known of the default yet
    own = Result((0.75e-6 + 0.25e-3,), by_size=((1e-6,), (1e-3,)))
    record.take_up(Trial(task.origin, task.name, "", None, own))
    weights = [point.weight for point in record.weighted(job).points]

    def score(small: float, large: float) -> float:
        return weights[0] * small + weights[1] * large

    assert score(1e-6, 1e-3) == pytest.approx(own.median)
    assert score(0.5e-6, 1e-3) / own.median == pytest.approx(1 - 0.75 / 2)
    assert score(0.5e-6, 1e-3) < score(1e-6, 0.9e-3)


def test_cost_models_see_graphs_at_the_sizes() -> None:
    """They predict and learn of static graphs alone; the default's score is its mean seconds."""
    task = task_of()
    space = design_spaces(task.func, task.target)[0]
    candidate = Checker(task).candidate(space, space.schedule.trace)
    assert candidate is not None
    graphs = [graph_at(candidate.graph, point) for point in task.points]
    assert not any(graph.sizes for graph in graphs)
    model = CostModel()
    seconds = model.predict(graphs)
    assert AtSizes(model, task.points, candidate.graph).predict([candidate.graph])[0] == pytest.approx(
        0.75 * seconds[0] + 0.25 * seconds[1]
    )
    first = AtSizes(model, task.points, None)
    assert list(first.predict([])) == [] and first.predict([candidate.graph])[0] > 0
    assert 0 < bound_of(candidate.graph, task.points) < 0.75 * seconds[0] + 0.25 * seconds[1]
    result = Result((1e-6,), by_size=((1e-6,), (2e-6,)))
    rows = list(learned_of("a", task.points, [candidate.graph, candidate.graph], [result, Result((), WRONG)]))
    assert [(len(g), s) for _, g, s in rows] == [(1, [1e-6]), (1, [2e-6])]
    assert len({origin for origin, *_ in rows}) == 2


def test_the_search_proposes_schedules_for_all_sizes() -> None:
    """Each is verified with its sizes open."""
    task = task_of()
    search = TaskSearch(task, design_spaces(task.func, task.target), CostModel())
    proposed = search.propose(1)
    assert proposed and all(candidate.graph.sizes for candidate in proposed)
    assert search.bound > 0


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model tuned on the host model of an MLU: its database, the summary, who measured."""
    folder, measurer = tmp_path_factory.mktemp("tuned"), InProcess()
    summary = tune(
        rows_module(),
        "uir-bang",
        database=folder / "db",
        trials=2,
        sizes=["n=1,m=9:3", "n=8,m=8"],
        device="model",
        measurer=measurer,
    )
    return folder / "db", summary, measurer


def test_what_is_faster_is_kept_with_its_times_by_size(tuned: Any) -> None:
    """The key has symbols; the record has sizes and weights, and both times at each."""
    folder, summary, measurer = tuned
    (row,) = summary.rows
    assert row.gain is not None and row.gain > 1
    (entry, *_) = ScheduleDatabase(folder).entries()
    assert [(tuple(t.sizes.values()), t.weight) for t in entry.by_size] == [((1, 9), 0.75), ((8, 8), 0.25)]
    assert entry.size_names == ("n", "m") and row.by_size == entry.by_size
    ratio = sum(t.weight * t.seconds / t.default for t in entry.by_size)
    assert ratio == pytest.approx(1 / row.gain)
    assert any("at n = 1, m = 9 (75%)" in line for line in summary.lines())
    assert measurer.confirmed and all(len(job.points) == 2 for job in measurer.confirmed)
    entries = ScheduleDatabase(folder).entries()
    assert train(CostModel(), entries) == 2 * len(entries)


def test_nothing_is_measured_twice(tuned: Any) -> None:
    """The same list goes on where it ended."""
    folder, *_ = tuned
    again, sizes = InProcess(), ["n=1,m=9:3", "n=8,m=8"]
    common: dict[str, Any] = {"database": folder, "trials": 2, "device": "model", "sizes": sizes}
    assert tune(rows_module(), "uir-bang", measurer=again, **common).resumed == 2
    assert not again.jobs


def test_the_last_list_decides(tmp_path: pathlib.Path) -> None:
    """Times of different lists do not compare: each keeps its fastest, and that of the last one is taken."""
    place, func = registry.resolve("uir-cpu").target, open_kernel()
    space = design_spaces(func, place)[0]
    database = ScheduleDatabase(tmp_path / "db")
    for rows, seconds in ((8, 1e-6), (8, 2e-6), (9, 5e-6), (9, 4e-6)):
        times = [SizeTime({"n": rows}, 1.0, 1e-5, seconds, f"n = {rows}")]
        database.add(func, space.schedule, [seconds], place, begun=space.begun, by_size=times)
    best = database.best(func, place)
    assert best is not None and best.mean == 4e-6
    assert [entry.mean for entry in database.entries()] == [4e-6, 5e-6, 1e-6, 2e-6]
    assert database.prune(1) == 2 and database.best(func, place) == best


@pytest.mark.parametrize("names", asked([("m", "n")], [("n", "m"), ("m", "n"), ("batch", "length")]))
def test_models_take_it_for_all_sizes(names: tuple[str, str], tuned: Any) -> None:
    """Whatever their symbols are called (two change places), once for all shapes, with equal results."""
    folder, *_ = tuned
    options = CompileOptions(device="model", equivalence="sampled")
    exe = uir_tvm.compile(rows_module(*names), "uir-bang", database=folder, options=options)
    rng = np.random.default_rng(0)
    for shape in ((3, 5, WIDTH), (9, 2, WIDTH)):
        x = rng.standard_normal(shape).astype("float32")
        np.testing.assert_allclose(exe(x), expected(x), rtol=1e-5)
        assert [kernel.recipe for kernel in exe.specialized(x).info.kernels] == ["database"]
    (program,) = exe.report()["programs"]
    assert program["kernels_for_all_sizes"] == 1 and not exe.report()["imported_by_shape"]


def test_a_kernel_takes_it_too(tmp_path: pathlib.Path) -> None:
    """One kernel as a model, on uir-cpu, with the schedule of an equal function."""
    place = registry.resolve("uir-cpu").target
    func = open_kernel()
    space = design_spaces(func, place)[0]
    ScheduleDatabase(tmp_path / "db").add(func, space.schedule, [1e-6], place, begun=space.begun)
    exe = uir_tvm.compile(open_kernel("rows"), database=tmp_path / "db")
    x = np.random.default_rng(0).standard_normal((11, WIDTH)).astype("float32")
    np.testing.assert_allclose(exe(x), expected(x / 2), rtol=1e-5)
    assert [kernel.recipe for kernel in exe.specialized(x).info.kernels] == ["database"]


def test_what_a_stage_refuses_leaves_the_default(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason."""
    place = registry.resolve("uir-cpu").target
    func = open_kernel()
    space = design_spaces(func, place)[0]
    ScheduleDatabase(tmp_path / "db").add(func, space.schedule, [1e-6], place, begun=space.begun)

    def refusing(stage: pipeline.Stage) -> pipeline.Stage:
        def make(record: pipeline.KernelRecord, context: pipeline.StageContext) -> Any:
            if record.measured is not None:
                raise ExtractionError("planted")
            return stage.make(record, context)

        return attrs.evolve(stage, make=make) if stage.name == "igraph" else stage

    monkeypatch.setattr(pipeline, "STAGES", tuple(map(refusing, pipeline.STAGES)))
    caplog.set_level(logging.WARNING)
    exe = uir_tvm.compile(open_kernel(), database=tmp_path / "db")
    x = np.random.default_rng(0).standard_normal((11, WIDTH)).astype("float32")
    np.testing.assert_allclose(exe(x), expected(x / 2), rtol=1e-5)
    assert [kernel.recipe for kernel in exe.specialized(x).info.kernels] == ["normalization"]
    assert "its schedule of the database is refused" in caplog.text and "planted" in caplog.text


def test_the_default_is_timed_with_its_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    """At sizes that a variant serves it is what runs; elsewhere the kernel for all sizes is."""
    task, run = task_of(), []
    real = timed_places.runner_of

    def noted(record: pipeline.KernelRecord, *given: Any) -> Any:
        run.append(record.name)
        return real(record, *given)

    monkeypatch.setattr(timed_places, "runner_of", noted)
    made = pipeline.compile_kernel

    def with_variant(func: Any, target: Any, name: str) -> pipeline.KernelRecord:
        record = made(func, target, name)
        record.variants = (Variant((Size("n", 1, 1),), attrs.evolve(record, name="alone", variants=())),)
        return record

    monkeypatch.setattr(pipeline, "compile_kernel", with_variant)
    assert run_job(Job.of(task)).outcome == OK
    assert run == ["alone", "softmax"]
