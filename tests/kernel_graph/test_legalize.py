# SPDX-License-Identifier: Apache-2.0
"""Our own lowerings of operators, in the numbers that TVM's get wrong or slow."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax
from uir_tvm.kernel_graph import build, build_with, legalize
from uir_tvm.library.library_tables import NONE

from .programs import Spec, arguments, constant, module, run, run_graph

op = relax.op


def result(inputs: dict[str, Spec], body, *args: np.ndarray) -> np.ndarray:
    """The graph's only result."""
    (array,) = run_graph(build(module(inputs, body)), list(args))
    return array


def test_layer_norm_keeps_its_variance_beside_a_large_mean() -> None:
    """mean(x^2) - mean^2 cancels at a mean of 1e4; centred squares do not."""
    x = (1e4 + np.random.default_rng(0).normal(size=(4, 64))).astype("float32")
    gamma, beta = np.ones(64, "float32"), np.zeros(64, "float32")
    actual = result(
        {"x": (x.shape, "float32")},
        lambda emit, x: emit(
            op.nn.layer_norm(x, relax.const(gamma), relax.const(beta), axes=[-1], epsilon=1e-5)
        ),
        x,
    )
    wide = x.astype("float64")
    expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    # A sum of 64 numbers near 1e4, one by one in fp32, is off by up to 64 * ulp(6.4e5) / 2 = 2, its mean by
    # 0.03 at worst; the naive variance would be off by several times its value.
    np.testing.assert_allclose(actual, expected, atol=3e-2)


def test_maximum_of_a_row_of_minus_infinities() -> None:
    """TVM's own maximum starts at the lowest finite number and would return it."""
    x = np.array([[-np.inf, -np.inf], [1.0, -np.inf]], "float32")
    for function, expected in [(op.max, [-np.inf, 1.0]), (op.min, [-np.inf, -np.inf])]:
        actual = result({"x": (x.shape, "float32")}, lambda emit, x: emit(function(x, axis=[1])), x)  # noqa: B023
        np.testing.assert_array_equal(actual, expected)
    kept = result({"x": (x.shape, "float32")}, lambda emit, x: emit(op.max(x, axis=[0], keepdims=True)), x)
    np.testing.assert_array_equal(kept, [[1.0, -np.inf]])


@pytest.mark.parametrize("axes", [[-1], [-2, -1]])
def test_layer_norm_over_one_and_two_axes(axes: list[int]) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 8)).astype("float32")
    shape = x.shape[axes[0] :]
    gamma, beta = constant(*shape, seed=1), constant(*shape, seed=2)
    actual = result(
        {"x": (x.shape, "float32")},
        lambda emit, x: emit(op.nn.layer_norm(x, gamma, beta, axes=axes, epsilon=1e-5)),
        x,
    )
    along = tuple(axes)
    wide = x.astype("float64")
    normal = (wide - wide.mean(along, keepdims=True)) / np.sqrt(wide.var(along, keepdims=True) + 1e-5)
    np.testing.assert_allclose(actual, normal * gamma.value.numpy() + beta.value.numpy(), atol=2e-6)


def test_group_norm_scales_every_channel_by_its_own() -> None:
    x = np.random.default_rng(0).normal(size=(2, 6, 5)).astype("float32")
    gamma, beta = constant(6, seed=1), constant(6, seed=2)
    actual = result(
        {"x": (x.shape, "float32")},
        lambda emit, x: emit(
            op.nn.group_norm(x, gamma, beta, num_groups=3, channel_axis=1, axes=[2], epsilon=1e-5)
        ),
        x,
    )
    grouped = x.astype("float64").reshape(2, 3, 2 * 5)
    normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    scale, shift = (array.value.numpy()[:, None] for array in (gamma, beta))
    np.testing.assert_allclose(actual, normal.reshape(x.shape) * scale + shift, atol=2e-6)


def test_softmax_of_large_numbers_and_of_one_open_position() -> None:
    """No overflow at 1e4, and exactly 1 where all others are -inf."""
    x = np.array([[1e4, 1e4 - 1, 0.0], [-np.inf, 3.0, -np.inf]], "float32")
    actual = result({"x": (x.shape, "float32")}, lambda emit, x: emit(op.nn.softmax(x)), x)
    e = np.exp(-1.0)
    np.testing.assert_allclose(actual, [[1 / (1 + e), e / (1 + e), 0], [0, 1, 0]], atol=2e-7)


def test_half_precision_norms_sum_in_single() -> None:
    """The sum of 4096 squares of 8 overflows fp16 (65504)."""
    x = np.full((2, 4096), 8, "float16")
    gamma = relax.const(np.ones(4096, "float16"))
    actual = result(
        {"x": (x.shape, "float16")},
        lambda emit, x: emit(op.nn.rms_norm(x, gamma, axes=[-1], epsilon=1e-5)),
        x,
    )
    np.testing.assert_allclose(actual.astype("float32"), 1.0, atol=1e-3)  # fp16: 2^-11


def test_take_along_an_inner_axis() -> None:
    x = np.arange(24, dtype="float32").reshape(2, 4, 3)
    ids = np.array([[3, 0], [1, 1]], "int64")
    actual = result(
        {"x": (x.shape, "float32"), "ids": (ids.shape, "int64")},
        lambda emit, x, ids: emit(op.take(x, ids, axis=1, mode="fast")),
        x,
        ids,
    )
    np.testing.assert_array_equal(actual, np.take(x, ids, axis=1))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gelu_by_a_sigmoid_is_the_same_function(dtype: str) -> None:
    """On vector cores; also where 1 + tanh(u) would cancel, and for the largest halves."""
    inputs = {"x": ((4, 64), dtype)}
    mod = module(inputs, lambda emit, x: emit(op.nn.gelu_tanh(x)))
    x = np.concatenate([np.linspace(-12, 12, 248), [-6e4, -300, -0.0, 0, 1e-7, 30, 300, 6e4]])
    x = x.astype(dtype).reshape(4, 64)
    with legalize.lowering_for(["ascend"]):
        graph = build_with(mod, NONE)
    assert "sigmoid" in graph.custom_ops[0].prim_func.script()
    assert "sigmoid" not in build_with(mod, NONE).custom_ops[0].prim_func.script(), "elsewhere as it was"
    (found,) = run_graph(graph, [x])
    wide = x.astype("float64")
    u = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    expected = wide / (1 + np.exp(np.clip(-2 * u, -700, 700)))
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 2e-5, atol=1e-7)


def test_a_condition_of_another_shape_selects_from_whole_tensors() -> None:
    """Only where all shapes are alike are the places of the result those of the condition."""
    inputs = {"c": ((4, 1), "bool"), "x": ((4, 5), "float32"), "y": ((5,), "float32")}
    mod, args = module(inputs, lambda emit, c, x, y: emit(op.where(c, x, y))), arguments(inputs)
    (found,) = run(legalize.legalize(mod), args)
    np.testing.assert_array_equal(found, np.where(*args))
