# SPDX-License-Identifier: Apache-2.0
"""Operators beside the usual along open axes: what no recipe takes is lowered by TVM once for all sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim


class RunningSums(nn.Module):
    """Positions among the words that a mask keeps."""

    def forward(self, mask: Tensor) -> Tensor:
        return torch.cumsum((mask != 0).to(torch.int64), 1) - 1


@pytest.mark.parametrize("target", ["uir-cpu", "uir-ascend"])
def test_running_sums_are_compiled_once(target: str) -> None:
    axes = ({0: Dim("n", max=8), 1: Dim("length", max=64)},)
    options = uir_tvm.CompileOptions(device="auto" if target == "uir-cpu" else "model")
    some, model = torch.ones(2, 9, dtype=torch.int64), RunningSums()
    exe: Any = uir_tvm.compile(model, target, args=(some,), dynamic_shapes=axes, options=options)
    for shape in ((2, 9), (1, 64), (8, 2), (3, 1)):
        mask = torch.randint(0, 2, shape)
        assert exe(mask).numpy().tolist() == model(mask).tolist()
    (made,) = exe.report()["programs"]
    assert made["kernels_by_sizes"] == [] and made["shapes"] == 4


class Places(nn.Module):
    """Where the greatest stands: an index below a length that is open."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.argmax(x, 1)


def test_the_place_of_the_greatest_is_found_once_for_all_lengths() -> None:
    axes = ({0: Dim("n", max=8), 1: Dim("length", max=64)},)
    exe: Any = uir_tvm.compile(Places(), args=(torch.randn(2, 9),), dynamic_shapes=axes)
    for shape in ((2, 9), (1, 64), (8, 2), (3, 1)):
        x = torch.randn(*shape)
        x[0] = -torch.inf
        assert exe(x).numpy().tolist() == torch.argmax(x, 1).tolist()
    report = exe.report()
    assert report["imported_by_shape"] == "" and report["programs"][0]["kernels_by_sizes"] == []
