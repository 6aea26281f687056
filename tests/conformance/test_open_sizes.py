# SPDX-License-Identifier: Apache-2.0
"""Models that leave sizes open, through three front ends, on every target, at three shapes each."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from onnx import parser
from torch import Tensor, nn
from torch.export import Dim
from tvm import relax
from uir_tvm.target.registry import TARGETS

from tests.asked import ALL, asked

op = relax.op
#: Sums of at most 36 products of numbers about 1, in float32.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


WEIGHTS = numbers(8, 4), numbers(4, 1)[:, 0], numbers(2, 2, 3, 3)


class Mlp(nn.Module):
    """A batch of any size."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x @ torch.tensor(WEIGHTS[0]) + torch.tensor(WEIGHTS[1]))


class Attention(nn.Module):
    """A sequence of any length."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x @ x.transpose(1, 2), -1) @ x


class Convolution(nn.Module):
    """An image of any height and width."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(torch.conv2d(x, torch.tensor(WEIGHTS[2]), padding=1)).mean((2, 3))


#: Name -> module, an example, names of open axes, and three shapes.
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], dict[int, str], list[tuple[int, ...]]]] = {
    "mlp": (Mlp, (6, 8), {0: "n"}, [(1, 8), (5, 8), (16, 8)]),
    "attention": (Attention, (2, 6, 8), {1: "length"}, [(2, 1, 8), (2, 5, 8), (2, 16, 8)]),
    "convolution": (Convolution, (1, 2, 6, 6), {2: "h", 3: "w"}, [(1, 2, 4, 4), (1, 2, 5, 7), (1, 2, 8, 3)]),
}

ONNX = {
    "mlp": """g (float[n, 8] x) => (float[n, 4] y) <float[8, 4] a = {%s}, float[4] b = {%s}> {
      p = MatMul(x, a) q = Add(p, b) y = Relu(q) }""",
    "attention": """g (float[2, length, 8] x) => (float[2, length, 8] y) {
      t = Transpose<perm=[0, 2, 1]>(x) s = MatMul(x, t) p = Softmax<axis=-1>(s) y = MatMul(p, x) }""",
    "convolution": """g (float[1, 2, h, w] x) => (float[1, 2] y) <float[2, 2, 3, 3] a = {%s}> {
      c = Conv<pads=[1, 1, 1, 1]>(x, a) r = Relu(c) m = GlobalAveragePool(r) y = Flatten(m) }""",
}
GIVEN = {"mlp": WEIGHTS[:2], "attention": (), "convolution": WEIGHTS[2:]}


def from_torch(name: str) -> Any:
    make, example, axes, _ = MODELS[name]
    dims = {axis: Dim(text) for axis, text in axes.items()}
    return torch.export.export(make(), (torch.randn(example),), dynamic_shapes=(dims,))


def from_onnx(name: str) -> Any:
    lists = tuple(", ".join(f"{number:.9g}" for number in array.ravel()) for array in GIVEN[name])
    return parser.parse_model('<ir_version: 9, opset_import: ["" : 18]>\n' + ONNX[name] % lists)


def from_relax(name: str) -> tvm.IRModule:
    _, example, axes, _ = MODELS[name]
    shape = [tvm.tirx.Var(axes[i], "int64") if i in axes else size for i, size in enumerate(example)]
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    given = [relax.const(array) for array in GIVEN[name]]
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            if name == "mlp":
                result = op.nn.relu(op.add(op.matmul(x, given[0]), given[1]))
            elif name == "attention":
                turned = builder.emit(op.permute_dims(x, [0, 2, 1]))
                result = op.matmul(op.nn.softmax(builder.emit(op.matmul(x, turned))), x)
            else:
                result = op.mean(op.nn.relu(op.nn.conv2d(x, given[0], padding=1)), [2, 3])
            output = builder.emit_output(result)
        builder.emit_func_output(output)
    return builder.get()


DOORS = {"torch": from_torch, "onnx": from_onnx, "relax": from_relax}


#: Every door on the processor; what comes out of a front end is the same for all targets.
ENTERED = [(t, d) for t in TARGETS for d in DOORS if t == "uir-cpu" or d == "torch" or ALL]


@functools.cache
def compiled(name: str, door: str, target: str) -> Any:
    return uir_tvm.compile(DOORS[door](name), target)


@pytest.mark.compares_itself(but=("uir-cpu",))
@pytest.mark.parametrize(("target", "door"), ENTERED)
@pytest.mark.parametrize("name", MODELS)
def test_three_shapes(name: str, door: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, _, axes, shapes = MODELS[name]
    if door != "torch":
        # what comes out of a front end is the same for all targets, and for all shapes but those of one row
        shapes = shapes[1:2] if target != "uir-cpu" else asked(shapes[:2], shapes)
        # so are its kernels, whose iGraphs are compared where they come through `torch.export`
        monkeypatch.setenv("UIR_EQUIVALENCE", asked("none", os.environ["UIR_EQUIVALENCE"]))
    exe = compiled(name, door, target)
    assert set(exe.signature.symbols) == set(axes.values())
    for shape in (*shapes, shapes[0]):
        x = numbers(*shape)
        np.testing.assert_allclose(exe(x), make()(torch.tensor(x)).numpy(), **TOLERANCE)
    report = exe.report()
    assert 1 <= report["compiled"] <= len(report["kept"]) == len(shapes)
    assert report["kept"][0]["calls"] == 2
    assert all(not each["kernels_without_igraph"] for each in report["specializations"])


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_in_and_nothing_out(target: str) -> None:
    assert compiled("mlp", "torch", target)(numbers(0, 8)).shape == (0, 4)
    assert compiled("attention", "relax", target)(numbers(2, 0, 8)).shape == (2, 0, 8)
