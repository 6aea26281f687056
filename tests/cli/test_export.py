# SPDX-License-Identifier: Apache-2.0
"""``uir export`` as a user types it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tvm import relax, tirx
from uir_tvm import compile as uir_compile
from uir_tvm.cli import main

from ..kernel_graph.programs import constant, module

op = relax.op


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    mod = module({"x": ((4, 8), "float32")}, lambda emit, x: emit(op.matmul(x, constant(8, 6))))
    return uir_compile(mod, "uir-ascend").save(tmp_path_factory.mktemp("model") / "model.uir")


def uir(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, arguments)])


def test_it_says_what_it_wrote(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    result = uir(model, "--project", tmp_path / "p")
    assert result.exit_code == 0, result.output
    assert "0 launches and 1 library calls" in " ".join(result.output.split())
    assert (tmp_path / "p" / "README.md").is_file()


def test_json_and_inputs_from_files(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    x = np.ones((4, 8), "float32")
    np.save(tmp_path / "x.npy", x)
    result = uir("--json", model, "--project", tmp_path / "p", "--input", tmp_path / "x.npy")
    data: dict[str, Any] = json.loads(result.stdout)
    assert data["library_calls"] == 1 and data["bytes"] == sum(data["files"].values())
    np.testing.assert_array_equal(np.fromfile(tmp_path / "p/check/inputs/x.bin", "float32"), x.reshape(-1))


@pytest.mark.parametrize(
    ("more", "code"),
    [(["--project", "."], 17), ([], 2), (["--project", "p", "--no-check", "--input", "x.npy"], 2)],
)
def test_wrong_usage(model: pathlib.Path, more: list[str], code: int) -> None:
    assert uir(model, *more).exit_code == code


def test_a_missing_file(tmp_path: pathlib.Path) -> None:
    assert uir(tmp_path / "none.uir", "--project", tmp_path / "p").exit_code == 11


@pytest.fixture(scope="module")
def any_rows(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A file for all sizes."""
    n = tirx.Var("n", "int64")
    mod = module({"x": ((n, 8), "float32")}, lambda emit, x: emit(op.exp(emit(op.matmul(x, constant(8, 6))))))
    return uir_compile(mod, "uir-ascend").save(tmp_path_factory.mktemp("open") / "model.uir")


def test_a_file_for_all_sizes_is_a_project_for_all(any_rows: pathlib.Path, tmp_path: pathlib.Path) -> None:
    result = uir(any_rows, "--project", tmp_path / "p")
    assert result.exit_code == 0, result.output
    assert "it takes n when it runs" in " ".join(result.output.split())
    assert (tmp_path / "p/check/sizes.txt").read_text().startswith("n=")
    result = uir("--json", any_rows, "--project", tmp_path / "q", "--no-check")
    assert json.loads(result.stdout)["sizes"] == ["n"]


def test_sizes_of_a_project_are_said_at_its_run(any_rows: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A file for all sizes has no code for some alone; the errors say so, or what is wrong with the sizes."""
    for sizes, what, code in (
        (["n=7"], "no code for n = 7 alone", 10),
        (["m=7"], "no size 'm'", 10),
        (["n=7", "n=8"], "n is given twice", 10),
        (["n=x"], "is not NAME=37", 2),
    ):
        options = [word for size in sizes for word in ("--size", size)]
        result = uir("--json", any_rows, "--project", tmp_path / "p", *options)
        error = json.loads(result.stdout)
        assert result.exit_code == code and what in error["what"], (sizes, result.output)
        assert code == 2 or error["remedy"], sizes
    assert not (tmp_path / "p").exists()
