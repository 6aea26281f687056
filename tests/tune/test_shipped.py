# SPDX-License-Identifier: Apache-2.0
"""The database that comes with the package is of this version, and is for reading."""

from __future__ import annotations

import pathlib

import pytest
import torch
import tvm
from tvm.s_tir import Schedule
from uir_tvm import api, kernel_graph
from uir_tvm.errors import DatabaseError
from uir_tvm.target import registry
from uir_tvm.tune import ScheduleDatabase, tune
from uir_tvm.tune.database import FOLDER, SHIPPED, folder_of, stale
from uir_tvm.tune.task import extract_tasks

from tests.asked import asked

from ..models import MODELS
from .kernels import kernel, model

#: Of which schedules are shipped for every machine: their times are modelled.
TARGETS = ("uir-ascend:910b2", "uir-bang:mlu370-x8")


def test_a_name_stands_for_the_folder_of_the_package(tmp_path: pathlib.Path) -> None:
    assert folder_of(SHIPPED) == FOLDER == ScheduleDatabase.existing(SHIPPED).folder
    assert folder_of(f"./{SHIPPED}") == pathlib.Path(SHIPPED)
    assert folder_of(tmp_path) == tmp_path


def test_modelled_schedules_are_not_stale() -> None:
    """Whoever changes figures of a hardware model or a version makes the database anew (docs/tuning.md)."""
    keys = [
        records.key for records in ScheduleDatabase(SHIPPED).all_records() if records.key.place == "model"
    ]
    assert {f"{key.target}:{key.hardware}" for key in keys} == set(TARGETS)
    assert [stale(key) for key in keys] == [""] * len(keys)


@pytest.fixture(scope="module", params=asked(["minilm"], ["minilm", "gpt2"]))
def demo_model(request: pytest.FixtureRequest) -> tvm.IRModule:
    """A model at full scale; to export it takes longer than to look up its kernels."""
    module, inputs = MODELS[request.param].build("full")
    return api.import_model(torch.export.export(module.eval(), inputs))


@pytest.mark.parametrize("target", TARGETS)
def test_demo_models_have_schedules(demo_model: tvm.IRModule, target: str) -> None:
    """Most kernels of the models are in it, and every schedule can be made again."""
    where = registry.resolve(target, "model").target
    tasks = extract_tasks(kernel_graph.build(demo_model, where), where).tasks
    found = [ScheduleDatabase(SHIPPED).best(task.func, task.target) for task in tasks]
    entries = [entry for entry in found if entry is not None]
    assert len(entries) * 2 > len(tasks)
    for entry in entries:
        assert entry.schedule().mod["main"] is not None


def test_it_is_for_reading(tmp_path: pathlib.Path) -> None:
    database, own = ScheduleDatabase(SHIPPED), ScheduleDatabase(tmp_path / "own")
    func = kernel(target=TARGETS[0])
    target = registry.resolve(TARGETS[0], "model").target
    writes = (
        lambda: database.prune(),
        lambda: database.merge(own),
        lambda: tune(model(), target, database=SHIPPED, trials=1),
        lambda: database.add(func, Schedule(func), [1.0], target),
    )
    for write in writes:
        with pytest.raises(DatabaseError, match="for reading"):
            write()
    assert own.merge(database) == len(database.entries())
