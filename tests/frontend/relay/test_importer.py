# SPDX-License-Identifier: Apache-2.0
"""Networks of Relay compute what the TVM that printed them computed; what cannot be imported is said."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

pytest.importorskip("lark")

import uir_tvm
from click.testing import CliRunner
from uir_tvm import cli
from uir_tvm.errors import FrontendError, ShapeError, UnsupportedOperatorError
from uir_tvm.frontend import from_relay

from tests.asked import asked

from .fixtures import HERE, NETWORKS, answers, text_of, values_of

HEADER = '#[version = "0.0.5"]\n'


def run(name: str, target: str) -> np.ndarray:
    """A network's first output, its weights as constants."""
    values = values_of(name)
    data = values.pop(NETWORKS[name])
    executable = uir_tvm.compile(from_relay(text_of(name), values), target)
    return np.asarray(executable(data))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_on_the_cpu(name: str) -> None:
    # single precision, sums in another order
    np.testing.assert_allclose(run(name, "uir-cpu"), answers("networks")[f"{name}/0"], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", asked(["resnet", "lstm"], list(NETWORKS)))
def test_networks_on_a_device(name: str) -> None:
    np.testing.assert_allclose(run(name, "uir-cuda"), answers("networks")[f"{name}/0"], rtol=1e-4, atol=1e-5)


def test_a_file_with_its_parameters_beside_it(tmp_path: pathlib.Path) -> None:
    """`uir compile model.relay` and `model.json` take the weights of model.params, so one input is left."""
    for end in ("relay", "json"):
        shutil.copy(HERE / f"lstm.{end}", tmp_path)
    shutil.copy(HERE / "lstm.params", tmp_path)
    want = answers("networks")["lstm/0"]
    for end in ("relay", "json"):
        executable = uir_tvm.compile(tmp_path / f"lstm.{end}")
        assert [spec.name for spec in executable.info.inputs] == ["data"]
        got = np.asarray(executable(values_of("lstm")["data"]))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)
    result = CliRunner().invoke(
        cli.main, ["compile", str(tmp_path / "lstm.relay"), "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output


def test_a_branch_on_data_selects() -> None:
    mod = from_relay(
        HEADER
        + "def @main(%c: bool, %x: Tensor[(2), float32]) { if (%c) { add(%x, 1f) } else { (%x * 2f) } }"
    )
    executable = uir_tvm.compile(mod)
    x = np.array([1.0, 3.0], np.float32)
    assert np.asarray(executable(np.array(True), x)).tolist() == [2.0, 4.0]
    assert np.asarray(executable(np.array(False), x)).tolist() == [2.0, 6.0]


def test_open_sizes_need_a_shape() -> None:
    text = HEADER + "def @main(%x: Tensor[(?, 3), float32]) { nn.relu(%x) }"
    with pytest.raises(ShapeError, match="leaves x_0 open"):
        from_relay(text)
    mod = from_relay(text, shapes={"x": (2, 3)})
    assert [int(n) for n in mod["main"].ret_ty.shape] == [2, 3]
    with pytest.raises(ShapeError, match="cannot be of shape"):
        from_relay(text, shapes={"x": (2, 4)})


#: Programs at fault -> the class of the error, what it says and its place.
FAULTS = {
    "def @main(%x: Tensor[(2), float32]) {\n  nn.flashlight(%x)\n}": (
        UnsupportedOperatorError,
        "nn.flashlight",
        "line 3, column 3",
    ),
    "def @main(%x: Tensor[(2), float32]) {\n  argwhere(%x)\n}": (
        UnsupportedOperatorError,
        "argwhere",
        "line 3, column 3",
    ),
    "def @main(%x: Tensor[(2), float32]) {\n  nn.softmax(%x, axes=1)\n}": (
        FrontendError,
        "no attribute 'axes'",
        "line 3, column 3",
    ),
    "def @main(%x: Tensor[(2), float32]) {\n  cast(%x)\n}": (FrontendError, "misses its attribute", "line 3"),
    "def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) {\n  add(%x, %y)\n}": (
        FrontendError,
        "does not take these",
        "line 3, column 3",
    ),
    "def @main(%x: Tensor[(2), float32]) {\n  add(%x)\n}": (FrontendError, "does not take these", "line 3"),
    "def @main(%x: Tensor[(2), float32]) {\n  nn.relu(%y)\n}": (
        FrontendError,
        "%y is not known",
        "line 3, column 11",
    ),
    "def @main(%x: Tensor[(2), float32]) {\n  @gone(%x)\n}": (
        FrontendError,
        "no function @gone",
        "line 3, column 3",
    ),
    "def @main(%x: Tensor[(2), float32]) {\n  @main(%x)\n}": (
        FrontendError,
        "calls itself",
        "line 3, column 3",
    ),
    "def @main(%x: Tensor[(2), float32]) {\n  (%x, %x).2\n}": (FrontendError, "no field 2", "line 3"),
    "def @main(%x: Tensor[(2), float32]) {\n  reshape(%x, newshape=[3, -1])\n}": (
        FrontendError,
        "cannot make",
        "line 3",
    ),
    "def @main(%x: Tensor[(2), float32], %s: Tensor[(1), int64]) {\n  dyn.reshape(%x, %s, newshape=[])\n}": (
        FrontendError,
        "depends on data",
        "line 3",
    ),
    "def @main(%x) {\n  nn.relu(%x)\n}": (FrontendError, "no type of a tensor", "line 2"),
    "def @main(%x: Tensor[(2), float31]) {\n  nn.relu(%x)\n}": (FrontendError, "no dtype", "line 2"),
    "def @model(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}": (FrontendError, "no function 'main'", ""),
    "def @main(%x: Tensor[(2), float32]) {\n  fn (%y) { %y }\n}": (FrontendError, "is a function", "line 3"),
    "def @main(%x: Tensor[(2), float32]) {\n  nn.relu\n}": (FrontendError, "no value by itself", "line 3"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_are_said_with_their_place(text: str) -> None:
    kind, what, where = FAULTS[text]
    with pytest.raises(kind) as caught:
        from_relay(HEADER + text)
    assert what in caught.value.what and where in caught.value.where
    assert caught.value.remedy


def test_parameters_that_do_not_fit() -> None:
    text = HEADER + "def @main(%x: Tensor[(2), float32], %w: Tensor[(2), float32]) { add(%x, %w) }"
    with pytest.raises(FrontendError, match="value of parameter 'w'"):
        from_relay(text, {"w": np.zeros(3, np.float32)})
    with pytest.raises(FrontendError, match="value of parameter 'w'"):
        from_relay(text, {"w": np.zeros(2)})
