# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks with open batch, height and width: images keep the channels last for all sizes."""

from __future__ import annotations

import pathlib

import pytest
import torch
import uir_tvm
from torch import nn
from torch.export import Dim


class Network(nn.Module):
    """Strides, a pool, a residual, an activation of no library, and branches side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 20, 3, 2, 1), nn.ReLU6(), nn.MaxPool2d(3, 2, 1))
        self.block = nn.Conv2d(20, 20, 3, padding=1)
        self.branch = nn.Conv2d(20, 9, 1)
        self.last = nn.Conv2d(29, 7, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (batch, 3, height, width) -> (batch, 7, about height / 8, about width / 8)."""
        x = self.first(x)
        x = torch.relu(self.block(x) + x)
        return self.last(torch.cat((x, torch.cos(self.branch(x))), 1))


def compiled() -> tuple[nn.Module, uir_tvm.SpecializedExecutable]:
    torch.manual_seed(3)
    model = Network().eval().requires_grad_(False)
    dims = {0: Dim("batch", max=16), 2: Dim("height", min=16, max=128), 3: Dim("width", min=16, max=128)}
    exe = uir_tvm.compile(model, "uir-cpu", args=(torch.randn(2, 3, 40, 33),), dynamic_shapes=(dims,))
    return model, exe


SIZES = [(1, 16, 16), (3, 37, 50), (2, 64, 17)]


def test_one_program_for_all_images(tmp_path: pathlib.Path) -> None:
    """It agrees with torch, loaded from a file too, and nothing but convolutions and few kernels runs."""
    model, exe = compiled()
    images = [torch.randn(n, 3, h, w) for n, h, w in SIZES]
    want = [model(x) for x in images]
    for x, y in zip(images, want, strict=True):
        torch.testing.assert_close(exe(x), y, rtol=1e-4, atol=1e-5)
    (program,) = exe.report()["programs"]
    assert not program["kernels_by_sizes"]
    assert program["library"] == 4
    exe.save(tmp_path / "model.uir")
    loaded = uir_tvm.load(tmp_path / "model.uir")
    for x, y in zip(images, want, strict=True):
        torch.testing.assert_close(torch.as_tensor(loaded(x)), y, rtol=1e-4, atol=1e-5)


def test_direct_sums_on_request() -> None:
    """Sums of pixels would make NaN of an infinite one; products of pixels make infinities, as torch says."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(3, 16, 1), nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 1))
    model = model.eval().requires_grad_(False)
    with torch.no_grad():  # so that no sum has infinities of both signs
        for layer in model:
            layer.weight.abs_()
    dims = {0: Dim("batch", max=16), 2: Dim("height", min=4, max=64)}
    x = torch.randn(2, 3, 12, 10)
    x[1, 0, 5, 6] = torch.inf
    exe = uir_tvm.compile(
        model,
        "uir-cpu",
        args=(torch.randn(3, 3, 14, 10),),
        dynamic_shapes=(dims,),
        options=uir_tvm.CompileOptions(convolution="direct"),
    )
    torch.testing.assert_close(exe(x), model(x), rtol=1e-4, atol=1e-5)


def test_an_unknown_way_to_add_up() -> None:
    with pytest.raises(uir_tvm.errors.UirError, match="direct adds up products of pixels alone"):
        uir_tvm.CompileOptions(convolution="sums")
