# SPDX-License-Identifier: Apache-2.0
"""Models of float32 whose products are computed in float16 or bfloat16."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tvm import relax
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.kernel_graph.precision import rounded
from uir_tvm.library.library_tables import NONE
from uir_tvm.target.cpu.library import TABLE as CPU

from .programs import constant, module, run, run_graph

op = relax.op
NARROW = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def layers(emit, x):
    """A product with bias and GELU, a norm, a softmax, a residual."""
    y = emit(op.nn.gelu(emit(op.add(emit(op.matmul(x, constant(16, 32, seed=1))), constant(32, seed=2)))))
    y = emit(op.matmul(y, constant(32, 16, seed=3)))
    y = emit(op.nn.layer_norm(y, constant(16, seed=4), constant(16, seed=5), axes=[-1]))
    return emit(op.nn.softmax(y)), emit(op.add(x, y))


@pytest.mark.parametrize("precision", sorted(NARROW))
@pytest.mark.parametrize("table", [NONE, CPU], ids=["kernels", "library"])
def test_products_are_narrow_and_the_model_s_own_tensors_are_not(precision: str, table) -> None:
    mod = module({"x": ((6, 16), "float32")}, layers)
    x = np.random.default_rng(1).uniform(-2, 2, (6, 16)).astype("float32")
    graph = build_with(mod, table, precision=precision)
    between = {tensor.dtype for node in graph.nodes for tensor in node.outputs}
    assert precision in between
    if table is CPU and precision == "bfloat16":
        assert {node.outputs[0].dtype for node in graph.library_ops} == {"bfloat16"}
    for found, want in zip(run_graph(graph, [x]), run(mod, [x]), strict=True):
        assert found.dtype == np.float32
        error = np.abs(found - want).max() / np.abs(want).max()
        assert 0 < error <= 8 * NARROW[precision], "it rounds, and no more than that"


def test_float32_is_the_model_as_it_is_written() -> None:
    mod = module({"x": ((6, 16), "float32")}, layers)
    plain, asked = build_with(mod, CPU), build_with(mod, CPU, precision="float32")
    assert plain.summary() == asked.summary()


def test_a_weight_beyond_float16_keeps_its_product_wide() -> None:
    """1e6 is infinity in float16; bfloat16 has it."""
    weight = relax.const(np.full((4, 4), 1e6, "float32"))
    mod = module({"x": ((2, 4), "float32")}, lambda emit, x: emit(op.matmul(x, weight)))
    x = np.full((2, 4), 1e-3, "float32")
    for precision in NARROW:
        (found,) = run_graph(build_with(mod, CPU, precision=precision), [x])
        np.testing.assert_allclose(found, 4e3, rtol=8e-3)


def test_masks_stay_finite() -> None:
    """The least float32, added to scores, is the least float16 and not minus infinity."""
    mask = relax.const(np.array([0, np.finfo("float32").min], "float32"))

    def body(emit, x):
        scores = emit(op.add(emit(op.matmul(x, constant(4, 2))), mask))
        return emit(op.multiply(scores, relax.const(np.float32(0))))

    mod = module({"x": ((2, 4), "float32")}, body)
    (found,) = run_graph(build_with(mod, CPU, precision="float16"), [np.ones((2, 4), "float32")])
    np.testing.assert_array_equal(found, 0)


def test_integers_and_float64_are_left_alone() -> None:
    inputs = {"i": ((3, 4), "int64"), "d": ((4, 4), "float64")}

    def body(emit, i, d):
        return emit(op.add(i, i)), emit(op.matmul(d, d))

    graph = build_with(module(inputs, body), NONE, precision="float16")
    assert {tensor.dtype for node in graph.nodes for tensor in node.outputs} == {"int64", "float64"}


# between the greatest bfloat16 and the greatest float32
@example(np.array([3.3961775e38, -3.4e38, 3.39e38], "float32"), "bfloat16")
@given(arrays.arrays(np.float32, 7, elements=st.floats(width=32)), st.sampled_from(sorted(NARROW)))
def test_constants_round_to_the_nearest_that_is_finite(array: np.ndarray, dtype: str) -> None:
    found = rounded(array, dtype).astype("float64")
    finite = np.isfinite(array)
    assert np.array_equal(np.isfinite(found), finite)
    assert np.array_equal(np.isnan(found), np.isnan(array))
    assert np.array_equal(
        np.sign(found[~finite & ~np.isnan(array)]), np.sign(array[~finite & ~np.isnan(array)])
    )
    limit = float(ml_dtypes.finfo(dtype).max)
    near = np.clip(array[finite].astype("float64"), -limit, limit)
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    assert (np.abs(found[finite] - near) <= NARROW[dtype] * np.abs(near) + tiny).all()
