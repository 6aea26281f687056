# SPDX-License-Identifier: Apache-2.0
"""Operators that choose among elements: a size of 0 is refused as PyTorch refuses it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm.errors import SizeError
from uir_tvm.frontend.torch_choices import check_choices

CHOICES: dict[str, Callable[[Tensor], Any]] = {
    "max.default": lambda x: x.max(),
    "min.dim": lambda x: x.min(0)[0],
    "median.dim": lambda x: x.median(0)[0],
    "amax.default": lambda x: x.amax((0, 1)),
    "argmax.default": lambda x: x.argmax(0),
    "linalg_vector_norm.default": lambda x: torch.linalg.vector_norm(x, -math.inf, 0),
}


class Of(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


@pytest.mark.parametrize("operator", CHOICES)
def test_no_rows_are_refused(operator: str) -> None:
    """In a program for any number of rows; PyTorch refuses them too."""
    function, n = CHOICES[operator], Dim("n", max=99)
    with pytest.raises((IndexError, RuntimeError)):
        function(torch.zeros(0, 3))
    exe = uir_tvm.compile(Of(function), args=(torch.zeros(4, 3),), dynamic_shapes=({0: n},))
    with pytest.raises(SizeError) as caught:
        exe(torch.zeros(0, 3))
    assert operator in caught.value.where


def test_the_error_names_operator_axis_and_line() -> None:
    program = torch.export.export(Of(CHOICES["min.dim"]), (torch.zeros(0, 3),))
    with pytest.raises(SizeError, match=r"^min.dim along axis 0 has no result") as caught:
        check_choices(program)
    assert "return self.function(x)" in caught.value.where


def test_other_axes_may_have_no_elements() -> None:
    """Nothing is chosen for each of no rows, and norms that are sums have a result."""
    for function in (lambda x: x.amax(1), lambda x: x.sum(0), lambda x: torch.linalg.vector_norm(x, 2, 0)):
        x = torch.zeros(0, 3)
        torch.testing.assert_close(uir_tvm.compile(Of(function), args=(x,))(x), function(x))
