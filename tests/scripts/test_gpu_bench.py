# SPDX-License-Identifier: Apache-2.0
"""The GPU benchmark on the host model: artefacts are built, loaded by TVM's runtime alone, checked, timed."""

from __future__ import annotations

import json
import math
import os
import pathlib
import runpy
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "gpu_bench.py"


@pytest.fixture(scope="module", autouse=True)
def path() -> Iterator[None]:
    """The benchmark's package, as the script finds it."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


def run(*arguments: object, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """The script in a process of its own, which finds nothing of the source tree by PYTHONPATH."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if arguments[0] == SCRIPT:
        environment["PYTHONPATH"] = str(ROOT / "python")
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """In this process, which has imported what building takes."""
    folder = tmp_path_factory.mktemp("bench") / "artefacts"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(os, "environ", os.environ.copy())
        main = runpy.run_path(str(SCRIPT))["main"]
        assert main(["build", str(folder), "--model", "--only", "softmax,exp_abs_transpose"]) == 0
    return folder


def test_on_the_host_model(artefacts: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Right against float64, timed beside torch, by the TVM of the folder; both files are written."""
    done = run(artefacts / "gpu_bench.py", "run", artefacts, "--model", "--out", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "gpu_bench.json").read_text())
    assert str(artefacts / "runtime") in result["machine"]["tvm"]
    assert list(result["cases"]) == ["softmax", "exp_abs_transpose"]
    for row in result["cases"].values():
        # Both are fp32: a few units of 2^-24.
        assert row["right"] and 0 <= row["error"] <= row["tolerance"] == 2e-5
        assert set(row["times"]) == {"uir", "eager"} and row["on_host"] == {}
        assert all(timing["median_us"] > 0 for timing in row["times"].values())
    table = (tmp_path / "gpu_bench.md").read_text()
    assert "say nothing of a GPU" in table and "| softmax | " in table
    assert result["summary"]["right"] == 2
    # A modelled time is compared with nobody's.
    assert result["summary"]["operators_geomean_over_best_peer"] is None


def test_a_wrong_module_is_not_timed(artefacts: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Where another case's module lies, the row fails, the others go on, and the exit status says so."""
    cases = json.loads((artefacts / "cases.json").read_text())
    swapped = json.loads(json.dumps(cases))
    swapped["cases"]["softmax"]["module"] = cases["cases"]["exp_abs_transpose"]["module"]
    (artefacts / "cases.json").write_text(json.dumps(swapped))
    try:
        done = run(artefacts / "gpu_bench.py", "run", artefacts, "--model", "--out", tmp_path, cwd=tmp_path)
    finally:
        (artefacts / "cases.json").write_text(json.dumps(cases))
    assert done.returncode == 1
    rows = json.loads((tmp_path / "gpu_bench.json").read_text())["cases"]
    assert "failed" in rows["softmax"] and rows["exp_abs_transpose"]["right"]


def test_what_is_missing_is_said(tmp_path: pathlib.Path) -> None:
    done = run(SCRIPT, "run", tmp_path / "nothing", "--model", cwd=tmp_path)
    assert done.returncode == 2 and "make the artefacts" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--model"),
        (("--model", "--contenders", "eager"), "must be among"),
        (("--model", "--only", "nothing"), "no nothing"),
    ],
    ids=["no GPU", "without ours", "no such case"],
)
def test_what_cannot_be_run_is_said(
    artefacts: pathlib.Path,
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process: all is said before a runtime is loaded."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(os, "environ", os.environ.copy())
    try:
        status = runpy.run_path(str(SCRIPT))["main"](["run", str(artefacts), *arguments])
    except SystemExit as error:
        status = error.code
    assert status == 2 and message in capsys.readouterr().err


def _case_names() -> list[str]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from gpu import models, operators

        return [case.name for case in (*operators.cases(True), *models.cases(True))]
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize("name", _case_names())
def test_every_vocabulary_means_the_same(name: str) -> None:
    """torch and what is exported agree with float64 within the tolerance that modules must keep."""
    from gpu import check, models, operators, ops

    (case,) = [case for case in (*operators.cases(True), *models.cases(True)) if case.name == name]
    tensors = case.tensors(3, "cpu")
    wanted = check.reference(case, tensors)
    for vocabulary in (ops.TorchOps(), ops.ExportOps()):
        error = check.error_of(case.call(vocabulary, tensors), wanted)
        assert error <= (2e-5 if tensors[0].dtype == torch.float32 else 2e-2)
    # Weights do not depend on the seed, other inputs do.
    other = case.tensors(4, "cpu")
    for spec, first, second in zip(case.inputs, tensors, other, strict=True):
        assert torch.equal(first, second) == spec.weight or spec.kind in ("ids", "mask")
    assert all(spec.weight for spec in case.inputs[case.changing :])


def test_full_sizes() -> None:
    """Streaming operators move more than 64 MiB, which no GPU's cache holds twice."""
    from gpu import models, operators

    for case in operators.cases(False):
        assert not case.streaming or case.input_bytes >= 64 << 20
    assert [case.name for case in models.cases(False)][:4] == [
        "gpt2_medium_b1_prefill",
        "gpt2_medium_b1_decode",
        "gpt2_medium_b4_prefill",
        "gpt2_medium_b4_decode",
    ]


def test_errors_are_found() -> None:
    from gpu import check

    want = [torch.tensor([1.0, -4.0], dtype=torch.float64)]
    assert check.error_of([torch.tensor([1.0, -3.0])], want) == 0.25
    assert check.error_of([torch.tensor([1.0, math.nan])], want) == math.inf
    with pytest.raises(ValueError, match="shapes"):
        check.error_of([torch.tensor([1.0])], want)


def test_contenders_take_turns() -> None:
    """Each round begins with another contender; seconds are of one call."""
    from gpu import measure

    order: list[str] = []
    turns = [measure.Turn(name, lambda name=name: order.append(name), calls=2) for name in "abc"]  # type: ignore[misc]
    timings = measure.interleaved(turns, gpu=False, rounds=3)
    assert order == list("aabbcc" + "abc" + "bca" + "cab")
    assert all(len(timing.seconds) == 3 for timing in timings.values())


def test_the_clock_stops_when_the_last_launch_is_done() -> None:
    from gpu import measure

    order: list[object] = []
    turn = measure.Turn("a", lambda: order.append(1) or len(order), calls=1, finish=order.append)  # type: ignore[func-returns-value]
    assert measure.clock(turn, 3) > 0
    assert order == [1, 1, 1, 3]


def test_input_sets_push_each_other_out_of_the_cache() -> None:
    from gpu import measure

    l2, memory = 60 << 20, 140 << 30
    for nbytes in (1 << 10, 20 << 20, 200 << 20):
        count = measure.rotation(nbytes, l2, memory)
        assert count == 16 or (count - 1) * nbytes >= 3 * l2
    assert measure.rotation(100 << 30, l2, memory) == 1


def test_summary_and_table() -> None:
    """Ratios are of the best peer; the lowest share of the copy's rate counts only what streams."""
    from gpu import report

    def row(name: str, ours: float, streaming: bool = False, **peers: float) -> dict[str, Any]:
        times = {
            key: {"median_us": value, "graph": key != "jax"} for key, value in {"uir": ours, **peers}.items()
        }
        size = 128 << 20
        figures = {"error": 1e-6, "right": True, "bytes": size, "bytes_per_second": size / ours * 1e6}
        return {"name": name, "group": "operator", "streaming": streaming, "times": times, **figures}

    rows = {
        "a": row("a", 100.0, True, eager=400.0, jax=200.0),
        "b": row("b", 100.0, False, eager=50.0, compile=60.0),
        "c": row("c", 10.0, eager=20.0) | {"group": "model"},
    }
    ceilings = {"copy_bytes_per_second": (128 << 20) / 80e-6}
    found = report.summary(rows, ceilings)
    assert found["operators_geomean_over_best_peer"] == pytest.approx(1.0)
    assert found["operators_lowest_over_best_peer"] == 0.5
    assert found["streaming_lowest_share_of_copy"] == pytest.approx(0.8)
    assert found["models_over_eager"] == {"c": 2.0}
    rows["d"] = {"name": "d", "group": "operator", "failed": "ValueError: no"}
    machine = {"device": "a GPU"}
    result = {"model": False, "machine": machine, "ceilings": ceilings, "cases": rows, "summary": found}
    table = report.markdown(result)
    assert "| a | 1.0e-06 | yes | 100.0 | 400.0 |  | 200.0* | 1342 | 80% | 2.00 | 4.00 |" in table
    assert "| d | ValueError: no | no |" in table
