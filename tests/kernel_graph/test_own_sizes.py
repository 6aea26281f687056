# SPDX-License-Identifier: Apache-2.0
"""Dimensions that are expressions in a model's sizes become sizes of a kernel's own."""

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
from tvm import te, tirx
from uir_tvm.bound_kernel import symbols_in
from uir_tvm.kernel_graph import with_own_sizes
from uir_tvm.target.registry import TARGETS

from tests.asked import in_turn

n, h = tirx.Var("n", "int64"), tirx.Var("h", "int64")
HALF = (h - 1) // 2 + 1
#: Windows of both kinds on the CPU, each device with those of one; with both where ``UIR_TEST_ALL=1``.
WINDOWS = in_turn(("pools", "averages"), TARGETS)


def function(dim: Any, body: Any, *sizes: Any) -> tirx.PrimFunc:
    x = te.placeholder((n, 16, dim), name="x")
    return te.create_prim_func([x, *sizes, te.compute((n, 16, dim), lambda *i: body(x, *i), "y")], "int64")


def test_a_quotient_becomes_a_size_wherever_it_stands() -> None:
    """In loops and in a condition, where TVM writes ``k < HALF`` in another form."""
    one = tirx.const(1.0, "float32")

    def body(x: Any, i: Any, j: Any, k: Any) -> Any:
        return tirx.if_then_else(k + 1 < (h + 2 - 3) // 2 + 1, x(i, j, k + 1), one)

    func, own = with_own_sizes(function(HALF, body, n, h))
    assert list(own) == ["size0"] and [str(v.name) for v in symbols_in(func)] == ["n", "size0"]
    assert all(map(tirx.is_buffer_var, func.params))
    library = tvm.compile(tvm.IRModule({"main": func}), target="llvm")
    x = np.random.default_rng(1).standard_normal((2, 16, 5)).astype("float32")
    y = tvm.runtime.empty(x.shape)
    library["main"](tvm.runtime.tensor(x), y)
    np.testing.assert_array_equal(y.numpy(), np.pad(x[..., 1:], ((0, 0), (0, 0), (0, 1)), constant_values=1))


@pytest.mark.parametrize("dim", [h, 12 * h])
def test_what_a_kernel_takes_stays(dim: Any) -> None:
    given = function(dim, lambda x, *i: x(*i) * 2)
    if dim is h:
        func, own = with_own_sizes(given)
        assert func.same_as(given) and not own
    else:  # no dimension says what h is
        func, own = with_own_sizes(given)
        assert list(own) == ["size0"]


def test_a_size_that_is_read_by_itself_stays_a_parameter() -> None:
    """Its value does not follow from the dimension."""
    func, own = with_own_sizes(function(HALF, lambda x, *i: x(*i) + h.astype("float32"), n, h))
    numbers = [str(param.name) for param in func.params if not tirx.is_buffer_var(param)]
    assert list(own) == ["size0"] and "h" in numbers


class Pools(nn.Module):
    """Windows that hang over both ends, and windows of what they found."""

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.max_pool2d(torch.relu(x) - 1, 3, 2, 1)
        return nn.functional.max_pool2d(x, 2) * 2


@pytest.mark.parametrize("target", [target for kind, target in WINDOWS if kind == "pools"])
def test_pools_of_open_height_and_width_are_kernels_for_all_sizes(
    target: str, tmp_path: pathlib.Path
) -> None:
    shapes = ({0: Dim("n", max=4), 2: Dim("h", min=7, max=40), 3: Dim("w", min=7, max=40)},)
    options = uir_tvm.CompileOptions(device="auto" if target == "uir-cpu" else "model")
    model, some = Pools().eval(), torch.randn(2, 3, 9, 12)
    exe: Any = uir_tvm.compile(model, target, args=(some,), dynamic_shapes=shapes, options=options)
    for shape in ((1, 3, 7, 8), (2, 3, 17, 8), (3, 3, 40, 39)):
        x = -torch.rand(*shape) if shape[0] == 1 else torch.randn(*shape)
        np.testing.assert_array_equal(np.asarray(exe(x)), model(x).numpy())
    (made,) = exe.report()["programs"]
    assert made["kernels_by_sizes"] == [] and made["kernels_for_all_sizes"] >= 2
    if target == "uir-cpu":
        loaded: Any = uir_tvm.load(exe.save(tmp_path / "pools.uir"))
        x = torch.randn(4, 3, 11, 23)
        np.testing.assert_array_equal(np.asarray(loaded(x)), model(x).numpy())


class Averages(nn.Module):
    """Windows that hang over both ends with zeros, a divisor of their own, and windows of what they found."""

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.avg_pool2d(torch.relu(x), 3, 2, 1, divisor_override=4)
        return nn.functional.avg_pool2d(torch.tanh(x), 2, padding=1) * 2


@pytest.mark.parametrize("target", [target for kind, target in WINDOWS if kind == "averages"])
def test_averages_of_open_height_and_width_are_kernels_for_all_sizes(target: str) -> None:
    """None is left to PyTorch, or compiled for the sizes of a call."""
    shapes = ({2: Dim("h", min=8, max=40), 3: Dim("w", min=8, max=40)},)
    options = uir_tvm.CompileOptions(device="auto" if target == "uir-cpu" else "model")
    model, some = Averages().eval(), torch.randn(2, 3, 9, 12)
    exe: Any = uir_tvm.compile(model, target, args=(some,), dynamic_shapes=shapes, options=options)
    for shape in ((8, 9), (17, 8), (40, 39)):
        x = torch.randn(2, 3, *shape)
        np.testing.assert_allclose(np.asarray(exe(x)), model(x).numpy(), rtol=2e-5, atol=1e-6)
    report = exe.report()
    (made,) = report["programs"]
    assert made["kernels_by_sizes"] == [] and report["outside_kernels"] == {}


@pytest.mark.parametrize(
    "pool", [nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.AvgPool2d(3, ceil_mode=True)]
)
def test_other_averages_along_open_axes(pool: nn.Module) -> None:
    """Windows that count what is not padding, and windows over the end."""
    shapes = ({2: Dim.AUTO, 3: Dim.AUTO},)
    exe: Any = uir_tvm.compile(pool, args=(torch.randn(1, 2, 9, 12),), dynamic_shapes=shapes)
    x = torch.randn(1, 2, 17, 10)
    np.testing.assert_allclose(np.asarray(exe(x)), pool(x).numpy(), rtol=2e-5, atol=1e-6)
