# SPDX-License-Identifier: Apache-2.0
"""Sorts of PyTorch and Relax: a call of the library, or operators of TVM where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from torch import nn
from torch.export import Dim
from tvm import relax
from uir_tvm import frontend
from uir_tvm.errors import UirError
from uir_tvm.frontend.normalize import normalize
from uir_tvm.frontend.sorting import expand_sorts, is_sort

from tests import tiny


class Sorts(nn.Module):
    """A function of PyTorch as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def given(dtype: torch.dtype) -> torch.Tensor:
    """Equal elements, and NaN and infinities where the dtype has them."""
    x = torch.randint(-3, 3, (4, 37, 3), generator=torch.Generator().manual_seed(1))
    if not dtype.is_floating_point:
        return x.to(dtype)
    x = x.to(dtype)
    x[0, ::5], x[1, 3], x[2, 7] = torch.nan, torch.inf, -torch.inf
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.int64, torch.uint8])
def test_by_operators_as_by_the_library(dtype: torch.dtype) -> None:
    """What other targets compute, and what the library does, are PyTorch's numbers."""
    module = Sorts(lambda x: (*torch.sort(x, dim=1, stable=True), torch.topk(x, 5, 1, largest=False)[0]))
    x = given(dtype)
    program = torch.export.export(module, (x,))
    mod = expand_sorts(frontend.from_torch(program))
    assert not any(is_sort(b.value) for block in mod["main"].body.blocks for b in block.bindings)
    vm = relax.VirtualMachine(tvm.compile(normalize(mod), "llvm"), tvm.cpu())
    plain = vm["main"](tvm.runtime.tensor(x.numpy()))
    executable = uir_tvm.compile(program)
    assert [node.kind for node in executable.kernel_graph.library_ops] == ["sorted", "sorted"]
    for want, one, other in zip(module(x), plain, executable(x), strict=True):
        np.testing.assert_array_equal(one.numpy(), want.numpy())
        np.testing.assert_array_equal(other.numpy(), want.numpy())


def test_open_sizes() -> None:
    """Rows and their length are found at the call, in one program; too short a row is refused."""
    module = Sorts(lambda x: torch.topk(x, 3, 1))
    shapes = ({0: Dim("n", max=64), 1: Dim("length", min=3, max=4096)},)
    executable: Any = uir_tvm.compile(module, args=(torch.randn(3, 8),), dynamic_shapes=shapes)
    for shape in ((3, 8), (1, 3), (64, 1000)):
        x = torch.randn(shape)
        for got, want in zip(executable(x), module(x), strict=True):
            torch.testing.assert_close(got, want, rtol=0, atol=0)
    with pytest.raises(UirError):
        executable(torch.randn(3, 2))


def test_sorts_of_relax() -> None:
    """Each of Relax's own sorts is a call of the library, with the dtype of places that it names."""
    x = np.random.default_rng(3).integers(0, 9, (3, 50)).astype("float32")
    order = np.argsort(x, 1, kind="stable")
    falling = np.argsort(-x, 1, kind="stable")[:, :4]
    for function, dtypes, want in (
        (lambda a: relax.op.sort(a), ["float32"], [np.take_along_axis(x, order, 1)]),
        (lambda a: relax.op.argsort(a, dtype="int64"), ["int64"], [order]),
        (lambda a: relax.op.topk(a, 4, ret_type="indices"), ["int32"], [falling]),
    ):
        executable = uir_tvm.compile(tiny.elementwise(function, (x.shape, "float32")))
        assert [node.kind for node in executable.kernel_graph.library_ops] == ["sorted"]
        got = executable(x)
        for one, dtype, other in zip([got], dtypes, want, strict=True):
            assert str(one.dtype).endswith(dtype)
            np.testing.assert_array_equal(one, other)
