# SPDX-License-Identifier: Apache-2.0
"""Which operators become one kernel, checked by count, hero and result."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax

from .programs import arguments, check, constant, kinds, number

op = relax.op
F32 = "float32"


def test_elementwise_chain_with_broadcasts_is_one_kernel() -> None:
    def body(emit, x, row, column):
        y = emit(op.multiply(emit(op.add(x, row)), column))
        return emit(op.tanh(emit(op.maximum(y, number(0.1)))))

    inputs = {"x": ((3, 4, 5), F32), "row": ((5,), F32), "column": ((3, 1, 1), F32)}
    graph = check(inputs, body)
    assert kinds(graph) == ["elementwise"]
    assert graph.op_count == 4


def test_a_long_chain_is_several_kernels() -> None:
    """So that a model's compilation takes time as the model grows, not as its square."""

    def body(emit, x):
        for _ in range(200):
            x = emit(op.negative(x))
        return x

    graph = check({"x": ((2, 3), F32)}, body)
    assert [len(node.ops) for node in graph.nodes] == [8, 96, 96]


def test_residual_and_layer_norm_write_both_results() -> None:
    """The sum is read again later: it is a second output, not a second computation."""

    def body(emit, x, r):
        total = emit(op.add(x, r))
        normal = emit(op.nn.layer_norm(total, constant(16), constant(16, seed=1), axes=[-1]))
        return total, normal

    graph = check({"x": ((2, 3, 16), F32), "r": ((2, 3, 16), F32)}, body)
    assert kinds(graph) == ["normalization"]
    assert len(graph.custom_ops[0].outputs) == 2


def test_masked_and_scaled_softmax_is_one_kernel() -> None:
    def body(emit, x, mask):
        scaled = emit(op.divide(x, number(3.0)))
        masked = emit(op.where(mask, scaled, number(-np.inf)))
        return emit(op.nn.softmax(masked, axis=-1))

    mask = np.tril(np.ones((5, 5), bool))
    inputs = {"x": ((2, 3, 5, 5), F32), "mask": ((5, 5), "bool")}
    assert kinds(check(inputs, body, [arguments(inputs)[0], mask])) == ["normalization"]


def test_rms_norm_written_out_is_one_kernel() -> None:
    def body(emit, x):
        mean = emit(op.mean(emit(op.multiply(x, x)), axis=[-1], keepdims=True))
        scale = emit(op.rsqrt(emit(op.add(mean, number(1e-5)))))
        return emit(op.multiply(emit(op.multiply(x, scale)), constant(16)))

    graph = check({"x": ((2, 3, 16), F32)}, body)
    assert kinds(graph) == ["normalization"]
    assert len(graph.custom_ops[0].ops) == 6


def test_embeddings_and_their_norm_are_one_kernel() -> None:
    def body(emit, ids):
        words = emit(op.take(constant(9, 16), ids, axis=0, mode="fast"))
        total = emit(op.add(words, constant(5, 16, seed=1)))
        return emit(op.nn.layer_norm(total, constant(16, seed=2), constant(16, seed=3), axes=[-1]))

    graph = check({"ids": ((2, 5), "int64")}, body)
    assert kinds(graph) == ["normalization"]
    assert graph.custom_ops[0].ops == ("take", "add", "nn.layer_norm")


def test_rotary_embedding_is_one_kernel() -> None:
    """Slices are readings, the negated half feeds the concat, both products follow it."""

    def body(emit, x):
        half = [emit(op.strided_slice(x, [3], [begin], [begin + 4])) for begin in (0, 4)]
        turned = emit(op.concat([emit(op.negative(half[1])), half[0]], axis=3))
        left = emit(op.multiply(x, constant(6, 8, seed=1)))
        return emit(op.add(left, emit(op.multiply(turned, constant(6, 8, seed=2)))))

    assert kinds(check({"x": ((1, 2, 6, 8), F32)}, body)) == ["concat"]


def test_reduction_takes_prologue_and_epilogue() -> None:
    """A mean over the middle axis of a product, divided: one kernel, one small output."""

    def body(emit, x, weight):
        total = emit(op.sum(emit(op.multiply(x, weight)), axis=[1]))
        return emit(op.divide(total, number(7.0)))

    graph = check({"x": ((2, 6, 8), F32), "weight": ((2, 6, 1), F32)}, body)
    assert kinds(graph) == ["reduction"]


def test_softmax_after_softmax_shares_the_pass() -> None:
    def body(emit, x):
        return emit(op.nn.softmax(emit(op.nn.softmax(x))))

    assert kinds(check({"x": ((4, 8), F32)}, body)) == ["normalization"]


def test_no_kernel_waits_for_its_own_result() -> None:
    """exp -> softmax over another axis -> add(exp, softmax): merging exp and add would close a cycle."""

    def body(emit, x):
        e = emit(op.exp(x))
        s = emit(op.nn.softmax(emit(op.matmul(e, constant(8, 8)))))
        return emit(op.add(e, s))

    graph = check({"x": ((4, 8), F32)}, body)
    written = {tensor.name: index for index, node in enumerate(graph.nodes) for tensor in node.outputs}
    for index, node in enumerate(graph.nodes):
        assert all(written.get(tensor.name, -1) < index for tensor in node.inputs)


def test_a_cheap_value_is_computed_where_it_is_read() -> None:
    def body(emit, row, x):
        return emit(op.add(emit(op.multiply(row, number(2.0))), x))

    assert kinds(check({"row": ((8,), F32), "x": ((50, 8), F32)}, body)) == ["elementwise"]


def test_a_transposed_copy_is_a_transpose() -> None:
    def body(emit, x):
        return emit(op.permute_dims(x, (1, 0)))

    assert kinds(check({"x": ((6, 8), F32)}, body)) == ["transpose"]


def test_views_move_behind_the_operator_before_them() -> None:
    """exp, then a transpose, then a softmax: one kernel that reads transposed."""

    def body(emit, x):
        return emit(op.nn.softmax(emit(op.permute_dims(emit(op.exp(x)), (1, 0)))))

    assert kinds(check({"x": ((6, 8), F32)}, body)) == ["normalization"]


def test_reshapes_between_operators_cost_nothing() -> None:
    def body(emit, x):
        y = emit(op.reshape(emit(op.exp(x)), (6, 16)))
        y = emit(op.reshape(emit(op.multiply(y, constant(16))), (2, 3, 4, 4)))
        return emit(op.reshape(emit(op.tanh(y)), (96,)))

    assert kinds(check({"x": ((2, 3, 16), F32)}, body)) == ["elementwise"]


def test_pooling_takes_what_follows_but_not_what_precedes() -> None:
    """A window reads its operand many times over: its producer is not computed for each."""

    def body(emit, x):
        pooled = emit(op.nn.max_pool2d(emit(op.exp(x)), (3, 3), (2, 2), (1, 1)))
        return emit(op.multiply(pooled, number(2.0)))

    assert kinds(check({"x": ((1, 3, 8, 8), F32)}, body)) == ["elementwise", "opaque"]


def test_concat_of_parts_with_an_epilogue() -> None:
    """A class token before patches that lie transposed, plus positions."""

    def body(emit, x):
        patches = emit(op.permute_dims(emit(op.reshape(x, (1, 8, 6))), (0, 2, 1)))
        joined = emit(op.concat([constant(1, 1, 8), patches], axis=1))
        return emit(op.add(joined, constant(1, 7, 8, seed=1)))

    assert kinds(check({"x": ((1, 8, 2, 3), F32)}, body)) == ["concat"]


@pytest.mark.parametrize("axis", [[-1], [0], [0, 2], None])
def test_reductions_over_any_axes(axis: list[int] | None) -> None:
    graph = check({"x": ((3, 4, 5), F32)}, lambda emit, x: emit(op.max(emit(op.abs(x)), axis=axis)))
    assert kinds(graph) == ["reduction"]
