# SPDX-License-Identifier: Apache-2.0
"""Cost models that learn from databases."""

from __future__ import annotations

import pathlib

import attrs
import pytest
from uir_tvm.tune import ScheduleDatabase
from uir_tvm.tune.cost_model import CostModel
from uir_tvm.tune.training import by_task, train

from .kernels import kernel, scheduled


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> ScheduleDatabase:
    """Two kernels on a CPU and one of them on an MLU: what its columns cost."""
    found = ScheduleDatabase(tmp_path_factory.mktemp("database"))
    for double, target, kind in (
        (False, "uir-cpu", "cpu"),
        (True, "uir-cpu", "cpu"),
        (False, "uir-bang", "bang"),
    ):
        func = kernel(double, target)
        for columns in (4, 8, 20):
            found.add(func, scheduled(func, columns, kind), [1e-6 * columns, 3e-6 * columns], target)
    return found


def test_records_are_tasks(database: ScheduleDatabase) -> None:
    """One for each kernel and target, with iGraphs of its hardware and the mean of its seconds."""
    tasks = by_task(database.entries())
    assert len(tasks) == 3 and len({origin for origin, _ in tasks}) == 2
    for rows in tasks.values():
        assert sorted(seconds for _, seconds in rows) == pytest.approx([8e-6, 16e-6, 40e-6])
        assert len({str(graph.hardware.kind) for graph, _ in rows}) == 1


def test_it_learns_across_targets(database: ScheduleDatabase) -> None:
    model = CostModel()
    assert train(model, database.entries()) == len(model) == 9
    assert model.targets == ["bang:mlu370-x8", "cpu:host"] and model.count("bang") == 3


def test_what_cannot_be_used_is_passed_over(database: ScheduleDatabase) -> None:
    """Other figures, hardware that is not known here, and a trace that does not apply."""
    entry = database.entries()[0]
    other = attrs.evolve(entry.key, model="0" * 12)
    gone = attrs.evolve(entry.key, hardware="no-such")
    broken = attrs.evolve(entry, record=[])
    spoilt = [attrs.evolve(entry, key=other), attrs.evolve(entry, key=gone), broken]
    assert by_task(spoilt) == {}
    assert train(CostModel(), [*spoilt, entry]) == 1


def test_a_database_of_nothing(tmp_path: pathlib.Path) -> None:
    model = CostModel()
    assert train(model, ScheduleDatabase(tmp_path).entries()) == len(model) == 0
