# SPDX-License-Identifier: Apache-2.0
"""The PrimFunc of a group."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax, te
from uir_tvm.kernel_graph import build
from uir_tvm.kernel_graph.merge import reading
from uir_tvm.kernel_graph.program import Value, View
from uir_tvm.kernel_graph.strided_views import Layout

from tests.stock import stock

from .programs import module
from .test_strided_views import addresses

op = relax.op
F32 = "float32"


def test_kernels_carry_their_hero_and_operators() -> None:
    graph = build(module({"x": ((4, 8), "float32")}, lambda emit, x: emit(op.nn.softmax(emit(op.exp(x))))))
    (function,) = graph.kernels.values()
    assert str(function.attrs["uir.hero"]) == "normalization"
    assert [str(name) for name in function.attrs["uir.ops"]] == ["exp", "nn.softmax"]


@pytest.mark.parametrize(
    ("layout", "divided"),
    [
        (Layout.contiguous((4, 6)).permute([1, 0]), False),
        (Layout.strided((4, 3), (6, 2), 1), False),
        # every fifth element: in other columns of every row
        (Layout.strided((5,), (5,)), True),
    ],
)
def test_a_view_is_read_along_axes_where_it_can_be(layout: Layout, divided: bool) -> None:
    """Only addresses that carry from row to row are divided into rows and columns."""
    x = te.placeholder((4, 6), name="x")
    view = reading(View(Value("x", (4, 6), "float32"), layout), (4, 6))(x)
    func = te.create_prim_func([x, view])
    assert ("//" in func.script()) == divided
    values = np.arange(24, dtype="float32").reshape(4, 6)
    found = tvm.runtime.tensor(np.zeros(layout.shape, "float32"))
    stock(func)["main"](tvm.runtime.tensor(values), found)
    np.testing.assert_array_equal(found.numpy(), addresses(layout))
