# SPDX-License-Identifier: Apache-2.0
"""Weights as inputs, and models in half precision: imported, compiled, compared with PyTorch in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm
from torch import nn
from uir_tvm import frontend

from ..models import MODELS


class Block(nn.Module):
    """A product, a buffer that is added, and a parameter that is only scaled."""

    shift: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 4)
        self.gain = nn.Parameter(torch.rand(4))
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * (self.gain * 2) + self.shift


def test_parameters_become_inputs_after_the_callers() -> None:
    """In the module's order, with their names; other weights of these shapes run in the same executable."""
    module, x = Block().eval(), torch.randn(3, 6)
    mod = frontend.from_torch(module, (x,), weights_as_inputs=True)
    names = frontend.weights_of(mod)
    assert list(names.values()) == [name for name, _ in module.named_parameters()]
    assert [param.name for param in mod["main"].params] == ["x", *names]
    executable = uir_tvm.compile(mod)
    for _ in range(2):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_()
        weights = [module.get_parameter(target).detach() for target in names.values()]
        result = executable(x, *weights)
        np.testing.assert_allclose(result, module(x).detach().numpy(), atol=1e-5)


def test_weights_are_constants_by_default() -> None:
    mod = frontend.from_torch(Block().eval(), (torch.randn(3, 6),))
    assert frontend.weights_of(mod) == {}
    assert len(mod["main"].params) == 1


def single(result: Any) -> np.ndarray:
    """A result, of torch or NumPy, as float32."""
    return result.float().numpy() if isinstance(result, torch.Tensor) else result.astype("float32")


# Roundings to 11 and 8 bits along a handful of layers, relative to the largest logit.
ROUNDING = {torch.float16: 4e-3, torch.bfloat16: 4e-2}


@pytest.mark.parametrize(("name", "dtype"), [("llama", torch.float16), ("gpt2", torch.bfloat16)])
def test_half_precision_transformers_run(name: str, dtype: torch.dtype) -> None:
    """No kernel of a small transformer in half precision is left to TVM's own lowering."""
    module, inputs = MODELS[name].build("small")
    module = module.to(dtype)
    executable = uir_tvm.compile(frontend.from_torch(module, inputs))
    assert not [kernel.fallback for kernel in executable.info.kernels if kernel.fallback]
    result = single(executable(*inputs))
    want = module.float()(*inputs).detach().numpy()
    assert np.abs(result - want).max() <= ROUNDING[dtype] * np.abs(want).max()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_convolutions_of_narrow_floats(dtype: torch.dtype) -> None:
    """Summed in float32, rounded, then the bias: as PyTorch's type says."""
    module = nn.Conv2d(3, 4, 3, padding=1).eval().to(dtype)
    x = torch.randn(1, 3, 6, 6).to(dtype)
    mod = frontend.from_torch(module, (x,))
    assert str(mod["main"].ret_ty.dtype) == str(dtype).removeprefix("torch.")
    executable = uir_tvm.compile(mod)
    want = module.float()(x.float()).detach().numpy()
    result = single(executable(x))
    assert np.abs(result - want).max() <= 2 * ROUNDING[dtype] * np.abs(want).max()


@pytest.mark.parametrize("target", ["uir-cpu", "uir-cuda", "uir-ascend", "uir-bang"])
def test_a_convolution_whose_weight_is_an_argument(target: str) -> None:
    """The library computes it too, also where the weight is a view of the argument."""

    class Convolution(nn.Module):
        def forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            first = torch.nn.functional.conv2d(x, weight, bias, stride=2, padding=1).relu()
            return torch.nn.functional.conv2d(first, weight.transpose(0, 1), padding=1)

    given = (torch.randn(1, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4))
    executable = uir_tvm.compile(Convolution(), args=given, target=target)
    torch.testing.assert_close(executable(*given), Convolution()(*given), rtol=1e-5, atol=1e-4)
    kinds = [node.kind for node in executable.kernel_graph.library_ops]
    assert kinds == ["conv2d", "conv2d"]
