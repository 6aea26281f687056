# SPDX-License-Identifier: Apache-2.0
"""Weights in blocks of DequantizeLinear stay packed, and mean what ONNX's reference makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import uir_tvm
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

LENGTH, COUNT, BLOCK = 64, 24, 32
RANGES = {
    TensorProto.INT4: (-8, 8),
    TensorProto.UINT4: (0, 16),
    TensorProto.INT8: (-128, 128),
    TensorProto.UINT8: (0, 256),
}


def _tensor(name: str, element: int, values: np.ndarray) -> onnx.TensorProto:
    return helper.make_tensor(name, element, values.shape, values.reshape(-1).tolist())


def model(element: int, axis: int, zeros: str, scale: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """a @ w, w [64, 24] in blocks along axis 0, or the turned w of blocks along axis 1."""
    rng, (low, high) = np.random.default_rng(axis), RANGES[element]
    shape = (LENGTH, COUNT) if axis == 0 else (COUNT, LENGTH)
    blocks = tuple(size // BLOCK if place == axis else size for place, size in enumerate(shape))
    parts = [_tensor("x", element, rng.integers(low, high, shape))]
    parts.append(_tensor("s", scale, rng.random(blocks).astype(np.float32)))
    if zeros != "none":
        points = rng.integers(low, high, blocks)
        parts.append(_tensor("z", element, points if zeros == "each" else np.full(blocks, points.flat[0])))
    kind = {"axis": axis, "block_size": BLOCK}
    nodes = [helper.make_node("DequantizeLinear", [part.name for part in parts], ["w"], **kind)]
    if axis == 1:
        nodes.append(helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]))
    nodes.append(helper.make_node("MatMul", ["a", "t" if axis == 1 else "w"], ["y"]))
    ends = [
        helper.make_tensor_value_info(*each) for each in (("a", scale, (3, LENGTH)), ("y", scale, (3, COUNT)))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], parts)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _wanted(made: onnx.ModelProto, a: np.ndarray) -> Any:
    return ReferenceEvaluator(made).run(None, {"a": a})[0]


@pytest.mark.parametrize(
    ("element", "axis", "zeros"),
    [
        (TensorProto.INT4, 1, "none"),
        (TensorProto.UINT4, 0, "each"),
        (TensorProto.INT8, 0, "one"),
        (TensorProto.UINT8, 1, "each"),
    ],
)
def test_blocks_stay_packed(element: int, axis: int, zeros: str) -> None:
    made = model(element, axis, zeros)
    a = np.random.default_rng(2).standard_normal((3, LENGTH)).astype(np.float32)
    exe = uir_tvm.compile(made, "uir-cpu")
    wanted = _wanted(made, a)
    np.testing.assert_allclose(exe(a), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    bits = 4 if element in (TensorProto.INT4, TensorProto.UINT4) else 8
    least = LENGTH * COUNT * bits // 8 + 4 * COUNT * LENGTH // BLOCK * (1 + (zeros == "each"))
    # the library's own layout rounds 24 columns up to 32
    assert exe.report()["constant_bytes"] <= least * 32 // COUNT


def test_scales_in_half_precision_are_kept() -> None:
    made = model(TensorProto.INT4, 1, "none", TensorProto.FLOAT16)
    a = np.random.default_rng(2).standard_normal((3, LENGTH)).astype(np.float16)
    wanted = _wanted(made, a).astype(np.float32)
    got = np.asarray(uir_tvm.compile(made, "uir-cpu")(a)).astype(np.float32)
    # the reference sums 64 products in half precision: roundings of half an ULP, of either sign
    assert np.abs(got - wanted).max() <= 8 * 2**-11 * np.abs(wanted).max()
