# SPDX-License-Identifier: Apache-2.0
"""Attention over the keys that a state has so far: how many is a size, and no other is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm.options import ATTENTIONS
from uir_tvm.target.registry import TARGETS

from ..asked import asked

ROOM, MOST, HEADS, KEPT_HEADS, SIZE = 40, 8, 4, 2, 16


class Kept(nn.Module):
    """Keys and values of all tokens so far; what was never written is no number."""

    keys: Tensor
    values: Tensor

    def __init__(self, room: int = ROOM) -> None:
        super().__init__()
        for name in ("keys", "values"):
            self.register_buffer(name, torch.full((1, KEPT_HEADS, room + 1, SIZE), float("nan")))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, places: Tensor, valid: Tensor) -> Tensor:
        count, rows = valid.shape[0], q.shape[2]
        self.keys.index_copy_(2, places, k)
        self.values.index_copy_(2, places, v)
        opened = torch.arange(count)[None] <= torch.arange(rows)[:, None] + (count - rows)
        read = self.keys[:, :, :count], self.values[:, :, :count]
        return nn.functional.scaled_dot_product_attention(q, *read, attn_mask=opened, enable_gqa=True)


def call(place: int, rows: int, seed: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    parts = [
        torch.randn(1, heads, rows, SIZE, generator=generator) for heads in (HEADS, KEPT_HEADS, KEPT_HEADS)
    ]
    return (*parts, torch.arange(place, place + rows), torch.ones(place + rows, dtype=torch.bool))


def compiled(target: str, attention: str, room: int = ROOM, variants: str = "named") -> Any:
    rows, count = Dim("rows", min=1, max=MOST), Dim("count", min=1, max=room)
    shapes = ({2: rows}, {2: rows}, {2: rows}, {0: rows}, {0: count})
    program = torch.export.export(Kept(room), call(4, 5, 0), dynamic_shapes=shapes)
    options = uir_tvm.CompileOptions(
        attention=attention, device="auto" if target == "uir-cpu" else "model", variants=variants
    )
    return uir_tvm.compile(program, target=target, options=options)


@pytest.mark.compares_itself
@pytest.mark.parametrize("attention", asked(ATTENTIONS[:2], ATTENTIONS))
@pytest.mark.parametrize("target", TARGETS)
def test_keys_behind_are_not_read(target: str, attention: str) -> None:
    """One program for prompts, chunks and tokens; no kernel is compiled for the sizes of a call."""
    executable, wanted = compiled(target, attention), Kept()
    for step, (place, rows) in enumerate([(0, 8), (8, 5), (13, 1), (14, 1), (32, 8)][: asked(3, 5)]):
        if place == 32:  # what lies between is written first
            for begin in (15, 23, 31):
                given = call(begin, 8 if begin < 31 else 1, begin)
                executable(*given), wanted(*given)
        given = call(place, rows, step)
        torch.testing.assert_close(
            torch.as_tensor(np.asarray(executable(*given))), wanted(*given), rtol=2e-5, atol=2e-5
        )
    report = executable.report()
    assert report["imported_by_shape"] == ""
    assert not any(program["kernels_by_sizes"] for program in report["programs"])


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", TARGETS)
def test_units_that_have_no_keys(target: str) -> None:
    """One query of many keys is shared among units; of the first few keys some units have none."""
    executable, wanted = compiled(target, "kernel", 1024, "faster"), Kept(1024)
    steps = [(0, 8), (8, 1), (9, 8), (17, 8), (25, 8), (33, 1)]
    for step, (place, rows) in enumerate(steps[: asked(2, len(steps))]):
        given = call(place, rows, step)
        torch.testing.assert_close(
            torch.as_tensor(np.asarray(executable(*given))), wanted(*given), rtol=2e-5, atol=2e-5
        )


@pytest.mark.parametrize("target", TARGETS)
def test_more_keys_than_there_is_room_for(target: str) -> None:
    executable = compiled(target, ATTENTIONS[0])
    with pytest.raises(uir_tvm.errors.ShapeError, match=f"{ROOM}"):
        executable(*call(ROOM - 3, 4, 0))
