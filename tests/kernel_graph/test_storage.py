# SPDX-License-Identifier: Apache-2.0
"""Operands and results of the library in the order of their neighbours, without copies."""

from __future__ import annotations

from tvm import relax

from .programs import check, constant, kinds, only

op = relax.op
F32 = "float32"


def test_attention_costs_no_copy() -> None:
    """Projections joined, heads and transposes as strides, scale as alpha, results written side by side."""
    batch, length, heads, width = 2, 6, 3, 260  # too wide for one kernel
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
    assert kinds(graph) == ["matmul", "matmul", "normalization", "matmul", "matmul"]
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


def test_a_transposed_output_is_written_in_its_own_order() -> None:
    def body(emit, x):
        return emit(op.permute_dims(emit(op.matmul(x, constant(8, 12))), (1, 0)))

    assert only(check({"x": ((5, 8), "float32")}, body)).out.strides == (1, 5)


def test_rows_that_no_stride_describes_are_copied() -> None:
    """(b, s) rows out of an (s, b, ...) input: nobody can store it otherwise, so a kernel copies it."""

    def body(emit, x):
        rows = emit(op.reshape(emit(op.permute_dims(x, (1, 0, 2))), (12, 8)))
        return emit(op.matmul(rows, constant(8, 5)))

    graph = check({"x": ((4, 3, 8), "float32")}, body)
    assert kinds(graph) == ["elementwise", "matmul"]
    assert graph.custom_ops[0].ops == ("copy",)
