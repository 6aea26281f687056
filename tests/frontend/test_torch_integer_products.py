# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch whose activations and weights are bytes (PT2E's form) multiply integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import uir_tvm
from torch import Tensor, nn

from tests.asked import asked

OPS = torch.ops.quantized_decomposed
#: Of activations: least and greatest byte, and their type.
UNSIGNED, SIGNED = (0, 255, torch.uint8), (-128, 127, torch.int8)


class Bytes(nn.Module):
    """Numbers that are rounded to bytes, and read as such."""

    def __init__(
        self, step: float, zero: int, limits: tuple[int, int, torch.dtype], tensors: bool = False
    ) -> None:
        super().__init__()
        self.step, self.zero, self.limits, self.tensors = step, zero, limits, tensors
        self.register_buffer("steps", torch.tensor([step]))
        self.register_buffer("zeros", torch.tensor([zero]))

    def forward(self, x: Tensor) -> Tensor:
        kind, how = (
            ("tensor", (self.steps, self.zeros)) if self.tensors else ("default", (self.step, self.zero))
        )
        codes = getattr(OPS.quantize_per_tensor, kind)(x, *how, *self.limits)
        return getattr(OPS.dequantize_per_tensor, kind)(codes, *how, *self.limits)


class Layer(nn.Module):
    """A product whose weight is int8 with a scale for each output, and whose bias is int32."""

    def __init__(self, apply: Callable[..., Tensor], shape: tuple[int, ...], **how: Any) -> None:
        super().__init__()
        self.apply_to, self.how = apply, how
        made = torch.Generator().manual_seed(sum(shape))
        self.register_buffer("codes", torch.randint(-127, 128, shape, generator=made, dtype=torch.int8))
        self.register_buffer("scales", torch.rand(shape[0], generator=made) * 0.002 + 0.001)
        self.register_buffer("zeros", torch.zeros(shape[0], dtype=torch.int64))
        self.register_buffer("bias", torch.randint(-3000, 3000, shape[:1], generator=made, dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        weight = OPS.dequantize_per_channel(self.codes, self.scales, self.zeros, 0, -127, 127, torch.int8)
        bias = OPS.dequantize_per_tensor(self.bias, 1e-4, 0, -(2**31), 2**31 - 1, torch.int32)
        return self.apply_to(x, weight, bias, **self.how)


def _network(limits: tuple[int, int, torch.dtype], tensors: bool) -> nn.Sequential:
    """Two convolutions and two products of matrices, bytes between them."""
    low = limits[0]
    return nn.Sequential(
        Bytes(0.03, low + 121, limits, tensors),
        Layer(nn.functional.conv2d, (8, 4, 3, 3), padding=1),
        nn.ReLU(),
        Bytes(0.02, low, limits, tensors),
        Layer(nn.functional.conv2d, (6, 8, 3, 3), stride=2),
        Bytes(0.04, low + 99, limits, tensors),
        nn.Flatten(),
        Layer(nn.functional.linear, (24, 6 * 3 * 3)),
        nn.ReLU(),
        Bytes(0.02, low, limits, tensors),
        Layer(nn.functional.linear, (10, 24)),
        Bytes(0.02, low + 128, limits, tensors),
    ).eval()


@pytest.mark.parametrize("tensors", [False, True], ids=["numbers", "tensors"])
@pytest.mark.parametrize("limits", [UNSIGNED, SIGNED], ids=["uint8", "int8"])
def test_products_are_integers_between_which_values_stay_bytes(
    limits: tuple[int, int, torch.dtype], tensors: bool
) -> None:
    model = _network(limits, tensors)
    x = torch.randn(3, 4, 7, 7, generator=torch.Generator().manual_seed(1))
    exe = uir_tvm.compile(torch.export.export(model, (x,)), "uir-cpu")
    products = [node for node in exe.kernel_graph.library_ops if node.kind == "integer_product"]
    assert [each.reason for each in exe.kernel_graph.integers if not each.taken] == []
    assert len(products) == 4
    kept = str(limits[2]).removeprefix("torch.")
    assert {value.dtype for node in products for value in (node.inputs[0], node.outputs[0])} == {kept}
    difference = np.abs(exe(x).numpy() - model(x).numpy())
    # a number close to a half is rounded to either byte: PyTorch adds up floats
    assert difference.max() <= 2.02 * 0.02
    assert (difference < 0.01).mean() > 0.9


@pytest.mark.parametrize("target", asked(("uir-cuda", "uir-bang"), ("uir-cuda", "uir-ascend", "uir-bang")))
def test_devices_multiply_integers_too(target: str) -> None:
    """Products of matrices; such small convolutions are in floats, and say so."""
    model = _network(UNSIGNED, False)
    x = torch.randn(3, 4, 7, 7, generator=torch.Generator().manual_seed(1))
    options = uir_tvm.CompileOptions(device="model")
    exe = uir_tvm.compile(torch.export.export(model, (x,)), target, options=options)
    products = [node for node in exe.kernel_graph.library_ops if node.kind == "integer_matmul"]
    assert [each.taken for each in exe.kernel_graph.integers] == [False, False, True, True]
    assert {value.dtype for node in products for value in node.inputs[:2]} == {"int8"}
    difference = np.abs(np.asarray(exe(x)) - model(x).numpy())
    assert difference.max() <= 2.02 * 0.02
    assert (difference < 0.01).mean() > 0.9
