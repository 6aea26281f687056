# SPDX-License-Identifier: Apache-2.0
"""ONNX models quantised with their activations: bytes between products, and scales that mean nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from uir_tvm.errors import QuantizationError
from uir_tvm.frontend import from_onnx

from tests.asked import asked

RNG = np.random.default_rng(11)
Arrays = dict[str, np.ndarray]


def model(
    nodes: list[onnx.NodeProto],
    x: tuple[int, tuple[Any, ...]],
    y: int,
    arrays: Arrays,
    rank: int = 2,
) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info("x", x[0], x[1]),
        helper.make_tensor_value_info("y", y, [None] * rank),
    ]
    parts = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], parts)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def byte(value: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


class Quantised:
    """A model in the form of ORT's quantiser: QuantizeLinear and DequantizeLinear around products."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.arrays: Arrays = {}

    def add(self, operator: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def part(self, array: np.ndarray) -> str:
        name = f"c{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def through_bytes(self, value: str, step: float, zero: np.ndarray) -> str:
        parts = [self.part(scale(step)), self.part(zero)]
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [value, *parts]), *parts])

    def weight(self, shape: tuple[int, ...], axis: int) -> str:
        codes = RNG.integers(-127, 128, shape).astype(np.int8)
        steps = (RNG.random(shape[axis]) * 0.002 + 0.001).astype(np.float32)
        zeros = np.zeros(shape[axis], np.int8)
        return self.add("DequantizeLinear", [*map(self.part, (codes, steps, zeros))], axis=axis)

    def bias(self, count: int) -> str:
        parts = (RNG.integers(-3000, 3000, count).astype(np.int32), scale(1e-4))
        return self.add("DequantizeLinear", [*map(self.part, parts)])

    def model(self, value: str, shape: tuple[Any, ...]) -> onnx.ModelProto:
        self.nodes[-1].output[0] = "y"
        return model(self.nodes, (TensorProto.FLOAT, shape), TensorProto.FLOAT, self.arrays, len(shape))


def perceptron(rows: Any) -> onnx.ModelProto:
    """Two layers with bias and ReLU, of bytes with a zero point."""
    made = Quantised()
    x = made.through_bytes("x", 0.03, byte(121))
    hidden = made.add("Relu", [made.add("Gemm", [x, made.weight((24, 40), 1), made.bias(40)])])
    hidden = made.through_bytes(hidden, 0.01, byte(0))
    out = made.add("Add", [made.add("MatMul", [hidden, made.weight((40, 10), 1)]), made.bias(10)])
    return made.model(made.through_bytes(out, 0.02, byte(-3, np.int8)), (rows, 24))


def block() -> onnx.ModelProto:
    """Two convolutions, the input added, and one of every second pixel."""
    made = Quantised()
    x = made.through_bytes("x", 0.03, byte(121))
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    one = made.add("Relu", [made.add("Conv", [x, made.weight((8, 8, 3, 3), 0), made.bias(8)], **window)])
    one = made.through_bytes(one, 0.02, byte(0))
    two = made.add("Conv", [one, made.weight((8, 8, 3, 3), 0), made.bias(8)], **window)
    two = made.through_bytes(two, 0.04, byte(99))
    total = made.through_bytes(made.add("Relu", [made.add("Add", [two, x])]), 0.03, byte(0))
    last = made.add("Conv", [total, made.weight((12, 8, 1, 1), 0), made.bias(12)], strides=[2, 2])
    return made.model(made.through_bytes(last, 0.02, byte(130)), (1, 8, 7, 9))


def kinds(exe: Any) -> list[str]:
    """Of the nodes: what the library computes, and kernels."""
    return [getattr(node, "kind", "kernel") for node in exe.kernel_graph.nodes]


@pytest.mark.parametrize("name", ["perceptron", "block"])
def test_products_of_bytes_are_integers_between_which_values_stay_bytes(name: str) -> None:
    made, step = (perceptron(6), 0.02) if name == "perceptron" else (block(), 0.02)
    shape = tuple(each.dim_value for each in made.graph.input[0].type.tensor_type.shape.dim)
    x = RNG.standard_normal(shape).astype(np.float32)
    exe = uir_tvm.compile(made, "uir-cpu")
    wanted = ReferenceEvaluator(made).run(None, {"x": x})[0]
    difference = np.abs(np.asarray(exe(x)) - wanted)
    # a number close to a half is rounded to either byte: the reference adds up floats
    assert difference.max() <= 1.01 * step
    assert (difference < step / 2).mean() > 0.98
    products = [node for node in exe.kernel_graph.library_ops if node.kind == "integer_product"]
    assert len(products) == kinds(exe).count("integer_product") == (2 if name == "perceptron" else 3)
    assert all(node.inputs[0].dtype == "uint8" for node in products)
    assert {node.outputs[0].dtype for node in products} <= {"uint8", "int8"}


def test_rows_may_be_open() -> None:
    made = perceptron("n")
    exe = uir_tvm.compile(made, "uir-cpu")
    for rows in (1, 7):
        x = RNG.standard_normal((rows, 24)).astype(np.float32)
        wanted = ReferenceEvaluator(made).run(None, {"x": x})[0]
        assert np.abs(np.asarray(exe(x)) - wanted).max() <= 0.0201  # one byte, as above


@pytest.mark.parametrize("target", asked(("uir-cuda",), ("uir-cuda", "uir-ascend", "uir-bang")))
def test_devices_compute_it_too(target: str) -> None:
    made = perceptron(6)
    x = RNG.standard_normal((6, 24)).astype(np.float32)
    exe = uir_tvm.compile(made, target, options=uir_tvm.CompileOptions(device="model"))
    wanted = ReferenceEvaluator(made).run(None, {"x": x})[0]
    assert np.abs(np.asarray(exe(x)) - wanted).max() <= 0.0401  # a byte of the first layer moves others
    assert [each.taken for each in exe.kernel_graph.integers] == [True] * 2


def integers() -> dict[str, tuple[onnx.ModelProto, np.ndarray, float]]:
    """Operators of integers: a model, its input, and how far results may be."""
    node, u8, f32 = helper.make_node, TensorProto.UINT8, TensorProto.FLOAT
    a = RNG.integers(0, 256, (5, 33)).astype(np.uint8)
    image = RNG.integers(0, 256, (1, 6, 9, 9)).astype(np.uint8)
    b = RNG.integers(-128, 128, (33, 20)).astype(np.int8)
    wide = RNG.integers(0, 256, (33, 20)).astype(np.uint8)
    w = RNG.integers(-128, 128, (10, 6, 3, 3)).astype(np.int8)
    real = RNG.standard_normal((2, 5, 33)).astype(np.float32)
    steps = (RNG.random(10) * 0.01 + 0.01).astype(np.float32)
    product = {"sa": scale(0.02), "za": byte(120), "b": b, "sb": scale(0.01), "zb": byte(0, np.int8)}
    ending = {"sy": scale(0.3), "zy": byte(130)}
    window = {"sx": scale(0.02), "zx": byte(120), "w": w, "sw": steps, "zw": np.zeros(10, np.int8)}
    dynamic = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "b", "z"], ["i"]),
        node("Cast", ["i"], ["f"], to=f32),
        node("Mul", ["f", "s"], ["y"]),
    ]
    return {
        "MatMulInteger": (
            model(
                [node("MatMulInteger", ["x", "b", "z"], ["y"])],
                (u8, a.shape),
                TensorProto.INT32,
                {"b": b, "z": byte(9)},
            ),
            a,
            0,
        ),
        "of nine bits": (
            model(
                [node("MatMulInteger", ["x", "b", "z", "zb"], ["y"])],
                (u8, a.shape),
                TensorProto.INT32,
                {"b": wide, "z": byte(9), "zb": byte(200)},
            ),
            a,
            0,
        ),
        "DynamicQuantizeLinear": (model(dynamic, (f32, real.shape), f32, {"b": b}, 3), real, 1e-3),
        "QLinearMatMul": (
            model(
                [node("QLinearMatMul", ["x", *product, *ending], ["y"])], (u8, a.shape), u8, product | ending
            ),
            a,
            1,
        ),
        "ConvInteger": (
            model(
                [node("ConvInteger", ["x", "w", "z"], ["y"], pads=[1, 1, 1, 1])],
                (u8, image.shape),
                TensorProto.INT32,
                {"w": w, "z": byte(7)},
                4,
            ),
            image,
            0,
        ),
        "QLinearConv": (
            model(
                [
                    node(
                        "QLinearConv",
                        ["x", *window, *ending, "bias"],
                        ["y"],
                        pads=[1, 0, 1, 0],
                        strides=[2, 1],
                    )
                ],
                (u8, image.shape),
                u8,
                window | ending | {"bias": RNG.integers(-9000, 9000, 10).astype(np.int32)},
                4,
            ),
            image,
            1,
        ),
    }


@pytest.mark.parametrize("name", list(integers()))
def test_operators_of_integers_are_exact(name: str) -> None:
    """Weights of all bytes: pairs of products exceed 16 bits, where ONNX Runtime may saturate."""
    made, x, far = integers()[name]
    exe = uir_tvm.compile(made, "uir-cpu")
    wanted = ReferenceEvaluator(made).run(None, {"x": x})[0]
    got = np.asarray(exe(x))
    assert got.dtype == wanted.dtype and np.abs(got.astype(np.float64) - wanted).max() <= far
    assert "integer_product" in kinds(exe)


def test_groups_of_channels_are_computed_in_floats() -> None:
    """Of what is no integer product, the graph says why."""
    w = RNG.integers(-128, 128, (6, 1, 3, 3)).astype(np.int8)
    image = RNG.integers(0, 256, (1, 6, 9, 9)).astype(np.uint8)
    node = helper.make_node("ConvInteger", ["x", "w"], ["y"], group=6)
    made = model([node], (TensorProto.UINT8, image.shape), TensorProto.INT32, {"w": w}, 4)
    exe = uir_tvm.compile(made, "uir-cpu")
    np.testing.assert_array_equal(exe(image), ReferenceEvaluator(made).run(None, {"x": image})[0])
    (decision,) = exe.kernel_graph.integers
    assert (decision.taken, decision.reason) == (False, "it has 6 groups of channels")


def _linear(operator: str, x: Any, parts: Arrays, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(operator, ["x", *parts], ["y"], **attributes)
    made = TensorProto.UINT8 if operator == "QuantizeLinear" else TensorProto.FLOAT
    ends = [helper.make_tensor_value_info("x", x, (4, 6)), helper.make_tensor_value_info("y", made, (4, 6))]
    held = [numpy_helper.from_array(array, name) for name, array in parts.items()]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _weight(**attributes: Any) -> onnx.ModelProto:
    """A constant weight [4, 6] whose scales are given for five places."""
    node = helper.make_node("DequantizeLinear", ["q", "s"], ["w"], **attributes)
    arrays = {"q": np.ones((4, 6), np.int8), "s": np.ones(5, np.float32)}
    nodes = [node, helper.make_node("MatMul", ["x", "w"], ["y"])]
    return model(nodes, (TensorProto.FLOAT, (3, 4)), TensorProto.FLOAT, arrays)


ONES = np.ones(6, np.float32)
BAD: dict[str, tuple[onnx.ModelProto, str]] = {
    "a scale of zero": (_linear("QuantizeLinear", TensorProto.FLOAT, {"s": scale(0)}), "the scale is 0"),
    "a negative scale": (_linear("QuantizeLinear", TensorProto.FLOAT, {"s": scale(-1)}), "the scale is -1"),
    "a scale of NaN": (_linear("DequantizeLinear", TensorProto.UINT8, {"s": scale(np.nan)}), "scale is nan"),
    "an infinite scale": (
        _linear("DequantizeLinear", TensorProto.UINT8, {"s": scale(np.inf)}),
        "the scale is inf",
    ),
    "scales of another number": (
        _linear("DequantizeLinear", TensorProto.UINT8, {"s": ONES}, axis=0),
        "6 scales are along axis 0, which has 4 places",
    ),
    "an axis that is not there": (
        _linear("DequantizeLinear", TensorProto.UINT8, {"s": ONES}, axis=2),
        "scales are along axis 2 of a tensor of 2 axes",
    ),
    "zero points of another number": (
        _linear("DequantizeLinear", TensorProto.UINT8, {"s": ONES, "z": np.zeros(4, np.uint8)}),
        r"zero points of \(4,\) go with scales of \(6,\)",
    ),
    "a weight with scales of another number": (_weight(axis=1), "5 scales are along axis 1"),
    "a weight with an axis that is not there": (_weight(axis=-3), "scales are along axis -3"),
}


@pytest.mark.parametrize("name", BAD)
def test_scales_that_mean_nothing(name: str) -> None:
    made, said = BAD[name]
    with pytest.raises(QuantizationError, match=said) as caught:
        from_onnx(made)
    assert caught.value.need and caught.value.remedy


def test_zero_points_of_another_type() -> None:
    """Where the checker of ONNX does not look: types of values that are computed."""
    made = _linear("DequantizeLinear", TensorProto.UINT8, {"s": scale(1), "z": byte(3, np.int8)})
    with pytest.raises(uir_tvm.errors.UirError, match="int8"):
        from_onnx(made)


def test_zero_scales_of_results() -> None:
    arrays = {"sa": scale(1), "za": byte(0), "b": np.ones((4, 2), np.int8), "sb": scale(1)}
    arrays |= {"zb": byte(0, np.int8), "sy": scale(0), "zy": byte(0)}
    node = helper.make_node("QLinearMatMul", ["x", *arrays], ["y"])
    with pytest.raises(QuantizationError, match="the scale of y is 0"):
        from_onnx(model([node], (TensorProto.UINT8, (3, 4)), TensorProto.UINT8, arrays))
