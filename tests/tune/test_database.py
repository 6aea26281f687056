# SPDX-License-Identifier: Apache-2.0
"""Schedules are kept, found again by what their kernels compute, merged and pruned."""

from __future__ import annotations

import json
import logging
import pathlib

import pytest
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.database import JSONDatabase
from tvm_ffi.structural import structural_equal
from uir_tvm.errors import DatabaseError
from uir_tvm.tune import ScheduleDatabase, key_of
from uir_tvm.tune.database import stale
from uir_tvm.tune.records import KEY_FILE, RECORDS, WORKLOADS, Records

from .kernels import kernel, scheduled

TARGET = "uir-cpu"


@pytest.fixture
def database(tmp_path: pathlib.Path) -> ScheduleDatabase:
    """Three schedules of one kernel, one of another."""
    made = ScheduleDatabase(tmp_path / "db")
    for columns, seconds in ((8, [3e-3, 5e-3]), (20, [1e-3]), (40, [2e-3])):
        made.add(kernel(), scheduled(kernel(), columns), seconds, TARGET)
    made.add(kernel(True), scheduled(kernel(True)), [1e-4], TARGET)
    return made


def folder_of(database: ScheduleDatabase) -> pathlib.Path:
    return database.folder / key_of(TARGET).folder


def test_the_fastest_is_found_whatever_the_name(database: ScheduleDatabase) -> None:
    other = kernel().with_attr("global_symbol", "another_name").with_attr("uir.ops", "x")
    best = database.best(other, TARGET)
    assert best is not None and best.mean == pytest.approx(1e-3)
    made = best.schedule().mod["main"]
    assert structural_equal(made, scheduled(kernel(), 20).mod["main"])
    assert "sch.split" in str(best.trace)


def test_other_kernels_and_targets_have_none(database: ScheduleDatabase) -> None:
    assert database.best(kernel(target="uir-bang"), "uir-bang") is None
    doubled = database.best(kernel(True), TARGET)
    assert doubled is not None and doubled.mean == pytest.approx(1e-4)


def test_stock_metaschedule_reads_it(database: ScheduleDatabase) -> None:
    """And what it adds is found."""
    stock = JSONDatabase(work_dir=str(folder_of(database)))
    records = stock.get_all_tuning_records()
    assert len(records) == 4
    again = min(records, key=lambda record: float(record.run_secs[0]))
    stock.commit_tuning_record(again)
    assert len(database.entries()) == 5


def test_what_changed_since_is_not_used(database: ScheduleDatabase, caplog: pytest.LogCaptureFixture) -> None:
    """Records of another TVM stay, and one line says so."""
    caplog.set_level(logging.WARNING)  # the command line changes levels
    old = folder_of(database)
    key = json.loads((old / KEY_FILE).read_text())
    key["versions"]["apache-tvm"] = "0.1"
    (old / KEY_FILE).write_text(json.dumps(key))
    old.rename(old.with_name("older"))
    assert database.best(kernel(), TARGET) is None and database.best(kernel(True), TARGET) is None
    assert sum("apache-tvm 0.1 is not" in record.getMessage() for record in caplog.records) == 1
    assert len(database.entries()) == 4 and "apache-tvm" in stale(database.entries()[0].key)


def test_merging_takes_over_what_is_new(database: ScheduleDatabase, tmp_path: pathlib.Path) -> None:
    other = ScheduleDatabase(tmp_path / "other")
    other.add(kernel(), scheduled(kernel(), 10), [5e-4], TARGET)
    other.add(kernel(), scheduled(kernel(), 20), [1e-3], TARGET)
    assert database.merge(other) == 1 and database.merge(other) == 0
    best = database.best(kernel(), TARGET)
    assert best is not None and best.mean == pytest.approx(5e-4)
    empty = ScheduleDatabase(tmp_path / "new" / "deep")
    assert empty.merge(database, keep=1) == 2 and len(empty.entries()) == 2
    assert empty.merge(database, keys=[]) == 0


def test_pruning_keeps_the_fastest(database: ScheduleDatabase) -> None:
    assert database.prune(keep=2) == 1 and database.prune(keep=2) == 0
    assert [entry.mean for entry in database.entries() if entry.mean > 5e-4] == pytest.approx([1e-3, 2e-3])
    assert database.prune() == 1
    best = database.best(kernel(), TARGET)
    assert best is not None and structural_equal(
        best.schedule().mod["main"], scheduled(kernel(), 20).mod["main"]
    )


@pytest.mark.parametrize("seconds", [[], [0.0], [-1.0], [float("inf")], [float("nan")]])
def test_a_time_is_needed(tmp_path: pathlib.Path, seconds: list[float]) -> None:
    with pytest.raises(DatabaseError, match="without a time"):
        ScheduleDatabase(tmp_path).add(kernel(), scheduled(kernel()), seconds, TARGET)


def test_a_trace_must_give_its_schedule(tmp_path: pathlib.Path) -> None:
    """A schedule of a function that was changed on the way is refused, unless that one is named."""
    begun: tirx.PrimFunc = kernel(True)
    database = ScheduleDatabase(tmp_path)
    with pytest.raises(DatabaseError, match="cannot be made again") as caught:
        database.add(kernel(), scheduled(begun), [1.0], TARGET)
    assert "begun" in caught.value.remedy and not database.entries()
    entry = database.add(kernel(), scheduled(begun), [1.0], TARGET, begun=begun)
    assert isinstance(entry.schedule(), Schedule)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (KEY_FILE, "{}", "holds no schedules"),
        (KEY_FILE, '{"target', "holds no schedules"),
        (WORKLOADS, '["1", "AAAA"]\n', "Line 1 of .* is no entry"),
        (RECORDS, "[7, []]\n", "Line 1 of .* is no entry"),
        (RECORDS, '{"a": 1}\n', "Line 1 of .* is no entry"),
        (RECORDS, "[\n[]\n", "Line 1 of .* is damaged"),
    ],
)
def test_damaged_files_are_told(database: ScheduleDatabase, file: str, text: str, said: str) -> None:
    (folder_of(database) / file).write_text(text)
    with pytest.raises(DatabaseError, match=said):
        database.entries()


def test_a_file_is_no_database(tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(DatabaseError, match="is a file"):
        ScheduleDatabase(tmp_path / "f")
    with pytest.raises(DatabaseError, match="holds no schedules"):
        Records.open(tmp_path)
