# SPDX-License-Identifier: Apache-2.0
"""Relax modules of several functions, and functions that take and return tuples."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from click.testing import CliRunner
from tvm.script import ir as I
from tvm.script import relax as R
from uir_tvm.cli import main
from uir_tvm.errors import FrontendError
from uir_tvm.frontend import flat_module
from uir_tvm.structure import STRUCTURE

RNG = np.random.default_rng(7)
X, ROW, OTHER = (RNG.random(shape, "float32") for shape in ((4, 8), (8,), (4, 8)))


@I.ir_module
class Model:
    @R.function
    def exponential(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y

    @R.function
    def both(
        x: R.Tensor((4, 8), "float32"),
    ) -> R.Tuple(R.Tensor((4, 8), "float32"), R.Tensor((4, 8), "float32")):
        cls = Model
        with R.dataflow():
            y = R.add(x, x)
            z = cls.exponential(y)
            result = (y, z)
            R.output(result)
        return result

    @R.function
    def main(
        x: R.Tensor((4, 8), "float32"),
        p: R.Tuple(R.Tensor((8,), "float32"), R.Tensor((4, 8), "float32")),
    ) -> R.Tuple(R.Tensor((4, 8), "float32"), R.Tuple(R.Tensor((4, 8), "float32"))):
        cls = Model
        with R.dataflow():
            shifted = R.add(x, p[0])
            pair = cls.both(shifted)
            product = R.multiply(pair[1], p[1])
            result = (product, (pair[0],))
            R.output(result)
        return result


@I.ir_module
class Endless:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        cls = Endless
        y: R.Tensor((4, 8), "float32") = cls.main(x)
        return y


def test_tuples_and_calls(target: str = "uir-cpu") -> None:
    """It is called as the function is, with tuples, and returns them."""
    executable = uir_tvm.compile(Model, target)
    product, (doubled,) = executable(X, (ROW, OTHER))
    np.testing.assert_allclose(doubled, 2 * (X + ROW), rtol=1e-6)
    np.testing.assert_allclose(product, np.exp(2 * (X + ROW)) * OTHER, rtol=1e-5)
    assert [spec.name for spec in executable.info.inputs] == ["x", "p_0", "p_1"]


@pytest.mark.parametrize("target", ["uir-cuda", "uir-ascend", "uir-bang"])
def test_tuples_and_calls_on_devices(target: str) -> None:
    test_tuples_and_calls(target)


def test_another_entry() -> None:
    """What it calls is part of it; what it does not call is left out."""
    doubled, exponential = uir_tvm.compile(Model, entry="both")(X)
    np.testing.assert_allclose(doubled, 2 * X, rtol=1e-6)
    np.testing.assert_allclose(exponential, np.exp(2 * X), rtol=1e-5)


def test_nothing_to_do() -> None:
    """A module of one plain function stays as it is; one that calls others is one function."""
    plain = flat_module(Model, "exponential")
    assert flat_module(plain) is plain
    flat = flat_module(Model)
    assert [gvar.name_hint for gvar in flat.get_global_vars()] == ["main"] and STRUCTURE in flat.attrs


def test_no_such_entry() -> None:
    with pytest.raises(FrontendError, match="no Relax function 'other'") as caught:
        uir_tvm.compile(Model, entry="other")
    assert "both" in caught.value.limit and "entry=" in caught.value.remedy


def test_a_function_that_calls_itself() -> None:
    with pytest.raises(FrontendError, match="calls itself"):
        uir_tvm.compile(Endless)


def test_an_entry_of_a_dump(tmp_path: pathlib.Path) -> None:
    """A file of several functions, from Python and from the command line."""
    file = tmp_path / "model.relax.json"
    file.write_text(tvm.ir.save_json(Model))
    doubled, _ = uir_tvm.compile(file, entry="both")(X)
    np.testing.assert_allclose(doubled, 2 * X, rtol=1e-6)
    for command in ("check", "compile"):
        assert CliRunner().invoke(main, [command, str(file), "--entry", "both"]).exit_code == 0
        assert CliRunner().invoke(main, [command, str(file), "--entry", "other"]).exit_code == 9


def test_an_entry_of_what_has_no_functions() -> None:
    with pytest.raises(FrontendError, match="has no function 'both'") as caught:
        uir_tvm.compile(torch.nn.Linear(8, 8), args=(torch.zeros(4, 8),), entry="both")
    assert "Relax" in caught.value.need and caught.value.remedy
