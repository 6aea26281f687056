# SPDX-License-Identifier: Apache-2.0
"""``uir inspect --explain`` as a user types it."""

from __future__ import annotations

import json
import pathlib

import pytest
from click.testing import CliRunner, Result
from uir_tvm.cli import main
from uir_tvm.igraph.text import print_igraph

from tests import tiny

from . import graphs

KERNEL = "layer_norm_softmax"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The tiny model's file."""
    return tiny.executable().save(tmp_path_factory.mktemp("saved") / "tiny.uir")


def uir(*args: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_explain_a_model_and_a_kernel(compiled: pathlib.Path) -> None:
    whole, one = (
        uir("inspect", compiled, "--explain"),
        uir("inspect", compiled, "--explain", "--kernel", KERNEL),
    )
    assert whole.exit_code == one.exit_code == 0, whole.output + one.output
    assert "tiny on uir-cpu: modelled" in whole.stdout and "neighbours that are two kernels" in whole.stdout
    assert "neighbours" not in one.stdout and f"{KERNEL}: hero normalization" in one.stdout


def test_explain_as_json(compiled: pathlib.Path) -> None:
    data = json.loads(uir("inspect", compiled, "--explain", "--json").stdout)
    assert data["kernels"][0]["name"] == KERNEL and data["borders"][0]["saved_bytes"] == 1024
    one = json.loads(uir("--json", "inspect", compiled, "--explain", "--kernel", KERNEL).stdout)
    assert (
        one["kernels"][0]["graph"]["traffic"] == data["kernels"][0]["graph"]["traffic"]
        and one["library"] == []
    )


def test_explain_a_dump(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "k.igraph"
    path.write_text(print_igraph(graphs.graph(graphs.SOFTMAX)))
    result = uir("inspect", path, "--explain")
    assert result.exit_code == 0 and "least 16.0 KiB: 1.00x" in result.stdout
    assert json.loads(uir("inspect", path, "--explain", "--json").stdout)["kernels"][0]["name"] == "k"


def test_refusals(compiled: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "k.igraph").write_text("igraph k\n")
    cases: list[tuple[int, str, tuple[object, ...]]] = [
        (2, "exclude each other", (compiled, "--explain", "--stage", "relax")),
        (2, KERNEL, (compiled, "--explain", "--kernel", "nope")),
        (2, "--explain", (tmp_path / "k.igraph",)),
        (5, "k.igraph", (tmp_path / "k.igraph", "--explain")),
        (11, "cannot be read", (tmp_path / "absent.igraph", "--explain")),
    ]
    for code, words, args in cases:
        result = uir("inspect", *args)
        assert result.exit_code == code and words in result.output, result.output
        assert "Traceback" not in result.output and result.stdout == ""
