# SPDX-License-Identifier: Apache-2.0
"""Equal kernels share a function; different ones do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm
from torch.export import Dim
from tvm import relax
from uir_tvm.target.registry import TARGETS

from .programs import check, constant

op = relax.op


def test_layers_share_their_kernels() -> None:
    """Three norms with weights of their own: one function, weights as parameters."""

    def body(emit, x):
        for layer in range(3):
            y = emit(op.nn.layer_norm(x, constant(8, seed=layer), constant(8, seed=layer + 9), axes=[-1]))
            x = emit(op.matmul(y, constant(8, 8, seed=layer)))
        return x

    graph = check({"x": ((4, 8), "float32")}, body)
    assert (len(graph.custom_ops), len(graph.kernels)) == (3, 1)
    assert len({node.name for node in graph.custom_ops}) == 1


def test_a_number_or_a_slice_makes_a_kernel_of_its_own() -> None:
    """A constant inside the code and an offset into the operand are code."""

    def body(emit, x):
        results = []
        for begin, value in [(0, 2.0), (0, 3.0), (4, 2.0)]:
            part = emit(op.strided_slice(x, [1], [begin], [begin + 4]))
            results.append(emit(op.nn.softmax(emit(op.multiply(part, relax.const(value, "float32"))))))
        return tuple(results)

    graph = check({"x": ((4, 8), "float32")}, body, fusion="apart")
    assert (len(graph.custom_ops), len(graph.kernels)) == (3, 3)
    assert len(set(graph.kernels)) == 3


class Exponentials(torch.nn.Module):
    """Two vectors of lengths of their own."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.exp(a) + 1, torch.exp(b) + 1


def exponentials(target: str, other: Any) -> Any:
    shapes = ({0: Dim("s", min=1, max=256)}, {0: other})
    program = torch.export.export(Exponentials(), (torch.zeros(7), torch.zeros(33)), dynamic_shapes=shapes)
    return uir_tvm.compile(program, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_axes_of_other_ranges_have_kernels_of_their_own(target: str) -> None:
    """A kernel takes the lengths of its own axis alone: here each has one that the other lacks."""
    executable = exponentials(target, Dim("v", min=2, max=511))
    for lengths in [(1, 33), (7, 511)]:
        given = [torch.linspace(-1, 1, length) for length in lengths]
        for got, want in zip(executable(*given), Exponentials()(*given), strict=True):
            torch.testing.assert_close(torch.as_tensor(np.asarray(got)), want)


def test_axes_of_one_range_share_a_kernel() -> None:
    executable = exponentials("uir-cpu", Dim("v", min=1, max=256))
    given = torch.zeros(1), torch.zeros(256)
    executable(*given)
    (program,) = executable.report()["programs"]
    assert (program["groups"], program["kernels_for_all_sizes"]) == (2, 1)
