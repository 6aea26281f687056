# SPDX-License-Identifier: Apache-2.0
"""``uir db`` as a user types it."""

from __future__ import annotations

import json
import pathlib

import attrs
import pytest
from click.testing import CliRunner, Result
from uir_tvm.cli import main
from uir_tvm.explain.tuning_summary import SiteResult, SizeTime
from uir_tvm.target import registry
from uir_tvm.tune import ScheduleDatabase
from uir_tvm.tune.spaces import design_spaces

from ..tune.kernels import kernel, scheduled
from ..tune.open_models import open_kernel


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    made = ScheduleDatabase(tmp_path / "db")
    for columns, seconds in ((8, 3e-3), (20, 1.5e-5)):
        made.add(kernel(), scheduled(kernel(), columns), [seconds], "uir-cpu")
    return made.folder


def uir(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["db", *map(str, arguments)])


def test_list(folder: pathlib.Path) -> None:
    result = uir("list", folder)
    assert result.exit_code == 0, result.output
    assert "15 us" in result.output and "yes" in result.output
    (row,) = json.loads(uir("list", folder, "--json").stdout)
    assert row["schedules"] == 2 and row["seconds"] == pytest.approx(1.5e-5) and row["stale"] == ""


def test_list_has_sites_of_graphs(folder: pathlib.Path) -> None:
    """After the kernels: what each site takes, and what that gains."""
    options = {"unpacked": (2e-5, 1e-5), "plain": (2e-5, 4e-5)}
    site = SiteResult("product 8x8", "unpacked", 3, options, {"own kernel": "it is refused"})
    (records,) = ScheduleDatabase(folder).all_records()
    records.add_sites([site.to_json()])
    output = uir("list", folder).output
    assert all(said in output for said in ("product 8x8", "unpacked", "2.00x", "20 us")), output
    kernel_row, row = json.loads(uir("list", folder, "--json").stdout)
    assert "kernel" in kernel_row and (row["site"], row["gain"], row["stale"]) == ("product 8x8", 2.0, "")


def test_list_has_times_by_size(tmp_path: pathlib.Path) -> None:
    """Of a kernel with open sizes: representative ones, their weights, and what it takes there."""
    place, func = registry.resolve("uir-cpu").target, open_kernel()
    space = design_spaces(func, place)[0]
    times = [SizeTime({"n": 8}, 1.0, 2e-5, 1e-5, "batch = 8")]
    database = ScheduleDatabase(tmp_path / "db")
    database.add(func, space.schedule, [1e-5], place, begun=space.begun, by_size=times)
    assert "batch = 8 (100%): 20 us, now 10 us, 2.00x" in " ".join(
        uir("list", tmp_path / "db").output.split()
    )
    (row,) = json.loads(uir("list", tmp_path / "db", "--json").stdout)
    assert row["by_size"] == [attrs.asdict(times[0])]


def test_best(folder: pathlib.Path) -> None:
    result = uir("best", folder)
    assert result.exit_code == 0 and "15 us" in result.output and "sch.split" in result.output
    (row,) = json.loads(uir("best", folder, "--json").stdout)
    assert uir("best", folder, "--kernel", row["origin"]).exit_code == 0
    absent = uir("best", folder, "--kernel", "nothing")
    assert absent.exit_code == 18 and "no schedule of nothing" in absent.stderr


def test_export_merge_prune(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert "1 schedule in" in uir("export", folder, tmp_path / "out").output
    assert uir("export", folder, tmp_path / "out").exit_code == 18
    assert json.loads(uir("merge", tmp_path / "out", folder, "--json").stdout)["new"] == 1
    assert json.loads(uir("prune", tmp_path / "out", "--json").stdout)["dropped"] == 1
    assert len(ScheduleDatabase(tmp_path / "out").entries()) == 1


@pytest.mark.parametrize("command", ["list", "best", "prune"])
def test_no_database(command: str, tmp_path: pathlib.Path) -> None:
    result = uir(command, tmp_path / "none")
    assert result.exit_code == 18 and "no database" in result.stderr
    assert not (tmp_path / "none").exists()


def test_nothing_of_this_machine(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """What is stale is listed as such, and shipped only when asked for."""
    (key,) = folder.glob("*/key.json")
    key.write_text(key.read_text().replace("LLVM", "GCC"))
    (row,) = json.loads(uir("list", folder, "--json").stdout)
    assert "GCC" in row["stale"]
    assert uir("export", folder, tmp_path / "a").exit_code == 18
    assert uir("export", folder, tmp_path / "b", "--all").exit_code == 0
