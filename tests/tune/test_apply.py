# SPDX-License-Identifier: Apache-2.0
"""Models take the schedules of a database, compared where they are new, and only right ones."""

from __future__ import annotations

import logging
import pathlib

import numpy as np
import pytest
import uir_tvm
from uir_tvm import CompileOptions
from uir_tvm.errors import DatabaseError, EquivalenceError
from uir_tvm.target import registry
from uir_tvm.tune import ScheduleDatabase, key_of
from uir_tvm.tune.records import RECORDS

from .kernels import SHAPE, kernel, model, scheduled

#: Kind of hardware of each target that schedules are kept for here.
KINDS = {"uir-cpu": "cpu", "uir-cuda": "cuda", "uir-ascend": "ascend", "uir-bang": "bang"}


@pytest.fixture(autouse=True)
def cache(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> pathlib.Path:
    """A machine that has compared nothing yet."""
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "cache"))
    caplog.set_level(logging.WARNING)  # the command line changes levels
    return tmp_path / "cache"


def recipes(exe: uir_tvm.Executable) -> list[str]:
    return [kernel.recipe for kernel in exe.info.kernels]


@pytest.mark.parametrize("target", KINDS)
def test_a_model_takes_its_schedule(target: str, tmp_path: pathlib.Path, cache: pathlib.Path) -> None:
    """It computes the same, the report says where the schedule comes from, and it is compared once."""
    func, options = kernel(target=target), CompileOptions(device="auto" if target == "uir-cpu" else "model")
    exe = uir_tvm.compile(model(), target, options=options)
    assert recipes(exe) == ["elementwise"]
    place = registry.resolve(target, options.device).target
    ScheduleDatabase(tmp_path / "db").add(func, scheduled(func, kind=KINDS[target]), [1e-3], place)
    tuned = uir_tvm.compile(model(), target, database=tmp_path / "db", options=options)
    assert recipes(tuned) == ["database"]
    assert tuned.info.kernels[0].texts["igraph"] != exe.info.kernels[0].texts["igraph"]
    x, y = (np.random.default_rng(n).standard_normal(SHAPE).astype("float32") for n in range(2))
    np.testing.assert_array_equal(tuned(x, y), exe(x, y))
    (mark,) = (cache / "compared").iterdir()
    before = mark.stat().st_mtime_ns
    uir_tvm.compile(model(), target, database=tmp_path / "db", options=options)
    assert mark.stat().st_mtime_ns == before


def test_a_schedule_of_something_else_is_refused(
    tmp_path: pathlib.Path,
    cache: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    differences: list[EquivalenceError],
) -> None:
    """A record that says to be of this kernel and computes twice as much: found by comparison, not used."""
    wrong = kernel(True)
    ScheduleDatabase(tmp_path / "db").add(kernel(), scheduled(wrong), [1e-9], "uir-cpu", begun=wrong)
    exe = uir_tvm.compile(model(), database=tmp_path / "db")
    assert recipes(exe) == ["elementwise"] and not (cache / "compared").exists()
    assert len(differences) == 1 and differences.pop().witness
    assert any("its schedule of the database is refused" in record.getMessage() for record in caplog.records)
    x = np.ones(SHAPE, "float32")
    np.testing.assert_array_equal(exe(x, x), 2 * x)


def test_a_trace_that_does_not_apply_is_passed_over(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    func = kernel()
    ScheduleDatabase(tmp_path / "db").add(func, scheduled(func), [1e-3], "uir-cpu")
    records = tmp_path / "db" / key_of("uir-cpu").folder / RECORDS
    records.write_text(records.read_text().replace('"Split"', '"NoSplit"'))
    assert recipes(uir_tvm.compile(model(), database=tmp_path / "db")) == ["elementwise"]
    assert any("does not apply" in record.getMessage() for record in caplog.records)


def test_the_environment_names_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    func = kernel()
    ScheduleDatabase(tmp_path / "db").add(func, scheduled(func), [1e-3], "uir-cpu")
    monkeypatch.setenv("UIR_DATABASE", str(tmp_path / "db"))
    assert recipes(uir_tvm.compile(model())) == ["database"]


def test_an_absent_or_damaged_database_ends_the_compilation(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DatabaseError, match="no database"):
        uir_tvm.compile(model(), database=tmp_path / "none")
    folder = tmp_path / "db" / "x"
    folder.mkdir(parents=True)
    (folder / "key.json").write_text("[]")
    with pytest.raises(DatabaseError, match="holds no schedules"):
        uir_tvm.compile(model(), database=tmp_path / "db")
