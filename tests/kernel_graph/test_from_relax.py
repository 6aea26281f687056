# SPDX-License-Identifier: Apache-2.0
"""Reading Relax: what is refused, and operators outside of the table."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax
from uir_tvm.errors import ShapeError
from uir_tvm.kernel_graph import build

from .programs import module, run_graph

op = relax.op
F32 = "float32"


def test_a_symbolic_dimension_is_refused() -> None:
    n = tvm.tirx.Var("n", "int64")
    with pytest.raises(ShapeError, match="not fixed"):
        build(module({"x": ((n, 4), "float32")}, lambda emit, x: emit(op.exp(x))))


def test_an_empty_tensor_needs_no_kernel() -> None:
    graph = build(module({"x": ((0, 4), "float32")}, lambda emit, x: emit(op.exp(x))))
    assert graph.nodes == () and [shape for _, shape in graph.outputs] == [(0, 4)]


def test_an_operator_of_several_results() -> None:
    """topk is the library's: it stays whole, and its readers find both results."""

    def body(emit, x):
        both = emit(op.topk(x, k=3))
        return emit(op.exp(emit(relax.TupleGetItem(both, 0)))), emit(relax.TupleGetItem(both, 1))

    x = np.random.default_rng(0).permutation(32).reshape(4, 8).astype("float32")
    values = -np.sort(-x, axis=-1)[:, :3]
    graph = build(module({"x": ((4, 8), "float32")}, body))
    assert [node.kind for node in graph.library_ops] == ["sorted"]
    first, second = run_graph(graph, [x])
    np.testing.assert_allclose(first, np.exp(values), rtol=1e-6)
    np.testing.assert_array_equal(np.take_along_axis(x, second.astype("int64"), -1), values)
