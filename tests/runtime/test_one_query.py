# SPDX-License-Identifier: Apache-2.0
"""Attention with an open number of queries hands over to a kernel of its own where there is one."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm.errors import SizeError


class Attention(nn.Module):
    """Queries of nine heads on the keys of fewer, with a mask."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        if self.heads < 9:
            k, v = k.repeat_interleave(9 // self.heads, 1), v.repeat_interleave(9 // self.heads, 1)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def inputs(self, batch: int, rows: int) -> tuple[Tensor, ...]:
        torch.manual_seed(batch * 100 + rows)
        keys = torch.randn(batch, self.heads, 80, 16), torch.randn(batch, self.heads, 80, 16)
        mask = torch.zeros(1, 1, rows, 80).masked_fill(torch.rand(1, 1, rows, 80) < 0.3, -1e9)
        return torch.randn(batch, 9, rows, 16), *keys, mask


@pytest.mark.parametrize(("heads", "batches"), [(3, False), (9, True)], ids=["rows", "batches and rows"])
def test_one_query_has_a_kernel_of_its_own(heads: int, batches: bool, tmp_path: pathlib.Path) -> None:
    b, n = Dim("b", min=1, max=8), Dim("n", min=1, max=128)
    outer = {0: b} if batches else {}
    model = Attention(heads)
    axes = ({**outer, 2: n}, outer, outer, {2: n})
    exe: Any = uir_tvm.compile(model, args=model.inputs(4, 6), dynamic_shapes=axes)
    shapes = [(4, 1), (4, 2), (4, 33), *([(1, 1), (8, 1), (1, 5)] if batches else [])]
    for shape in shapes:
        given = model.inputs(*shape)
        torch.testing.assert_close(exe(*given), model(*given), rtol=1e-4, atol=1e-5)
    report = exe.report()
    (conditions,) = report["programs"][0]["variants"].values()
    # of the name that the model gave it, not of PyTorch's symbol
    assert conditions == ["n == 1"]
    assert report["compiled"] == 1 and not report["programs"][0]["kernels_by_sizes"]
    loaded = uir_tvm.load(exe.save(tmp_path / "attention.uir"))
    assert loaded.report()["programs"][0]["variants"] == report["programs"][0]["variants"]
    for shape in shapes:
        given = model.inputs(*shape)
        torch.testing.assert_close(loaded(*given), exe(*given), rtol=0, atol=0)
    with pytest.raises(SizeError):
        exe(*model.inputs(4, 129))
