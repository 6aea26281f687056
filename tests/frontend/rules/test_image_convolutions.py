# SPDX-License-Identifier: Apache-2.0
"""Convolutions of sequences and volumes, and transposed ones: each is a library's convolution of images."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
import uir_tvm
from hypothesis import Phase, given, settings
from torch import nn
from torch.export import Dim

from tests.asked import asked


def compiled(module: nn.Module, x: torch.Tensor, **options: Any) -> tuple[uir_tvm.Executable, list[str]]:
    """The executable, and what its nodes compute."""
    exe = uir_tvm.compile(module.eval(), args=(x,), **options)
    return exe, [getattr(node, "hero", None) or node.kind for node in exe.kernel_graph.nodes]


def assert_right(got: torch.Tensor, want: torch.Tensor, tolerance: float = 2e-6) -> None:
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    scale = max(1.0, float(want.detach().abs().max()))
    np.testing.assert_allclose(got, want.detach(), rtol=0, atol=tolerance * scale)


CASES: dict[str, tuple[nn.Module, tuple[int, ...], list[str]]] = {
    "sequence": (nn.Conv1d(4, 6, 5, padding=2, dilation=2, stride=2, groups=2), (2, 4, 21), ["conv2d"]),
    "volume": (
        nn.Conv3d(4, 6, 3, padding=(1, 2, 0), stride=(2, 1, 1), groups=2),
        (2, 4, 5, 6, 7),
        ["opaque", "concat", "conv2d", "elementwise"],
    ),
    "video's patches": (
        nn.Conv3d(3, 8, (1, 4, 4), stride=(1, 4, 4)),
        (1, 3, 2, 8, 8),
        ["elementwise", "conv2d"],
    ),
    "whole strides": (nn.ConvTranspose2d(6, 4, 2, stride=2), (2, 6, 5, 7), ["conv2d"]),
    "a padding that is no stride": (
        nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1),
        (1, 6, 5, 7),
        ["conv2d", "opaque"],
    ),
    "a kernel that is no stride": (
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        (1, 4, 5, 7),
        ["conv2d"],
    ),
    "results beyond the last": (
        nn.ConvTranspose2d(2, 3, 2, stride=3, output_padding=(2, 1)),
        (1, 2, 4, 3),
        ["conv2d"],
    ),
    "dilated": (nn.ConvTranspose2d(2, 3, (3, 1), stride=(3, 2), dilation=2), (1, 2, 4, 3), ["conv2d"]),
    "stride of one": (nn.ConvTranspose2d(2, 3, 3, padding=1), (1, 2, 6, 5), ["conv2d"]),
    "padding beyond the kernel": (nn.ConvTranspose2d(2, 3, 2, stride=1, padding=3), (1, 2, 9, 9), ["conv2d"]),
    "transposed sequence": (nn.ConvTranspose1d(4, 4, 4, stride=2, padding=1), (2, 4, 9), ["conv2d"]),
}


@pytest.mark.parametrize("name", CASES)
def test_is_a_convolution_of_the_library(name: str) -> None:
    module, shape, wanted = CASES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    exe, kinds = compiled(module, x)
    assert kinds[: len(wanted)] == wanted
    assert_right(exe(x), module(x))


@settings(max_examples=asked(6, 200), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_any_transposed_convolution(data: st.DataObject) -> None:
    """Kernels, strides, padding, dilation, groups and further results, each axis by itself."""

    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.integers(low, high)), data.draw(st.integers(low, high))

    strides = pair(1, 3)
    more = tuple(data.draw(st.integers(0, stride - 1)) for stride in strides)
    groups = data.draw(st.integers(1, 2))
    module = nn.ConvTranspose2d(
        2 * groups, 3 * groups, pair(1, 4), strides, pair(0, 2), more, groups, True, pair(1, 2)
    )
    x = torch.randn(1, 2 * groups, *pair(3, 5))
    try:
        want = module(x)
    except RuntimeError:  # an empty result
        return
    exe, kinds = compiled(module, x)
    assert "conv2d" in kinds
    assert_right(exe(x), want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_types(dtype: torch.dtype) -> None:
    module = nn.ConvTranspose2d(4, 4, 2, stride=2).to(dtype)
    x = torch.randn(1, 4, 4, 4).to(dtype)
    exe, kinds = compiled(module, x)
    assert "conv2d" in kinds
    assert_right(exe(x).float(), module(x).float(), 2e-2)


def test_float64_keeps_its_kernel() -> None:
    """No library computes it: nothing is gained by another form."""
    module, x = nn.Conv1d(2, 3, 3).double(), torch.randn(1, 2, 8).double()
    exe, kinds = compiled(module, x)
    assert kinds == ["opaque", "elementwise"]
    assert_right(exe(x), module(x), 1e-14)


@pytest.mark.parametrize("target", ["uir-cuda", "uir-ascend", "uir-bang"])
def test_on_devices(target: str) -> None:
    """Padding is the same on both sides: not all of their libraries have another."""
    module, x = nn.ConvTranspose2d(4, 4, 4, stride=2, padding=1), torch.randn(1, 4, 3, 4)
    exe, kinds = compiled(module, x, target=target)
    assert kinds[0] == "conv2d"
    assert_right(exe(x), module(x))


def test_open_lengths_are_one_kernel() -> None:
    """Up and down again along a sequence of any length: nothing is compiled for one of them."""
    module = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.ReLU(), nn.ConvTranspose1d(4, 2, 4, 2, 1)).eval()
    exe = uir_tvm.compile(
        module, args=(torch.randn(1, 2, 8),), dynamic_shapes=({2: Dim("t", min=4, max=64)},)
    )
    for length in (4, 17, 64):
        x = torch.randn(1, 2, length)
        assert_right(exe(x), module(x))
    (program,) = exe.report()["programs"]
    assert (program["library"], program["kernels_by_sizes"]) == (2, [])
