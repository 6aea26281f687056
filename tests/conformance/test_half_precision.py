# SPDX-License-Identifier: Apache-2.0
"""Half precision on every target: models that are of it, and float32 models that are computed in it."""

from __future__ import annotations

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from uir_tvm.target.registry import TARGETS

from tests.asked import every_two

#: Roundings along four layers, relative to the largest result.
ROUNDING = {"float16": 4e-3, "bfloat16": 3e-2}
#: What the model is of.
FLOAT, OWN = "of float32", "of its dtype"


class Layers(nn.Module):
    """A convolution with its normalisation, and a feed-forward layer with a norm and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.up, self.down, self.last = nn.Linear(32, 64), nn.Linear(64, 32), nn.LayerNorm(32)

    def forward(self, image: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x + self.down(nn.functional.gelu(self.up(self.last(x))))
        return torch.relu(self.norm(self.conv(image))), torch.softmax(y, -1)


@pytest.fixture(scope="module")
def model() -> tuple[nn.Module, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    torch.manual_seed(5)
    module = Layers().eval()
    with torch.no_grad():
        module.norm.running_mean.uniform_(-1, 1)
        module.norm.running_var.uniform_(0.5, 2)
        given = torch.randn(2, 3, 10, 12), torch.randn(5, 32)
        return module, given, module(*given)


@pytest.mark.compares_itself
@pytest.mark.parametrize(("target", "precision", "of"), every_two(TARGETS, sorted(ROUNDING), (OWN, FLOAT)))
def test_a_model_in_half_precision(target: str, precision: str, of: str, model) -> None:
    module, given, want = model
    options = uir_tvm.CompileOptions(
        device="auto" if target == "uir-cpu" else "model",
        precision=precision if of == FLOAT else "float32",
    )
    if of != FLOAT:
        dtype = getattr(torch, precision)
        module, given = Layers().eval(), tuple(each.to(dtype) for each in given)
        module.load_state_dict(model[0].state_dict())
        module.to(dtype)
    exe = uir_tvm.compile(module, target, args=given, options=options)
    for found, expected in zip(exe(*given), want, strict=True):
        assert found.dtype == given[0].dtype
        error = (found.float() - expected).abs().max() / expected.abs().max()
        assert 0 < error <= ROUNDING[precision]
    report = exe.report()
    assert not report["fallbacks"], report["fallbacks"]
    convolutions = [node for node in exe.kernel_graph.library_ops if node.kind == "conv2d"]
    assert len(convolutions) == 1 or (target, precision) == ("uir-bang", "bfloat16")
