# SPDX-License-Identifier: Apache-2.0
"""Constant weights are laid out when a model is compiled: no kernel turns them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import uir_tvm
from tvm import relax
from uir_tvm.options import CompileOptions
from uir_tvm.runtime import modelled

from ...kernel_graph.programs import module

op = relax.op
RNG = np.random.default_rng(3)


def _weight(dtype: str, *shape: int) -> np.ndarray:
    array = 0.1 * RNG.standard_normal(shape)
    return array.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _run(body: Callable[..., Any], x: np.ndarray, dtype: str, target: str) -> tuple[np.ndarray, str, float]:
    """The result, the texts of its kernels, and their modelled seconds."""
    mod = module({"x": (x.shape, dtype)}, body)
    exe = uir_tvm.compile(mod, target=target, options=CompileOptions(device="model"))
    assert not [kernel.fallback for kernel in exe.info.kernels if kernel.fallback]
    with modelled.recording() as found:
        result = np.asarray(exe(x)).astype(np.float32)
    text = "".join(kernel.texts["source"] for kernel in exe.info.kernels)
    return result, text, sum(launch.seconds for launch in found.times.launches)


@pytest.mark.parametrize("order", ["[k, n]", "[n, k]"])
@pytest.mark.parametrize(
    ("dtype", "target", "tolerance"), [("float16", "uir-bang", 4e-3), ("bfloat16", "uir-bang:mlu590", 3e-2)]
)
def test_weights_of_a_perceptron_are_not_turned(
    order: str, dtype: str, target: str, tolerance: float
) -> None:
    """Products that the library does not take: fp16 with sums in fp32, and bf16."""
    first, second = _weight(dtype, 96, 160), _weight(dtype, 160, 64)
    out_dtype = "float32" if dtype == "float16" else None

    def product(emit, x, weight):
        given = relax.const(weight if order == "[k, n]" else np.ascontiguousarray(weight.T), dtype)
        right = given if order == "[k, n]" else emit(op.permute_dims(given))
        return emit(op.matmul(x, right, out_dtype=out_dtype))

    def body(emit, x):
        hidden = emit(op.nn.relu(product(emit, x, first)))
        return product(emit, emit(op.astype(hidden, dtype)), second)

    x = _weight(dtype, 24, 96)
    found, text, _ = _run(body, x, dtype, target)
    assert "__bang_matmul(" in text and "__bang_transpose(" not in text, text
    wide = [array.astype(np.float32) for array in (x, first, second)]
    wanted = np.maximum(wide[0] @ wide[1], 0) @ wide[2]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def test_einsum_reads_its_weight_as_it_lies() -> None:
    weight, x = _weight("float32", 128, 4, 64), _weight("float32", 32, 128)

    def body(emit, x):
        return emit(op.einsum([x, relax.const(weight)], "bk,khd->bhd"))

    found, text, _ = _run(body, x, "float32", "uir-bang")
    assert "__bang_matmul(" in text and "__bang_transpose(" not in text
    np.testing.assert_allclose(found, np.einsum("bk,khd->bhd", x, weight), rtol=0, atol=1e-5)


def test_windows_of_a_convolution_are_read_in_runs() -> None:
    """In NHWC, with the weights in the order in which frameworks keep them: in less than half the time."""
    weight, x = _weight("float32", 32, 16, 3, 3), _weight("float32", 1, 16, 16, 16)

    def conv(kernel):
        def body(emit, x):
            return emit(op.nn.conv2d(x, kernel, padding=1, data_layout="NHWC", kernel_layout="OIHW"))

        return body

    found, text, seconds = _run(conv(relax.const(weight)), x, "float32", "uir-bang")
    mod = module(
        {"x": (x.shape, "float32"), "w": (weight.shape, "float32")}, lambda emit, x, w: conv(w)(emit, x)
    )
    exe = uir_tvm.compile(mod, target="uir-bang", options=CompileOptions(device="model"))
    with modelled.recording() as other:
        wanted = exe(x, weight)
    np.testing.assert_array_equal(found, wanted)
    assert seconds < 0.5 * sum(launch.seconds for launch in other.times.launches)
