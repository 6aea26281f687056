# SPDX-License-Identifier: Apache-2.0
"""Kernels for all sizes that hand over to a faster one where a size has one value."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from tvm.script import tirx as T
from uir_tvm.errors import SizeError
from uir_tvm.runtime.one_value import handing_over


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
    assert report["compiled"] == 1 and not report["programs"][0]["kernels_by_sizes"]
    loaded = uir_tvm.load(exe.save(tmp_path / "attention.uir"))
    for shape in shapes:
        given = model.inputs(*shape)
        torch.testing.assert_close(loaded(*given), exe(*given), rtol=0, atol=0)
    with pytest.raises(SizeError):
        exe(*model.inputs(4, 129))


@T.prim_func(s_tir=True)
def whole(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")) -> None:
    for i, j in T.grid(x.shape[0], 4):
        y[i, j] = x[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def alone(a: T.Buffer((1, 4), "float32"), b: T.Buffer((1, 4), "float32")) -> None:
    for j in range(4):
        b[0, j] = a[0, j] + T.float32(100)


def test_the_value_alone_runs_the_other_body() -> None:
    """Two bodies that differ, so that each result says which one ran."""
    made = handing_over(whole, alone, "n", 1)
    run = tvm.compile(tvm.IRModule({"main": made.with_attr("global_symbol", "main")}), target="llvm")["main"]
    for rows in (1, 2, 3):
        x, y = np.ones((rows, 4), "float32"), tvm.runtime.empty((rows, 4), "float32")
        run(tvm.runtime.tensor(x), y)
        assert (y.numpy() == (101 if rows == 1 else 2)).all()
