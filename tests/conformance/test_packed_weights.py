# SPDX-License-Identifier: Apache-2.0
"""Weights of few bits stay packed on every target, and give what the standard and uir-cpu give."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from uir_tvm import CompileOptions
from uir_tvm.quantized_weight import affine_weight

from tests.asked import asked

ROWS, LENGTH, COUNT, BLOCK = 3, 64, 32, 32
OPS = torch.ops.quantized_decomposed
X = np.random.default_rng(0).standard_normal((ROWS, LENGTH)).astype(np.float32)
#: A model, what it computes of `X`, and the bytes of its packed weight.
Case = tuple[Any, np.ndarray, int]


def _graph(nodes: list[onnx.NodeProto], arrays: dict[str, onnx.TensorProto]) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", (ROWS, LENGTH)), ("y", (ROWS, COUNT)))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], list(arrays.values()))
    versions = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=10)


def _mat_mul_n_bits(bits: int, zeros: bool) -> Case:
    """The contributed operator; its meaning is written out here, as the reference has none."""
    rng = np.random.default_rng(bits)
    groups, per_byte = LENGTH // BLOCK, 8 // bits
    packed = rng.integers(0, 256, (COUNT, groups, BLOCK // per_byte)).astype(np.uint8)
    arrays = {"b": packed, "s": (rng.random((COUNT, groups)) + 0.5).astype(np.float32)}
    points = np.full((COUNT, groups), 1 << bits - 1)
    if zeros:
        arrays["z"] = rng.integers(0, 256, (COUNT, groups // per_byte)).astype(np.uint8)
        points = _numbers(arrays["z"], bits)
    node = helper.make_node(
        "MatMulNBits",
        ["x", *arrays],
        ["y"],
        domain="com.microsoft",
        K=LENGTH,
        N=COUNT,
        bits=bits,
        block_size=BLOCK,
    )
    model = _graph([node], {name: numpy_helper.from_array(array, name) for name, array in arrays.items()})
    codes = _numbers(packed.reshape(COUNT, -1), bits).reshape(COUNT, groups, BLOCK)
    weight = (arrays["s"][..., None] * (codes - points[..., None])).reshape(COUNT, LENGTH)
    kept = affine_weight(codes.reshape(COUNT, LENGTH), arrays["s"], points.astype(np.float32), bits)
    return model, X @ weight.T.astype(np.float32), kept.nbytes


def _numbers(packed: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 8, bits)
    return (packed[..., None].astype(np.int64) >> shifts & (1 << bits) - 1).reshape(len(packed), -1)


def _dequantize_blocks() -> Case:
    rng = np.random.default_rng(5)
    codes = rng.integers(-8, 8, (LENGTH, COUNT))
    scales = (rng.random((LENGTH // BLOCK, COUNT)) + 0.5).astype(np.float32)
    parts = {
        "q": helper.make_tensor("q", TensorProto.INT4, codes.shape, codes.reshape(-1).tolist()),
        "s": numpy_helper.from_array(scales, "s"),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=0, block_size=BLOCK),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    model = _graph(nodes, parts)
    wanted = ReferenceEvaluator(model).run(None, {"x": X})[0]
    return model, wanted, LENGTH * COUNT // 2 + scales.nbytes


def _dequantize_axis() -> Case:
    """A weight of bytes with a scale and a zero point for each of its columns; x is not quantised."""
    rng = np.random.default_rng(6)
    arrays = {
        "q": rng.integers(-128, 128, (LENGTH, COUNT)).astype(np.int8),
        "s": (rng.random(COUNT) + 0.5).astype(np.float32),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=1),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    model = _graph(nodes, {name: numpy_helper.from_array(array, name) for name, array in arrays.items()})
    return model, ReferenceEvaluator(model).run(None, {"x": X})[0], LENGTH * COUNT + 4 * COUNT


class _Linear(torch.nn.Module):
    """A product with a weight whose groups along the rows have scales."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.low, self.high = -(1 << bits - 1), (1 << bits - 1) - 1
        rng = torch.Generator().manual_seed(bits)
        self.register_buffer(
            "q", torch.randint(self.low, self.high + 1, (COUNT, LENGTH), generator=rng, dtype=torch.int8)
        )
        self.register_buffer("s", torch.rand((COUNT, LENGTH // BLOCK), generator=rng) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = OPS.dequantize_per_channel_group(
            self.q, self.s, None, self.low, self.high, torch.int8, BLOCK, torch.float32
        )
        return torch.nn.functional.linear(x, weight)


def _torch(bits: int) -> Case:
    module, x = _Linear(bits).eval(), torch.from_numpy(X)
    scales = 4 * COUNT * LENGTH // BLOCK
    return torch.export.export(module, (x,)), module(x).numpy(), COUNT * LENGTH * bits // 8 + scales


CASES: dict[str, Callable[[], Case]] = {
    "MatMulNBits of 4 bits": lambda: _mat_mul_n_bits(4, False),
    "MatMulNBits of 4 bits with zero points": lambda: _mat_mul_n_bits(4, True),
    "MatMulNBits of 8 bits": lambda: _mat_mul_n_bits(8, False),
    "DequantizeLinear in blocks": _dequantize_blocks,
    "DequantizeLinear of columns": _dequantize_axis,
    "PyTorch, 4 bits in groups": lambda: _torch(4),
    "PyTorch, 8 bits in groups": lambda: _torch(8),
}


@cache
def _case(name: str) -> Case:
    return CASES[name]()


#: One form of each front end on the devices, whose kernels g++ compiles; all in the campaign.
FEW = ("MatMulNBits of 4 bits with zero points", "PyTorch, 8 bits in groups")
DEVICES = [(name, f"uir-{kind}") for name in asked(FEW, tuple(CASES)) for kind in ("cuda", "ascend", "bang")]


@pytest.mark.compares_itself(but=("uir-cpu",))
@pytest.mark.parametrize(("name", "target"), [*((name, "uir-cpu") for name in CASES), *DEVICES])
def test_weights_stay_packed_on_every_target(name: str, target: str) -> None:
    model, wanted, packed = _case(name)
    options = CompileOptions() if target == "uir-cpu" else CompileOptions(device="model")
    exe = uir_tvm.compile(model, target, options=options)
    got = exe(X if isinstance(model, onnx.ModelProto) else torch.from_numpy(X))
    # products of 64 numbers in float32, in another order
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
    assert exe.report()["constant_bytes"] == packed


@pytest.mark.parametrize("name", [name for name in CASES if "PyTorch" not in name])
def test_the_reference_is_onnx_runtimes(name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, wanted, _ = _case(name)
    plain = onnxruntime.SessionOptions()
    # fused with its product a weight is multiplied with rounded inputs, on some CPUs
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), plain, ["CPUExecutionProvider"])
    found = session.run(None, {"x": X})[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
