# SPDX-License-Identifier: Apache-2.0
"""ONNX models with `auto_pad`, indices of a max pool, one-hot values, and shapes that are constants.

Where ONNX's reference evaluator leaves its own words (SAME_LOWER of pools), the model with the padding
written out says what is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from uir_tvm.errors import ShapeError

MODES = ("SAME_UPPER", "SAME_LOWER", "VALID")
RNG = np.random.default_rng(5)


def model(
    nodes: list[onnx.NodeProto],
    x: np.ndarray,
    shape: tuple[int, ...],
    constants: dict[str, Any] | None = None,
) -> onnx.ModelProto:
    """A model of one input ``x`` and one output ``y``."""
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", dtype, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def constant(name: str, *numbers: int) -> onnx.NodeProto:
    return helper.make_node(
        "Constant", [], [name], value=numpy_helper.from_array(np.array(numbers, np.int64))
    )


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def pads_of(sizes: tuple[int, ...], kernel: int, stride: int, dilation: int, mode: str) -> list[int]:
    """The padding that ``auto_pad`` stands for."""
    begins, ends = [], []
    for size in sizes:
        total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
        total = 0 if mode == "VALID" else total
        few, many = total // 2, total - total // 2
        begins.append(many if mode == "SAME_LOWER" else few)
        ends.append(few if mode == "SAME_LOWER" else many)
    return begins + ends


def check(
    nodes: list[onnx.NodeProto], explicit: list[onnx.NodeProto], x: np.ndarray, constants: Any = None
) -> None:
    """A compiled model is what the reference evaluator makes of the explicit form."""
    (want,) = ReferenceEvaluator(model(explicit, x, (), constants)).run(None, {"x": x})
    got = uir_tvm.compile(model(nodes, x, want.shape, constants))(x)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("operator", "sizes", "kernel", "stride", "dilation"),
    [
        ("Conv", (7, 8), 3, 2, 1),
        ("Conv", (7, 8), 2, 1, 2),
        ("Conv", (9,), 3, 2, 1),
        ("MaxPool", (7, 8), 3, 2, 1),
        ("MaxPool", (8,), 3, 3, 1),
        ("AveragePool", (7, 8), 3, 2, 1),
    ],
)
def test_auto_pad(
    operator: str, sizes: tuple[int, ...], kernel: int, stride: int, dilation: int, mode: str
) -> None:
    rank = len(sizes)
    common = {"strides": [stride] * rank, "kernel_shape": [kernel] * rank}
    if dilation > 1:
        common["dilations"] = [dilation] * rank
    constants = {"w": normal(3, 2, *[kernel] * rank)} if operator == "Conv" else {}
    inputs = ["x", *constants]
    automatic = helper.make_node(operator, inputs, ["y"], auto_pad=mode, **common)
    pads = pads_of(sizes, kernel, stride, dilation, mode)
    check(
        [automatic],
        [helper.make_node(operator, inputs, ["y"], pads=pads, **common)],
        normal(1, 2, *sizes),
        constants,
    )


SHAPES: dict[str, tuple[list[onnx.NodeProto], dict[str, Any]]] = {
    "expand by an initializer": ([helper.make_node("Expand", ["x", "s"], ["y"])], {"s": np.array([2, 4, 6])}),
    "expand by a constant": ([constant("s", 2, 1, 6), helper.make_node("Expand", ["x", "s"], ["y"])], {}),
    "slice by constants": (
        [
            constant("begin", 1, 0),
            constant("end", 3, 100),
            constant("axes", 0, 1),
            constant("steps", 1, 2),
            helper.make_node("Slice", ["x", "begin", "end", "axes", "steps"], ["y"]),
        ],
        {},
    ),
    "slice from the end": (
        [helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["y"])],
        {"b": np.array([-1]), "e": np.array([-10]), "a": np.array([1]), "s": np.array([-1])},
    ),
    "slice to the shape": (
        [helper.make_node("Shape", ["x"], ["e"]), helper.make_node("Slice", ["x", "b", "e"], ["y"])],
        {"b": np.array([1, 2])},
    ),
    "reshape by a constant": ([constant("s", 0, -1, 2), helper.make_node("Reshape", ["x", "s"], ["y"])], {}),
    "sums that are indexed": (
        [
            helper.make_node("CumSum", ["x", "a"], ["z"]),
            helper.make_node("Gather", ["z", "i"], ["y"], axis=1),
        ],
        {"a": np.array(1), "i": np.array([0, 2])},
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_are_constant(name: str) -> None:
    nodes, constants = SHAPES[name]
    check(nodes, nodes, normal(4, 6), constants)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scattered_elements(reduction: str) -> None:
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction=reduction)
    at = np.array([[0, 3], [1, 5], [2, 2 if reduction != "none" else 4], [5, 0]])
    check([node], [node], normal(4, 6), {"i": at, "u": normal(4, 2)})


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": "SAME_UPPER"},
    ],
)
def test_places_of_the_largest(attributes: dict[str, Any]) -> None:
    """The indices of a max pool, cast so that the model has one dtype."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", "i"], **attributes),
        helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
    ]
    x = RNG.permutation(2 * 3 * 6 * 8).reshape(2, 3, 6, 8).astype(np.float32)
    pooled = [helper.make_node("MaxPool", ["x"], ["y"], **attributes)]
    (values,) = ReferenceEvaluator(model(pooled, x, ())).run(None, {"x": x})
    got = uir_tvm.compile(model(nodes, x, values.shape))(x).astype(np.int64)
    np.testing.assert_array_equal(x.reshape(-1)[got], values)


def test_unpooled() -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", "i"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("MaxUnpool", ["p", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    x = normal(1, 2, 4, 6)
    tiles = x.reshape(1, 2, 2, 2, 3, 2)
    want = np.where(tiles == tiles.max((3, 5), keepdims=True), tiles, 0).reshape(x.shape)
    np.testing.assert_array_equal(uir_tvm.compile(model(nodes, x, x.shape))(x), want)


def test_one_hot_has_the_dtype_of_its_values() -> None:
    node = helper.make_node("OneHot", ["x", "n", "v"], ["y"], axis=0)
    constants = {"n": np.array(4), "v": np.array([-1, 2], np.float32)}
    check([node], [node], np.array([[0, 3], [-1, 7]]), constants)


@pytest.mark.parametrize(("operator", "counted"), [("MaxPool", None), ("AveragePool", 0), ("AveragePool", 1)])
def test_windows_that_would_begin_in_the_padding_are_none(operator: str, counted: int | None) -> None:
    """With ``ceil_mode``, as PyTorch leaves them out: ONNX's own shape inference counts them."""
    pooled: Any = {"MaxPool": torch.nn.MaxPool2d, "AveragePool": torch.nn.AvgPool2d}[operator]
    named = {} if counted is None else {"count_include_pad": counted}
    told = {name: bool(value) for name, value in named.items()}
    for kernel, stride, padding, size in ((2, 2, 1, (1, 6)), (2, 3, 0, (5, 4)), (3, 3, 1, (4, 7))):
        x = normal(1, 2, *size)
        want = pooled(kernel, stride, padding, ceil_mode=True, **told)(torch.from_numpy(x)).numpy()
        given = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [padding] * 4, "ceil_mode": 1}
        node = helper.make_node(operator, ["x"], ["y"], **given, **named)
        got = uir_tvm.compile(model([node], x, want.shape))(x)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("node", "numbers", "said"),
    [
        (
            helper.make_node("TopK", ["x", "k"], ["y", "places"]),
            [7],
            "of 7 elements, where the axis has 6",
        ),
        (helper.make_node("TopK", ["x", "k"], ["y", "places"]), [-1], "TopK of -1 elements"),
        (helper.make_node("Range", ["k", "k", "step"], ["y"]), 3, "Range in steps of 0 has no end"),
    ],
)
def test_numbers_that_an_operator_does_not_take(node: onnx.NodeProto, numbers: Any, said: str) -> None:
    """Known once the model runs: ONNX Runtime refuses them too."""
    given = np.array(numbers, np.int64)
    single = model([node], normal(2, 6), (2, 6), {"step": np.int64(0)})
    single.graph.input.append(helper.make_tensor_value_info("k", TensorProto.INT64, given.shape))
    if node.op_type == "Range":
        single.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
        del single.graph.output[0].type.tensor_type.shape.dim[1]
    with pytest.raises(ShapeError, match=said) as caught:
        uir_tvm.compile(single)(normal(2, 6), given)
    assert node.op_type in caught.value.where
