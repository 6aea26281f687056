# SPDX-License-Identifier: Apache-2.0
"""Attention as one operator: where it is found, what it computes, and what is said where it is not fused."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from tvm import relax
from tvm.relax import op
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.kernel_graph.nodes import KernelGraph
from uir_tvm.library.library_tables import AttentionLimits
from uir_tvm.target.cpu.library import TABLE as CPU

from .programs import arguments, assert_close, module, run, run_graph

FUSING = attrs.evolve(CPU, attention=AttentionLimits(frozenset({"float32", "float16", "bfloat16"}), 64))
Q = {name: ((2, 4, 12, 16), "float32") for name in "qkv"}


def scores(emit: Any, q: Any, k: Any) -> Any:
    return emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))


def plain(emit: Any, q: Any, k: Any, v: Any) -> Any:
    """softmax(q k^T / 4) v, the heads side by side."""
    scaled = emit(op.multiply(scores(emit, q, k), relax.const(0.25, "float32")))
    attended = emit(op.matmul(emit(op.nn.softmax(scaled, -1)), v))
    return emit(op.reshape(emit(op.permute_dims(attended, [0, 2, 1, 3])), (2, 12, 64)))


def heroes(graph: KernelGraph) -> list[str]:
    return [node.hero for node in graph.custom_ops]


def check_fused(inputs: Any, body: Any, tolerance: float = 3e-6) -> KernelGraph:
    """The program becomes one attention (with others around it) and computes what it did."""
    mod, args = module(inputs, body), arguments(inputs)
    graph = build_with(mod, FUSING)
    assert heroes(graph).count("attention") == 1, graph.attentions
    assert all(found.fused for found in graph.attentions)
    assert not graph.fallbacks
    assert_close(run_graph(graph, args), run(mod, args), tolerance)
    return graph


def test_scores_never_reach_memory() -> None:
    """One kernel, which reads q, k and v and writes the result in the order in which it is returned."""
    graph = check_fused(Q, plain)
    assert heroes(graph) == ["attention"]
    assert graph.fused_bytes == 4 * (2 * 4 * 12 * 16) * 4
    (found,) = graph.attentions
    assert found.saved_bytes == 2 * 3 * (2 * 4 * 12 * 12) * 4


def test_a_target_that_fuses_none_says_so() -> None:
    graph = build_with(module(Q, plain), attrs.evolve(CPU, attention=None))
    assert "attention" not in heroes(graph)
    (found,) = graph.attentions
    assert not found.fused
    assert "leaves attention to its matrix products" in found.reason
    inside = [edge.reason for edge in graph.why_not if edge.reason.startswith("attention: ")]
    assert len(inside) == 2  # scores to softmax, softmax to the second product


@pytest.mark.parametrize(
    ("dtype", "rows", "head"),
    [
        ("float32", 1, 256),
        ("float32", 30, 192),
        ("float16", 1, 32),
        ("bfloat16", 3, 112),
        ("float16", 16, 80),
    ],
)
def test_uir_cpu_fuses_all_heads_up_to_256(dtype: str, rows: int, head: int) -> None:
    """Of every type, tokens too; heads beyond are products and a softmax, with the reason."""
    for size, fused in ((head, True), (head + 256, False)):
        keys = ((2, 4, 40, size), dtype)
        inputs = {"q": ((2, 4, rows, size), dtype), "k": keys, "v": keys}

        def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
            return emit(op.matmul(emit(op.nn.softmax(scores(emit, q, k), -1)), v))

        graph = build_with(module(inputs, body), CPU)
        assert (heroes(graph) == ["attention"]) == fused
        (found,) = graph.attentions
        assert found.fused == fused and fused == ("registers" not in found.reason)


def test_masks_steps_and_the_factor_of_the_queries_go_inside() -> None:
    """A factor on q becomes one on the scores; a condition, a sum and a soft cap are steps of the kernel."""

    def body(emit: Any, q: Any, k: Any, v: Any, mask: Any, seen: Any) -> Any:
        scaled = emit(op.multiply(q, relax.const(1 / 4, "float32")))
        capped = emit(op.tanh(emit(op.divide(scores(emit, scaled, k), relax.const(5.0, "float32")))))
        masked = emit(op.add(capped, mask))
        chosen = emit(op.where(seen, masked, relax.const(-math.inf, "float32")))
        return emit(op.matmul(emit(op.nn.softmax(chosen, -1)), v))

    inputs = {**Q, "mask": ((12, 12), "float32"), "seen": ((2, 1, 1, 12), "bool")}
    graph = check_fused(inputs, body)
    assert heroes(graph) == ["attention"]


def test_grouped_queries_read_the_heads_of_the_keys() -> None:
    """Keys and values repeated for the heads of a group are views: each is read once."""

    def repeated(emit: Any, x: Any) -> Any:
        wide = emit(op.broadcast_to(emit(op.reshape(x, (2, 2, 1, 12, 16))), (2, 2, 2, 12, 16)))
        return emit(op.reshape(wide, (2, 4, 12, 16)))

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        return plain(emit, q, repeated(emit, k), repeated(emit, v))

    inputs = {
        "q": ((2, 4, 12, 16), "float32"),
        "k": ((2, 2, 12, 16), "float32"),
        "v": ((2, 2, 12, 16), "float32"),
    }
    graph = check_fused(inputs, body)
    assert graph.fused_bytes == 4 * 2 * 12 * 16 * (4 + 2 + 2 + 4)


def test_batches_in_one_axis() -> None:
    """Heads and batch as one axis in the products (baddbmm), two in the softmax."""

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        flat = [emit(op.reshape(x, (8, 12, 16))) for x in (q, k, v)]
        product = emit(op.matmul(flat[0], emit(op.permute_dims(flat[1], [0, 2, 1]))))
        weights = emit(op.nn.softmax(emit(op.reshape(product, (2, 4, 12, 12))), -1))
        return emit(op.matmul(emit(op.reshape(weights, (8, 12, 12))), flat[2]))

    check_fused(Q, body)


def test_steps_may_see_the_scores_in_another_shape() -> None:
    """A function of all scores of a head in one row."""

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        flat = emit(op.tanh(emit(op.reshape(scores(emit, q, k), (2, 4, 144)))))
        scaled = emit(op.reshape(flat, (2, 4, 12, 12)))
        return emit(op.matmul(emit(op.nn.softmax(scaled, -1)), v))

    check_fused(Q, body)


def test_closed_rows_give_zeros_where_the_program_says_so() -> None:
    """where(row is open, softmax(x + mask), 0) v: a closed row is zeros, and the others are not touched."""

    def body(emit: Any, q: Any, k: Any, v: Any, seen: Any) -> Any:
        zero, low = relax.const(0.0, "float32"), relax.const(-math.inf, "float32")
        mask = emit(op.where(seen, zero, low))
        weights = emit(op.nn.softmax(emit(op.add(scores(emit, q, k), mask)), -1))
        flags = emit(op.where(seen, relax.const(1, "int32"), relax.const(0, "int32")))
        open_row = emit(op.greater(emit(op.max(flags, axis=-1, keepdims=True)), relax.const(0, "int32")))
        return emit(op.matmul(emit(op.where(open_row, weights, zero)), v))

    inputs = {**Q, "seen": ((12, 12), "bool")}
    args = arguments(inputs)
    args[-1][3] = False
    args[-1][:3, 0] = args[-1][4:, 0] = True
    graph = build_with(module(inputs, body), FUSING)
    assert "attention" in heroes(graph)
    (result,) = run_graph(graph, args)
    q, k, v, seen = args
    x = np.where(seen, q.astype("float64") @ k.swapaxes(-1, -2), -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        want = np.where(seen.any(-1)[:, None], e / e.sum(-1, keepdims=True) @ v, 0)
    assert not result[..., 3, :].any()
    np.testing.assert_allclose(result, want, atol=2e-6)


def test_half_precision_is_summed_in_single() -> None:
    """Scores, statistics and sums of fp16 are fp32: the error is that of rounding weights and result."""
    inputs = {name: ((1, 2, 40, 16), "float16") for name in "qkv"}

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        return emit(op.matmul(emit(op.nn.softmax(scores(emit, q, k), -1)), v))

    args = arguments(inputs)
    graph = build_with(module(inputs, body), FUSING)
    (result,) = run_graph(graph, args)
    q, k, v = (array.astype("float64") for array in args)
    x = q @ k.swapaxes(-1, -2)
    e = np.exp(x - x.max(-1, keepdims=True))
    # Two roundings to 11 bits of values up to 2: 2 * 2^-11 * 2.
    np.testing.assert_allclose(result, e / e.sum(-1, keepdims=True) @ v, atol=2 * 2**-11 * 2)


def with_shared_scores(emit: Any, q: Any, k: Any, v: Any) -> Any:
    product = scores(emit, q, k)
    return emit(op.matmul(emit(op.nn.softmax(product, -1)), v)), product


def with_other_axis(emit: Any, q: Any, k: Any, v: Any) -> Any:
    return emit(op.matmul(emit(op.nn.softmax(scores(emit, q, k), 1)), v))


def with_whole_weights(emit: Any, q: Any, k: Any, v: Any) -> Any:
    """Weights as integers between the softmax and the product: nearly all are 0."""
    weights = emit(op.nn.softmax(emit(op.multiply(scores(emit, q, k), relax.const(40.0, "float32"))), -1))
    return emit(op.matmul(emit(op.astype(emit(op.astype(weights, "int32")), "float32")), v))


def with_coarse_weights(emit: Any, q: Any, k: Any, v: Any) -> Any:
    """Weights rounded to half before a product in single."""
    weights = emit(op.nn.softmax(scores(emit, q, k), -1))
    return emit(op.matmul(emit(op.astype(emit(op.astype(weights, "float16")), "float32")), v))


def with_turned_weights(emit: Any, q: Any, k: Any, v: Any) -> Any:
    weights = emit(op.nn.softmax(scores(emit, q, k), -1))
    return emit(op.matmul(emit(op.permute_dims(weights, [0, 1, 3, 2])), v))


def with_turned_scores(emit: Any, q: Any, k: Any, v: Any) -> Any:
    return emit(
        op.matmul(emit(op.nn.softmax(emit(op.permute_dims(scores(emit, q, k), [0, 1, 3, 2])), -1)), v)
    )


def with_flags_of_scores(emit: Any, q: Any, k: Any, v: Any) -> Any:
    flags = emit(op.greater(scores(emit, q, k), relax.const(0.0, "float32")))
    return emit(op.matmul(emit(op.nn.softmax(emit(op.astype(flags, "float32")), -1)), v))


@pytest.mark.parametrize(
    "body",
    [
        with_shared_scores,
        with_other_axis,
        with_whole_weights,
        with_coarse_weights,
        with_turned_weights,
        with_turned_scores,
        with_flags_of_scores,
    ],
)
def test_what_is_no_attention(body: Any) -> None:
    """Another reader, axis, dtype or order between the products: nothing is recognised, and values stay."""
    mod, args = module(Q, body), arguments(Q)
    graph = build_with(mod, FUSING)
    assert graph.attentions == ()
    assert "attention" not in heroes(graph)
    # Sums of the same products in another order may round to another half.
    tolerance = 2**-11 if body is with_coarse_weights else 3e-6
    assert_close(run_graph(graph, args), run(mod, args), tolerance)


def test_a_vector_of_queries_is_no_attention() -> None:
    """One vector against the keys of every batch: the rows of its scores are batches."""

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        product = emit(op.matmul(q, emit(op.permute_dims(k, [0, 2, 1]))))
        return emit(op.matmul(emit(op.nn.softmax(product, -1)), v))

    inputs = {"q": ((16,), "float32"), "k": ((3, 12, 16), "float32"), "v": ((12, 16), "float32")}
    mod, args = module(inputs, body), arguments(inputs)
    graph = build_with(mod, FUSING)
    assert graph.attentions == ()
    assert_close(run_graph(graph, args), run(mod, args), 3e-6)


def test_a_factor_of_zero_stays_at_its_operand() -> None:
    """(q * 0) @ k is 0 where q @ k overflows: the factor does not move to the scores."""

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        nothing = emit(op.multiply(q, relax.const(0.0, "float32")))
        return emit(op.matmul(emit(op.nn.softmax(scores(emit, nothing, k), -1)), v))

    mod, args = module(Q, body), arguments(Q)
    args[0], args[1] = args[0] * np.float32(1e30), args[1] * np.float32(1e30)
    graph = build_with(mod, FUSING)
    (actual,) = run_graph(graph, args)
    np.testing.assert_allclose(
        actual, np.broadcast_to(args[2].mean(-2, keepdims=True), actual.shape), atol=1e-5
    )


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (AttentionLimits(frozenset({"float16"}), 64), "only of one of float16"),
        (AttentionLimits(frozenset({"float32"}), 8), "heads of 16 elements exceed the registers"),
        (AttentionLimits(frozenset({"float32"}), 64, min_keys=64), "12 keys are too few"),
        (AttentionLimits(frozenset({"float32"}), 64, min_rows=16), "12 rows on the same keys are too few"),
    ],
)
def test_limits_of_a_target_are_named(limits: AttentionLimits, reason: str) -> None:
    graph = build_with(module(Q, plain), attrs.evolve(CPU, attention=limits))
    (found,) = graph.attentions
    assert not found.fused
    assert reason in found.reason
