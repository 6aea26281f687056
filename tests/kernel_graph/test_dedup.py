# SPDX-License-Identifier: Apache-2.0
"""Equal kernels share a function; different ones do not."""

from __future__ import annotations

from tvm import relax

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
