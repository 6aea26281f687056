# SPDX-License-Identifier: Apache-2.0
"""Convolutions of narrow floats, which the library computes as they are, in float32, or not at all."""

from __future__ import annotations

import attrs
import ml_dtypes  # noqa: F401  (NumPy then knows bfloat16 by its name)
import numpy as np
import pytest
import tvm
from tvm import relax
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.library.library_tables import NONE, LibraryTable
from uir_tvm.target.cpu.library import TABLE as CPU

from .programs import module, run_graph

op = relax.op
#: Roundings of operands and results, relative to the largest result.
ROUNDING = {"float16": 2e-3, "bfloat16": 2e-2}
WIDENING = attrs.evolve(CPU, features={})


def convolution(dtype: str, channels: int = 5) -> tuple[tvm.IRModule, np.ndarray, np.ndarray]:
    """relu(conv2d(x, w) * scale), its input, and its result by sums in float64."""
    rng = np.random.default_rng(3)
    shapes = ((2, channels, 9, 7), (6, channels, 3, 3), (6, 1, 1))
    x, w, scale = (rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes)

    def body(emit, x):
        y = emit(op.nn.conv2d(x, relax.const(w, dtype), padding=(1, 1), out_dtype=dtype))
        return emit(op.nn.relu(emit(op.multiply(y, relax.const(scale, dtype)))))

    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    product = np.einsum("nchwij,ocij->nohw", windows, w.astype("float64")) * scale.astype("float64")
    return module({"x": (x.shape, dtype)}, body), x, np.maximum(product, 0)


def off_by(table: LibraryTable, dtype: str) -> tuple[list[str], float]:
    """The dtypes that the library computes in, and the largest difference from sums in float64."""
    mod, x, expected = convolution(dtype)
    graph = build_with(mod, table)
    (found,) = run_graph(graph, [x])
    assert found.dtype == x.dtype
    error = np.abs(found.astype("float64") - expected).max() / np.abs(expected).max()
    return [node.outputs[0].dtype for node in graph.library_ops], float(error)


@pytest.mark.parametrize("dtype", sorted(ROUNDING))
def test_the_library_computes_narrow_convolutions_in_float32(dtype: str) -> None:
    dtypes, error = off_by(WIDENING, dtype)
    assert dtypes == ["float32"]
    assert error <= ROUNDING[dtype]


def test_it_computes_as_they_are_those_that_it_takes() -> None:
    """With the scale in the weight and the activation in its epilogue."""
    dtypes, error = off_by(CPU, "bfloat16")
    assert dtypes == ["bfloat16"]
    assert error <= ROUNDING["bfloat16"]
    (node,) = build_with(convolution("bfloat16")[0], CPU).nodes
    assert node.attrs.activation == "relu"


@pytest.mark.parametrize("dtype", sorted(ROUNDING))
def test_kernels_of_ours_sum_in_float32(dtype: str) -> None:
    dtypes, error = off_by(NONE, dtype)
    assert dtypes == []
    assert error <= ROUNDING[dtype]


def test_sums_beyond_the_narrow_type_do_not_overflow() -> None:
    """256 * 256 is beyond float16; the second half of the channels takes it back."""
    x = np.full((1, 2, 1, 1), 256, "float16")
    w = np.array([256, -255], "float16").reshape(1, 2, 1, 1)
    mod = module(
        {"x": (x.shape, "float16")},
        lambda emit, x: emit(op.nn.conv2d(x, relax.const(w, "float16"), out_dtype="float16")),
    )
    for table in (NONE, WIDENING):
        (found,) = run_graph(build_with(mod, table), [x])
        assert found.item() == 256, table


def test_mixed_operands_and_single_precision_stay() -> None:
    mod = module(
        {"x": ((1, 4, 6, 6), "float32")},
        lambda emit, x: emit(op.nn.conv2d(x, relax.const(np.ones((4, 4, 1, 1), "float32"), "float32"))),
    )
    (node,) = build_with(mod, WIDENING).nodes
    assert node.attrs.packed
