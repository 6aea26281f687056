# SPDX-License-Identifier: Apache-2.0
"""Contractions, their epilogues, and the views that they read and write."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax
from uir_tvm.kernel_graph import KernelGraph, build
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.library.registry import NONE

from .programs import arguments, assert_close, check, constant, kinds, module, run, run_graph

op = relax.op


def only(graph: KernelGraph) -> object:
    """Attributes of the graph's only node, a library operator."""
    (node,) = graph.library_ops
    assert len(graph.nodes) == 1
    return node.attrs


def test_linear_folds_the_weight_s_transpose_and_takes_its_epilogue() -> None:
    """x @ w.T + b, GELU, + residual is one call; the weight is packed, the batch becomes rows."""

    def body(emit, x, r):
        y = emit(op.matmul(x, emit(op.permute_dims(constant(12, 8, seed=3)))))
        y = emit(op.nn.gelu(emit(op.add(y, constant(12)))))
        return emit(op.add(r, y))

    attrs = only(check({"x": ((2, 5, 8), "float32"), "r": ((2, 5, 12), "float32")}, body))
    assert (attrs.batch, attrs.m, attrs.n, attrs.k) == ((), 10, 12, 8)
    assert (attrs.bias, attrs.activation, attrs.residual, attrs.packed) == (
        True,
        "gelu_erf",
        "after_activation",
        True,
    )


@pytest.mark.parametrize(
    "name, library",
    [("relu", "relu"), ("gelu", "gelu_erf"), ("gelu_tanh", "gelu_tanh"), ("silu", "silu")],
)
def test_activations_of_the_table_are_absorbed(name: str, library: str) -> None:
    def body(emit, x):
        return emit(getattr(op.nn, name)(emit(op.matmul(x, constant(8, 16)))))

    assert only(check({"x": ((3, 8), "float32")}, body)).activation == library


def test_residual_before_the_activation() -> None:
    def body(emit, x, r):
        return emit(op.nn.relu(emit(op.add(emit(op.matmul(x, constant(8, 16))), r))))

    attrs = only(check({"x": ((3, 8), "float32"), "r": ((3, 16), "float32")}, body))
    assert (attrs.activation, attrs.residual) == ("relu", "before_activation")


def test_a_result_with_two_readers_keeps_its_epilogue_outside() -> None:
    """What is absorbed is never written: a second reader must find it, and the graph says so."""

    def body(emit, x):
        y = emit(op.matmul(x, constant(8, 16)))
        return emit(op.nn.relu(y)), emit(op.exp(y))

    graph = check({"x": ((3, 8), "float32")}, body)
    assert kinds(graph) == ["matmul", "elementwise"] or kinds(graph) == [
        "matmul",
        "elementwise",
        "elementwise",
    ]
    assert any("2 readers" in entry.reason for entry in graph.why_not)


def test_attention_costs_no_copy() -> None:
    """Projections joined, heads and transposes as strides, scale as alpha, results written side by side."""
    batch, length, heads, width = 2, 6, 3, 4
    hidden = heads * width

    def split(emit, y, axes):
        return emit(op.permute_dims(emit(op.reshape(y, (batch, length, heads, width))), axes))

    def body(emit, x, mask):
        q, k, v = (
            emit(op.add(emit(op.matmul(x, constant(hidden, hidden, seed=i))), constant(hidden, seed=9 + i)))
            for i in range(3)
        )
        scores = emit(op.matmul(split(emit, q, (0, 2, 1, 3)), split(emit, k, (0, 2, 3, 1))))
        scores = emit(op.add(emit(op.multiply(scores, relax.const(0.5, "float32"))), mask))
        attended = emit(op.matmul(emit(op.nn.softmax(scores)), split(emit, v, (0, 2, 1, 3))))
        joined = emit(op.reshape(emit(op.permute_dims(attended, (0, 2, 1, 3))), (batch, length, hidden)))
        return emit(op.add(emit(op.matmul(joined, constant(hidden, hidden, seed=7))), x))

    inputs = {"x": ((batch, length, hidden), "float32"), "mask": ((batch, 1, 1, length), "float32")}
    graph = check(inputs, body)
    assert kinds(graph) == ["matmul", "matmul", "rowwise", "matmul", "matmul"]
    projection, scores, attended, out = (node.attrs for node in graph.library_ops)
    assert (projection.n, projection.bias) == (3 * hidden, True)
    assert scores.alpha == 0.5
    assert scores.a.strides == (length * 3 * hidden, width, 3 * hidden, 1)
    assert (scores.b.offset, scores.b.strides[-2:]) == (hidden, (1, 3 * hidden))
    assert attended.out.strides == (length * hidden, width, hidden, 1)
    assert (out.m, out.residual) == (batch * length, "before_activation")


def test_grouped_queries_read_their_shared_keys_through_a_stride_of_zero() -> None:
    def body(emit, q, k):
        k = emit(op.broadcast_to(emit(op.reshape(k, (1, 2, 1, 5, 8))), (1, 2, 3, 5, 8)))
        k = emit(op.permute_dims(emit(op.reshape(k, (1, 6, 5, 8))), (0, 1, 3, 2)))
        return emit(op.matmul(q, k))

    attrs = only(check({"q": ((1, 6, 5, 8), "float32"), "k": ((1, 2, 5, 8), "float32")}, body))
    assert attrs.batch == (2, 3)
    assert attrs.b.strides[:2] == (40, 0)


def test_swiglu_reads_the_halves_of_one_product() -> None:
    def body(emit, x):
        gate, up = (emit(op.matmul(x, constant(8, 12, seed=i))) for i in range(2))
        gated = emit(op.multiply(emit(op.multiply(gate, emit(op.sigmoid(gate)))), up))
        return emit(op.matmul(gated, constant(12, 8)))

    graph = check({"x": ((1, 5, 8), "float32")}, body)
    assert kinds(graph) == ["matmul", "elementwise", "matmul"]
    assert graph.library_ops[0].attrs.n == 24
    assert graph.custom_ops[0].ops == ("nn.silu", "multiply")


def test_gelu_written_out_is_recognised() -> None:
    """The tanh form as GPT-2 spells it out, operator by operator."""

    def body(emit, x):
        y = emit(op.matmul(x, constant(8, 12)))
        number = lambda value: relax.const(value, "float32")  # noqa: E731
        cubed = emit(op.multiply(emit(op.multiply(y, y)), y))
        inner = emit(op.add(y, emit(op.multiply(cubed, number(0.044715)))))
        tanh = emit(op.tanh(emit(op.multiply(inner, number(0.7978845608)))))
        return emit(op.multiply(emit(op.multiply(y, number(0.5))), emit(op.add(tanh, number(1.0)))))

    assert only(check({"x": ((3, 8), "float32")}, body)).activation == "gelu_tanh"


def test_convolution_takes_bias_residual_and_relu_once() -> None:
    """Both branches of a residual block could take the sum: one does, the other is its residual."""

    def body(emit, x):
        def conv(source, kernel, seed, **window):
            y = emit(op.nn.conv2d(source, constant(6, 4, kernel, kernel, seed=seed), **window))
            return emit(op.add(y, constant(1, 6, 1, 1, seed=seed + 1)))

        a = conv(x, 3, 1, strides=2, padding=1)
        b = conv(x, 1, 3, strides=2)
        return emit(op.nn.relu(emit(op.add(a, b))))

    graph = check({"x": ((1, 4, 9, 9), "float32")}, body)
    assert kinds(graph) == ["conv2d", "conv2d"]
    assert sorted(node.attrs.residual for node in graph.library_ops) == ["before_activation", "none"]


def test_a_transposed_output_is_written_in_its_own_order() -> None:
    def body(emit, x):
        return emit(op.permute_dims(emit(op.matmul(x, constant(8, 12))), (1, 0)))

    graph = check({"x": ((5, 8), "float32")}, body)
    assert len(graph.nodes) == 1 or kinds(graph) == ["matmul", "transpose"]


def test_what_the_library_does_not_take_stays_a_kernel() -> None:
    """Integers are no library's; the kernel is a contraction with its epilogue."""

    def body(emit, x, y):
        return emit(op.add(emit(op.matmul(x, y)), relax.const(3, "int32")))

    assert kinds(check({"x": ((3, 8), "int32"), "y": ((8, 5), "int32")}, body)) == ["contraction"]


def test_a_target_without_a_library() -> None:
    """Scales stay operators, and everything is a kernel of our own."""
    inputs = {"x": ((3, 8), "float32"), "y": ((8, 5), "float32")}
    mod = module(
        inputs, lambda emit, x, y: emit(op.multiply(emit(op.matmul(x, y)), relax.const(0.25, "float32")))
    )
    graph = build_with(mod, NONE)
    assert kinds(graph) == ["contraction"]
    args = arguments(inputs)
    assert_close(run_graph(graph, args), run(mod, args))


def test_vectors_and_broadcast_batches() -> None:
    for a, b in [((8,), (8, 5)), ((3, 8), (8,)), ((2, 1, 4, 8), (3, 8, 5)), ((4, 8), (2, 8, 5))]:
        graph = check({"a": (a, "float32"), "b": (b, "float32")}, lambda emit, a, b: emit(op.matmul(a, b)))
        assert kinds(graph) == ["matmul"], (a, b)


def test_rows_that_no_stride_describes_are_copied() -> None:
    """(b, s) rows out of a (s, b, ...) tensor, for a product of two batches: the copy is a kernel."""

    def body(emit, x):
        rows = emit(op.reshape(emit(op.permute_dims(x, (1, 0, 2))), (12, 8)))
        return emit(op.matmul(rows, constant(8, 5)))

    graph = check({"x": ((4, 3, 8), "float32")}, body)
    assert [node.kind for node in graph.library_ops] == ["matmul"]
    assert graph.library_ops[0].attrs.m == 12


def test_combined_weights_keep_their_values() -> None:
    """A bias on one of two joined products only: the other gets zeros."""

    def body(emit, x):
        a = emit(op.add(emit(op.matmul(x, constant(8, 5, seed=1))), constant(5, seed=2)))
        b = emit(op.matmul(x, constant(8, 7, seed=3)))
        return emit(op.nn.softmax(a)), emit(op.nn.softmax(b))

    graph = check({"x": ((3, 8), "float32")}, body)
    assert kinds(graph) == ["matmul", "rowwise", "rowwise"]
    assert graph.library_ops[0].attrs.n == 12


def test_traffic_counts_a_gather_by_its_rows() -> None:
    """The rows of an embedding that are read count, not the table."""

    def body(emit, ids):
        return emit(op.take(constant(1000, 8), ids, axis=0, mode="fast"))

    graph = build(module({"ids": ((4,), "int64")}, body))
    assert graph.fused_bytes == 4 * 8 * 4 * 2 + 4 * 8
    assert np.array(graph.unfused_bytes) == graph.fused_bytes
