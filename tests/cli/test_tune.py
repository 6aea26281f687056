# SPDX-License-Identifier: Apache-2.0
"""``uir tune`` as a user types it."""

from __future__ import annotations

import json
import pathlib
import socket
import threading

import pytest
import tvm
import uir_tvm
from click.testing import CliRunner, Result
from tvm import relax
from uir_tvm.cli import main
from uir_tvm.tune import ScheduleDatabase, key_of
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.server import MeasuringServer

from .. import tiny
from ..kernel_graph.programs import constant, module
from ..tune.open_models import InProcess, rows_module

HOST = "127.0.0.1"


def uir(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["tune", *map(str, arguments)])


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    return tiny.relax_dump(tmp_path)


def test_tunes(model: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine, twice: the second run measures the rest, and models take what is found."""
    folder = tmp_path / "db"
    result = uir(model, "--database", folder, "--trials", 2, "--cost-model", tmp_path / "learned", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["trials"] == 2 and summary["ended"] == "all trials made" and not summary["modelled"]
    assert summary["after"] <= summary["before"] and summary["library"] == 1
    assert (tmp_path / "learned").is_file()
    # what measures has shown itself: the second run does without a process that imports everything
    monkeypatch.setattr(LocalMeasurer, "for_target", lambda *_: InProcess())
    result = uir(model, "--database", folder, "--trials", 3)
    assert result.exit_code == 0, result.output
    assert "1 trials" in result.output and "after 2 of earlier runs" in result.output
    kept = {entry.name for entry in ScheduleDatabase(folder).entries()}
    exe = uir_tvm.compile(tiny.module(), database=folder)
    assert {kernel.name for kernel in exe.info.kernels if kernel.recipe == "database"} == kept


def test_help_shows_how() -> None:
    result = uir("--help")
    assert result.exit_code == 0
    sizes = "--sizes n=1,s=128:0.7 --sizes n=8,s=512:0.3"
    for line in ("uir tune model.onnx --database tuned", "uir compile model.onnx --database tuned", sizes):
        assert line in result.output


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--time-budget", "0"], 19, "no time to tune for"),
        (["--time-budget", "soon"], 19, "90s, 10m or 1h30m"),
        (["--trials", "0"], 19, "0 trials"),
        (["--target", "uir-tpu"], 4, "uir-tpu"),
        (["--target", "uir-cuda", "--device", "model"], 15, "counts no time"),
        (["--kernels", "conv*"], 19, "No kernel is called 'conv*'"),
        (["--rpc", "localhost:9190"], 2, "go together"),
        (["--rpc", "localhost", "--key", "k"], 2, "HOST:PORT"),
        (["--import-results", "nowhere"], 11, "nowhere"),
        (["--export-batch", "a", "--import-results", "b"], 2, "exclude each other"),
    ],
)
def test_bad_input(
    options: list[str], code: int, said: str, model: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """It is said before anything is measured or written."""
    result = uir(model, "--database", tmp_path / "db", *options)
    assert result.exit_code == code, result.output
    assert said in " ".join(result.stderr.split())
    assert not (tmp_path / "db").exists()


@pytest.mark.parametrize(
    ("sizes", "code", "said"),
    [
        ("n", 19, "write it as n=8,s=128:0.3"),
        ("n=4,m=8:0", 19, "a weight above 0"),
        ("n=4,k=8", 19, "no size k open"),
        ("n=4,m=9999", 10, "9999"),
    ],
)
def test_bad_sizes(sizes: str, code: int, said: str, tmp_path: pathlib.Path) -> None:
    """They are refused before anything is written; those of a model with known sizes too."""
    path = tmp_path / "rows.relax.json"
    path.write_text(tvm.ir.save_json(rows_module()))
    result = uir(path, "--database", tmp_path / "db", "--sizes", sizes)
    assert result.exit_code == code and said in " ".join(result.stderr.split()), result.output
    result = uir(tiny.relax_dump(tmp_path), "--database", tmp_path / "db", "--sizes", sizes)
    assert result.exit_code == 19 and not (tmp_path / "db").exists()


def test_sizes_that_a_model_leaves_open(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One schedule is timed at each list of sizes; batches refuse such kernels."""
    path, folder = tmp_path / "rows.relax.json", tmp_path / "db"
    path.write_text(tvm.ir.save_json(rows_module()))
    options = ("--target", "uir-bang", "--device", "model", "--database", folder)
    sizes = ("--sizes", "n=1,m=9:3", "--sizes", "n=8,m=8")
    monkeypatch.setattr(LocalMeasurer, "for_target", lambda *_: InProcess())
    result = uir(path, *options, *sizes, "--trials", 1, "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    assert row["trials"] == 1 and row["default"] > 0
    (journal,) = folder.glob("*/tuning/journal.jsonl")
    trials = [json.loads(line) for line in journal.read_text().splitlines()]
    assert all(len(trial["result"]["by_size"]) == 2 for trial in trials if "result" in trial)
    result = uir(path, *options, *sizes, "--export-batch", tmp_path / "out")
    assert result.exit_code == 17 and "leaves sizes open" in result.stderr and "--rpc" in result.stderr


def test_no_database(model: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UIR_DATABASE", raising=False)
    result = uir(model)
    assert result.exit_code == 2 and "--database DIR" in result.stderr


def test_a_file_for_a_database(model: pathlib.Path) -> None:
    result = uir(model, "--database", model)
    assert result.exit_code == 18 and "a folder" in result.stderr


def test_no_model(tmp_path: pathlib.Path) -> None:
    result = uir(tmp_path / "absent.onnx", "--database", tmp_path / "db")
    assert result.exit_code == 9 and "no file" in result.stderr


def test_no_kernels(tmp_path: pathlib.Path) -> None:
    """A model that is all library."""

    def body(emit: object, x: relax.Var) -> relax.Var:
        return emit(relax.op.matmul(x, constant(8, 8)))  # type: ignore[operator]

    path = tmp_path / "product.relax.json"
    path.write_text(tvm.ir.save_json(module({"x": ((4, 8), "float32")}, body)))
    result = uir(path, "--database", tmp_path / "db", "--kernels", "*")
    assert result.exit_code == 19 and "no kernel to tune" in result.stderr


def test_no_server(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A server that is not there is named."""
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        port = unused.getsockname()[1]
    result = uir(model, "--database", tmp_path / "db", "--rpc", f"{HOST}:{port}", "--key", "k")
    assert result.exit_code == 15 and f"{HOST}:{port}" in result.stderr


def test_on_a_server(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """What the server measured is kept under its key, which is this machine's."""
    with MeasuringServer(HOST, 21210, "k") as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        where = ("--rpc", f"{HOST}:{served.port}", "--key", "k")
        result = uir(model, "--database", tmp_path / "db", "--trials", 2, *where, "--json")
        assert result.exit_code == 0, result.output
        summary = json.loads(result.stdout)
        assert (summary["measurer"], summary["trials"]) == ("rpc", 2)
        assert all(row["default"] for row in summary["rows"])
        assert [path.name for path in (tmp_path / "db").glob("*-cpu-*")] == [key_of("uir-cpu").folder]
        served.shutdown()
