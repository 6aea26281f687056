# SPDX-License-Identifier: Apache-2.0
"""What a narrower precision costs is measured and said."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
import torch
import uir_tvm
from click.testing import CliRunner
from uir_tvm.cli import main
from uir_tvm.errors import ShapeError, UirError


def program(**how: object) -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).eval()
    return torch.export.export(module, (torch.randn(5, 32),), **how)


@pytest.mark.parametrize(("precision", "rounding"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_the_error_is_of_some_roundings(precision: str, rounding: float) -> None:
    (found,) = uir_tvm.precision_error(program(), precision)
    assert 0 < found.relative <= 6 * rounding
    assert found.absolute > 0
    (zero,) = uir_tvm.precision_error(program(), precision, [np.zeros((5, 32), "float32")])
    assert zero.relative <= 6 * rounding


def test_float32_has_none() -> None:
    (found,) = uir_tvm.precision_error(program(), "float32")
    assert (found.absolute, found.relative) == (0, 0)


def test_open_sizes_need_numbers() -> None:
    opened = program(dynamic_shapes=({0: torch.export.Dim("n")},))
    with pytest.raises(ShapeError, match="sizes"):
        uir_tvm.precision_error(opened, "float16")
    (found,) = uir_tvm.precision_error(opened, "float16", sizes={"n": 3})
    assert found.relative > 0


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(UirError, match="float16, bfloat16"):
        uir_tvm.CompileOptions(precision="float8")


def test_the_command_says_the_error(tmp_path: pathlib.Path) -> None:
    torch.export.save(program(), tmp_path / "m.pt2")
    arguments = ["compile", str(tmp_path / "m.pt2"), "--precision", "bfloat16", "--json"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert "of the largest" in report["precision_error"]["output0"]
    assert uir_tvm.load(tmp_path / "m.uir")(np.zeros((5, 32), "float32")).dtype == np.float32
