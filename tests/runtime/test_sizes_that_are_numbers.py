# SPDX-License-Identifier: Apache-2.0
"""Open sizes that can be one number alone, as that of the rows to which a table of positions is added."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
import torch
import uir_tvm
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm.errors import NotCompiledError, ShapeError, SizeError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
#: Ones of (7, 4), added to or multiplied with what has open sizes, and the condition that this is.
ONNX = {
    "added": ("float[b, n, 4] x", "z = Add(x, t)", "n == 7", (3, 7, 4), 1),
    "multiplied": ("float[b, n] x", "z = MatMul(x, t)", "n == 7", (3, 7), 1),
    "joined": (
        "float[b, n] x",
        "y = Transpose<perm=[1, 0]>(x) z = Concat<axis=1>(t, y)",
        "n == 7",
        (3, 7),
        1,
    ),
}


def parsed(given: str, body: str) -> onnx.ModelProto:
    rows = "{" + ", ".join(["1"] * 28) + "}"
    rank = ", ".join("?" * (3 if "4" in given else 2))
    text = f"{HEAD} g ({given}) => (float[{rank}] z) <float[7, 4] t = {rows}> {{ {body} }}"
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("name", ONNX)
def test_in_onnx_the_number_is_a_condition(name: str, tmp_path: pathlib.Path) -> None:
    """One reading serves whatever the other sizes are; loaded too, and made before any call."""
    given, body, condition, shape, open_axis = ONNX[name]
    model = parsed(given, body)
    exe: Any = uir_tvm.compile(model)
    ahead = uir_tvm.load(uir_tvm.compile(model).save(tmp_path / "model.uir"))
    for batch in (3, 2, 5):
        x = np.random.default_rng(batch).standard_normal((batch, *shape[open_axis:])).astype("float32")
        (want,) = ReferenceEvaluator(model).run(None, {"x": x})
        for each in (exe, ahead):
            np.testing.assert_allclose(np.asarray(each(x)), want, rtol=1e-5, atol=1e-6)
    report = exe.report()
    assert [condition in row["conditions"] for row in report["programs"]] == [True]
    assert report["imported_by_shape"] == "" and report["compiled"] == 1
    wrong = np.zeros((3, 6, *shape[2:]), "float32")
    with pytest.raises(NotCompiledError, match="without code for these shapes"):
        ahead(wrong)


def test_a_first_call_of_another_size_is_refused_by_name_and_decides_nothing() -> None:
    given, body, condition, *_ = ONNX["added"]
    exe: Any = uir_tvm.compile(parsed(given, body))
    with pytest.raises(SizeError, match=r"does not take b = 3, n = 6") as caught:
        exe(np.zeros((3, 6, 4), "float32"))
    assert "n == 7" in str(caught.value) and caught.value.remedy
    assert np.asarray(exe(np.zeros((3, 7, 4), "float32"))).sum() == 84
    (made,) = exe.report()["programs"]
    assert condition in made["conditions"] and exe.report()["imported_by_shape"] == ""


def test_inputs_that_disagree_where_no_name_says_so() -> None:
    model = onnx.parser.parse_model(
        f"{HEAD} g (float[n, 4] x, float[m, 4] y) => (float[?, 4] z) {{ z = Add(x, y) }}"
    )
    exe: Any = uir_tvm.compile(model)
    with pytest.raises(SizeError, match="m = 3"):
        exe(np.zeros((5, 4), "float32"), np.zeros((3, 4), "float32"))
    assert np.asarray(exe(np.zeros((5, 4), "float32"), np.ones((5, 4), "float32"))).sum() == 20
    assert exe.report()["imported_by_shape"] == ""


def test_inputs_that_disagree_on_one_name() -> None:
    model = onnx.parser.parse_model(
        f"{HEAD} g (float[n, 4] x, float[n, 4] y) => (float[?, 4] z) {{ z = Add(x, y) }}"
    )
    exe: Any = uir_tvm.compile(model)
    for _ in range(2):  # before a call that agrees, and behind one
        with pytest.raises(SizeError, match="disagree on n: axis 0 of y is 3, not 5") as caught:
            exe(np.zeros((5, 4), "float32"), np.zeros((3, 4), "float32"))
        assert "Add" in caught.value.limit and caught.value.limit in str(caught.value)
        assert np.asarray(exe(np.zeros((5, 4), "float32"), np.ones((5, 4), "float32"))).sum() == 20
    # where they go together they need not be equal
    assert np.asarray(exe(np.zeros((1, 4), "float32"), np.ones((3, 4), "float32"))).sum() == 12


def test_in_relay_the_number_is_a_condition(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "model.relay"
    file.write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(?, ?, 4), float32], %t: Tensor[(7, 4), float32]) { add(%x, %t) }"
    )
    exe: Any = uir_tvm.compile(file)
    table = np.arange(28, dtype="float32").reshape(7, 4)
    for batch in (2, 5):
        np.testing.assert_array_equal(
            np.asarray(exe(np.ones((batch, 7, 4), "float32"), table)),
            np.ones((batch, 7, 4), "float32") + table,
        )
    (made,) = exe.report()["programs"]
    assert "x_1 == 7" in made["conditions"] and made["shapes"] == 2


class Positions(nn.Module):
    """A table of positions that is added whole."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Parameter(torch.randn(7, 8)), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.layer(x) + self.table, -1)


@pytest.mark.parametrize("row", [Dim.AUTO, None], ids=["left to PyTorch", "fixed"])
def test_in_torch_the_size_is_fixed_and_the_others_are_read_once(row: Any) -> None:
    model = Positions().eval()
    axes = ({0: Dim.AUTO, 1: row},) if row is not None else ({0: Dim.AUTO},)
    exe: Any = uir_tvm.compile(model, args=(torch.randn(3, 7, 8),), dynamic_shapes=axes)
    for batch in (3, 2, 5):
        x = torch.randn(batch, 7, 8)
        torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-5, atol=1e-6)
    report = exe.report()
    assert (report["inputs"], report["imported_by_shape"]) == (["x: float32[x_0, 7, 8]"], "")
    assert report["compiled"] == 1
    with pytest.raises(ShapeError):
        exe(torch.randn(3, 6, 8))
