# SPDX-License-Identifier: Apache-2.0
"""A printer that goes wrong is never chosen: its kernels are found out, reported, and kept out."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import attrs
import pytest
import tvm
from uir_tvm import pipeline
from uir_tvm.igraph import IGraph
from uir_tvm.target import registry
from uir_tvm.tune import ScheduleDatabase, wrong
from uir_tvm.tune.candidates import DesignPoint
from uir_tvm.tune.evaluate import run_job
from uir_tvm.tune.job import WRONG, Result, Settings
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.search import TaskSearch
from uir_tvm.tune.spaces import design_spaces
from uir_tvm.tune.task import Task
from uir_tvm.tune.tune_model import tune

from . import kernels, planted

FAST = Settings(repeats=2, min_repeat_seconds=0.0)
#: Fault -> the target whose printer has it, and what the report says of it.
FAULTS = {
    ("drop_a_sync", "uir-ascend:910b2"): "is not ordered with it",
    ("drop_a_sync", "uir-bang:mlu590"): "is missing",
    ("drop_an_iop", "uir-cpu"): "differ",
    ("shift_a_bound", "uir-cpu"): "differ",
}
COUNT = 8


class Indifferent:
    """Expects the same of all candidates."""

    def predict(self, graphs: Sequence[IGraph]) -> Sequence[float]:
        """One second."""
        return [1.0] * len(graphs)


@attrs.frozen
class Measured:
    """Candidates of a search and what came of them."""

    search: TaskSearch
    found: list[tuple[DesignPoint, Result]]

    def of(self, faulty: bool) -> list[tuple[DesignPoint, Result]]:
        """Those with a fault, or without."""
        return [(c, r) for c, r in self.found if planted.is_planted(_scheduled(c)) == faulty]


def _scheduled(candidate: DesignPoint) -> tvm.tirx.PrimFunc:
    """As the pipeline meets it: with the attributes of its kernel."""
    made, func = candidate.sch.mod["main"], candidate.task.func
    for name in func.attrs.keys():
        made = made.with_attr(name, func.attrs[name])
    return made


def _task(target: str) -> Task:
    device = "auto" if target == "uir-cpu" else "model"
    func = kernels.kernel(target=target.partition(":")[0])
    return Task("relu", func, registry.resolve(target, device).target)


def _searched(task: Task) -> Measured:
    search = TaskSearch(task, design_spaces(task.func, task.target), Indifferent())
    candidates = search.propose(COUNT)
    results = [run_job(candidate.job(seed=0, settings=FAST)) for candidate in candidates]
    search.tell(candidates, results)
    return Measured(search, list(zip(candidates, results, strict=True)))


@pytest.mark.parametrize(("fault", "target"), FAULTS)
def test_a_faulty_printer_is_never_chosen(
    fault: str, target: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every candidate with the fault is wrong, with a report; the best is one without."""
    # it comes back when the test ends
    monkeypatch.setattr(pipeline, "compile_scheduled", pipeline.compile_scheduled)
    getattr(planted, fault)()
    measured = _searched(_task(target))
    faulty, right = measured.of(faulty=True), measured.of(faulty=False)
    assert faulty
    assert right
    assert {result.outcome for _, result in faulty} == {WRONG}
    assert all(result.ok for _, result in right)
    best = measured.search.best
    assert best is not None
    assert not planted.is_planted(_scheduled(best.candidate))
    for candidate, result in faulty:
        job = candidate.job(seed=0, settings=FAST)
        text = wrong.keep(job, result, tmp_path).read_text()
        assert FAULTS[fault, target] in text
        assert str(candidate.sch.trace).strip().splitlines()[-1].strip() in text
    assert len(list((tmp_path / wrong.FOLDER).glob("*.txt"))) == len(faulty)


def test_tuning_keeps_what_is_right_alone(tmp_path: pathlib.Path) -> None:
    """A whole run with the fault in the processes that measure: reports, and no record with the fault."""
    with LocalMeasurer(prepare="tests.tune.planted:drop_a_sync") as measurer:
        summary = tune(
            kernels.model(),
            "uir-bang:mlu590",
            database=tmp_path,
            trials=COUNT,
            measurer=measurer,
            settings=FAST,
            device="model",
        )
    (row,) = summary.rows
    assert row.rejected.get(WRONG)
    assert len(row.reports) == row.rejected[WRONG]
    reports = list((tmp_path / wrong.FOLDER).glob("*.txt"))
    assert len(reports) == len(row.reports)
    assert all("is missing" in path.read_text() for path in reports)
    task = _task("uir-bang:mlu590")
    for entry in ScheduleDatabase(tmp_path).entries():
        scheduled = entry.schedule().mod["main"]
        for name in task.func.attrs.keys():
            scheduled = scheduled.with_attr(name, task.func.attrs[name])
        assert not planted.is_planted(scheduled)
