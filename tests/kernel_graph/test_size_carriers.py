# SPDX-License-Identifier: Apache-2.0
"""Kernels that no buffer tells a size are given an input of the model that does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm.options import CompileOptions
from uir_tvm.target.registry import TARGETS

WIDE = 24


class Shifted(nn.Module):
    """Places of rows behind a number of others: how many there are is a size of no other operand."""

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        places = torch.arange(x.shape[0]) + before.shape[0]
        return torch.exp(-(x * 0.5 + places[:, None].float()))


@pytest.mark.parametrize("target", TARGETS)
def test_a_size_that_no_buffer_has(target: str) -> None:
    """Kernels for all sizes, in the place of one for each."""
    dims = ({0: Dim("rows", min=1, max=40)}, {0: Dim("others", min=1, max=64)})
    example = torch.zeros(5, WIDE), torch.zeros(9, dtype=torch.bool)
    program = torch.export.export(Shifted(), example, dynamic_shapes=dims)
    executable = uir_tvm.compile(program, target=target, options=CompileOptions(variants="named"))
    for rows, others in [(5, 9), (40, 1), (1, 64)]:
        x, before = torch.rand(rows, WIDE), torch.ones(others, dtype=torch.bool)
        got = torch.as_tensor(np.asarray(executable(x, before)))
        torch.testing.assert_close(got, Shifted()(x, before), rtol=1e-5, atol=1e-30)
    (found,) = executable.report()["programs"]
    assert found["kernels_by_sizes"] == []
