# SPDX-License-Identifier: Apache-2.0
"""Attention over keys that are state is the library's; other attentions stay kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm
from uir_tvm.options import CompileOptions


class Cached(torch.nn.Module):
    """Four heads of queries on two of keys; `form` is what happens between the products."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.register_buffer("keys", torch.zeros(1, 2, 40, 16))
        self.register_buffer("values", torch.zeros(1, 2, 40, 16))

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(2, places, x[:, :2])
        self.values.index_copy_(2, places, x[:, 2:4])
        keys, values = (
            state.repeat_interleave(2, 1) if self.form != "elsewhere" else state.repeat_interleave(2, 1) + 1
            for state in (self.keys, self.values)
        )
        scores = x[:, 4:] @ keys.transpose(-1, -2)
        if self.form == "capped":
            scores = torch.tanh(scores / 5) * 5
        closed = torch.arange(40)[None] > places[:, None]
        scores = scores * 0.25 + torch.where(closed, -torch.inf, 0.0)
        if self.form == "scaled mask":
            scores = scores * 2
        return (scores.softmax(-1) @ values).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("form", "library"), [("plain", 1), ("capped", 0), ("scaled mask", 0), ("elsewhere", 0)]
)
def test_results_and_who_computes_them(form: str, library: int) -> None:
    rng = np.random.default_rng(3)
    length = torch.export.Dim("length", max=12)
    args = (torch.zeros(1, 8, 5, 16), torch.arange(5))
    program = torch.export.export(Cached(form), args, dynamic_shapes=({2: length}, {0: length}), strict=True)
    exe = uir_tvm.compile(program, options=CompileOptions(variants="named"))
    reference, place = Cached(form), 0
    for count in (7, 1, 12, 1):
        x = torch.from_numpy(rng.standard_normal((1, 8, count, 16)).astype(np.float32))
        places = torch.arange(place, place + count)
        place += count
        with torch.no_grad():
            want = reference(x, places)
        got: Any = exe(x, places)
        np.testing.assert_allclose(np.asarray(got), want.numpy(), rtol=1e-4, atol=1e-5)
    report = exe.specialized(x, places).report()
    assert report["library"] == library
    assert report["heroes"].get("attention", 0) == 1 - library
