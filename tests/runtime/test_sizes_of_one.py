# SPDX-License-Identifier: Apache-2.0
"""Sizes of 1 are served by what serves all sizes, wherever a model means the same there."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx.parser
import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim

SHAPES = [*itertools.product((3, 1), (5, 1)), (2, 7)]


class Views(nn.Module):
    """What moves, repeats and parts axes that may be 1."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        b, s, w = x.shape
        heads = x.view(b, s, 4, w // 4).transpose(1, 2)
        mask = (y > 0)[:, None, :, 0]
        joined = torch.cat([x, y], 1)
        positions = torch.arange(s)[None, :, None] + torch.zeros_like(x)
        return (
            (heads @ heads.transpose(-1, -2)).softmax(-1) @ heads,
            joined,
            positions * mask.transpose(1, 2),
            x.permute(2, 1, 0).reshape(w, -1),
            torch.stack([x, y]).flatten(1, 2).sum(1),
            x.unsqueeze(1).repeat(1, 2, 1, 1) - y[:, None],
            torch.where(x > y, x, y).mean(1, keepdim=True).squeeze(1),
            x.amax(0),
            (x[:, 0] + y[:, 0]).unbind(1)[2],
        )


class Layers(nn.Module):
    """Layers over an open batch and length."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.conv = nn.Sequential(nn.Conv1d(16, 16, 3, padding=1), nn.BatchNorm1d(16), nn.GELU())
        self.norm, self.group = nn.LayerNorm(16), nn.GroupNorm(4, 16)
        self.attention = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.out = nn.Linear(16, 3)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        given = self.norm(self.embed(x) + y)
        along = self.conv(given.transpose(1, 2))
        return torch.log_softmax(self.out(self.attention(given)), -1), self.group(along), along.mean(-1)


def inputs(model: nn.Module, b: int, s: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(b * 10 + s)
    second = torch.randn(b, s, 16)
    return (torch.randint(0, 50, (b, s)) if isinstance(model, Layers) else torch.randn(b, s, 16)), second


def compiled(model: nn.Module) -> Any:
    b, s = Dim("b", min=1, max=64), Dim("s", min=1, max=64)
    return uir_tvm.compile(model, args=inputs(model, 4, 6), dynamic_shapes=({0: b, 1: s}, {0: b, 1: s}))


@pytest.mark.parametrize("make", [Views, Layers])
def test_one_program_serves_sizes_of_one(make: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model = make().eval()
    exe = compiled(model)
    for shape in SHAPES:
        given = inputs(model, *shape)
        for got, want in zip(exe(*given), model(*given), strict=True):
            torch.testing.assert_close(got, want.detach(), rtol=1e-4, atol=1e-5)
    (program,) = exe.report()["programs"]
    assert exe.compiled == 1 and program["shapes"] == len(SHAPES)


class Squeezes(nn.Module):
    """Axes that go where they are 1."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.tanh(x).squeeze(1)


class Varies(nn.Module):
    """An operator of which nobody said that its rules are the same."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.var(x, 1, correction=0) + y.mean(1)


@pytest.mark.parametrize("make", [Squeezes, Varies])
def test_where_one_means_something_else_it_is_compiled_by_itself(make: type[nn.Module]) -> None:
    model = make().eval()
    exe = compiled(model)
    for shape in SHAPES:
        given = inputs(model, *shape)
        want = model(*given)
        got = exe(*given)
        assert got.shape == want.shape
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert exe.compiled > 1


def test_where_a_model_cannot_be_read_with_ones_it_is_read_without() -> None:
    """Of one row a pool of two rows has less than none."""
    proto = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (float[1, 4, h, 8] x) => (float[o] y) {'
        "  a = MaxPool <kernel_shape=[2, 2], strides=[2, 2]> (x) y = ReduceSum <keepdims=0> (a) }"
    )
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    exe = uir_tvm.compile(proto)
    for h in (9, 12, 2):
        x = np.random.default_rng(h).standard_normal((1, 4, h, 8), np.float32)
        want = torch.max_pool2d(torch.from_numpy(x), 2, 2).sum()
        np.testing.assert_allclose(exe(x), want, rtol=1e-4)
    (program,) = exe.report()["programs"]
    assert program["conditions"][0] == "2 <= h" and program["shapes"] == 3
