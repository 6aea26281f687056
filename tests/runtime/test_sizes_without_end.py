# SPDX-License-Identifier: Apache-2.0
"""Sizes without a greatest value: kernels that need one serve sizes up to a number, then others are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm.runtime.open_kernels import LIMITS
from uir_tvm.sizes.open_symbols import symbols_for
from uir_tvm.sizes.size_space import SizeSpace


class Shares(nn.Module):
    """Softmax over an axis of any length: its row lies on chip."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x * 2, -1)


def test_one_kernel_serves_sizes_up_to_a_number_and_another_what_is_beyond() -> None:
    exe: Any = uir_tvm.compile(
        Shares(), args=(torch.randn(4, 7),), dynamic_shapes=({0: Dim("n"), 1: Dim("m")},)
    )
    for shape in ((3, 5), (1, 900), (700, 2), (2, LIMITS[0]), (2, LIMITS[0] + 1)):
        x = torch.randn(*shape)
        np.testing.assert_allclose(np.asarray(exe(x)), torch.softmax(x * 2, -1).numpy(), atol=1e-6)
    first, second = exe.report()["programs"]
    assert f"{LIMITS[0]} >= m" in first["conditions"] and first["shapes"] == 4
    assert not any("n" in text for text in first["conditions"][2:])  # rows may be as many as they like
    assert first["kernels_by_sizes"] == [] and second["shapes"] == 1


def test_a_size_is_held_to_no_number_below_what_stands_for_it() -> None:
    space = SizeSpace(symbols_for({"n": (0, None), "m": (0, 100)}, {"n": "n", "m": "m"}), {"n": 3000, "m": 9})
    assert space.may_limit("n", 3000) and not space.may_limit("n", 2999)
    assert not space.may_limit("m", 100) and not space.may_limit("m", space.representatives["m"] - 1)
    space.limit("n", 4096)
    assert space.range_of("n") == (2, 4096) and not space.may_limit("n", 8192)
    assert space.admits()(n=4096, m=2) and not space.admits()(n=4097, m=2)
