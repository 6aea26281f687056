# SPDX-License-Identifier: Apache-2.0
"""Nodes of arrays that hold open sizes compute what ONNX's reference does of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from uir_tvm.frontend.onnx.known import Known, VersionedNode, is_open, of_sizes
from uir_tvm.frontend.onnx.open_arrays import evaluate_any
from uir_tvm.sizes.open_size import at
from uir_tvm.sizes.open_symbols import OpenSymbol
from uir_tvm.sizes.size_space import SizeSpace

OPSET = 18
SPACE = SizeSpace([OpenSymbol("n", 2, None, 61), OpenSymbol("m", 2, 64, 59)])
N, M = SPACE.symbol("n"), SPACE.symbol("m")

#: A node -> its operands.
NODES: dict[str, tuple[onnx.NodeProto, list[Any]]] = {
    name: (helper.make_node(operator, [f"i{i}" for i in range(len(given))], outputs, **attributes), given)
    for name, operator, given, outputs, attributes in (
        ("add", "Add", [[N, M], 3], ["a"], {}),
        ("sub", "Sub", [[N, M], [1, 1]], ["a"], {}),
        ("product", "Mul", [[[N], [M]], [M, 2]], ["a"], {}),
        ("quotient", "Div", [[N, 2 * M, -7], [3, 2, 2]], ["a"], {}),
        ("least", "Min", [[N, M], [N + 1, 7], [900, 900]], ["a"], {}),
        ("most", "Max", [[N, M], [N + 1, 7]], ["a"], {}),
        ("sum", "Sum", [[N, M], [M, M], [1, 2]], ["a"], {}),
        ("negative", "Neg", [[N, 2]], ["a"], {}),
        ("absolute", "Abs", [[N, -2]], ["a"], {}),
        ("equal", "Equal", [[N, M, 3], [N, -1, 3]], ["a"], {}),
        ("less", "Less", [[N, M], [1, 65]], ["a"], {}),
        ("greater", "GreaterOrEqual", [[N, M], [2, 65]], ["a"], {}),
        ("chosen", "Where", [np.array([True, False]), [N, M], [1, 2]], ["a"], {}),
        ("gather", "Gather", [[N, M, 3], [2, 0]], ["a"], {}),
        ("one", "Gather", [[N, M, 3], 1], ["a"], {"axis": 0}),
        ("slice", "Slice", [[N, M, 3], [-2], [9]], ["a"], {}),
        ("backwards", "Slice", [[N, M, 3], [-1], [-9], [0], [-1]], ["a"], {}),
        ("concat", "Concat", [[N], [3, M], [N]], ["a"], {"axis": 0}),
        ("reshape", "Reshape", [[N, M, 3, 4], [2, -1]], ["a"], {}),
        ("transpose", "Transpose", [[[N, 1], [M, 2]]], ["a"], {}),
        ("unsqueeze", "Unsqueeze", [N, [0]], ["a"], {}),
        ("squeeze", "Squeeze", [[N], [0]], ["a"], {}),
        ("expand", "Expand", [[N], [3]], ["a"], {}),
        ("tile", "Tile", [[N, M], [2]], ["a"], {}),
        ("split", "Split", [[N, M, 3], [1, 2]], ["a", "b"], {}),
        ("all", "ReduceProd", [[N, M, 3]], ["a"], {"keepdims": 0}),
        ("along", "ReduceSum", [[[N, M], [1, N]], [1]], ["a"], {}),
        ("whole", "Cast", [[N, 3]], ["a"], {"to": TensorProto.INT32}),
        ("truth", "Cast", [[N, 0]], ["a"], {"to": TensorProto.BOOL}),
        ("same", "Identity", [[N, 3]], ["a"], {}),
        ("shape of sizes", "Shape", [[N, 3]], ["a"], {}),
    )
}


def numbers(array: np.ndarray, sizes: dict[str, int]) -> np.ndarray:
    return np.array([at(size, sizes) for size in array.flat], np.int64).reshape(array.shape)


@pytest.mark.parametrize("name", NODES)
def test_nodes(name: str) -> None:
    node, given = NODES[name]
    known, arrays = Known(), [each if isinstance(each, np.ndarray) else of_sizes(each) for each in given]
    for place, array in zip(node.input, arrays, strict=True):
        known.add_array(place, array)
    step = VersionedNode(node, OPSET)
    known.infer(step, {"": OPSET}, 10)
    made = evaluate_any(step, known)
    assert made is not None and list(made) == list(node.output)
    value_infos = [onnx.ValueInfoProto(name=place) for place in node.input]
    graph = helper.make_graph([node], "one", value_infos, [onnx.ValueInfoProto(name=o) for o in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    for sizes in ({"n": 61, "m": 59}, {"n": 17, "m": 40}):
        feeds = {
            place: numbers(array, sizes) if is_open(array) else array
            for place, array in zip(node.input, arrays, strict=True)
        }
        for want, output in zip(ReferenceEvaluator(model).run(None, feeds), made.values(), strict=True):
            got = numbers(output, sizes) if is_open(output) else output
            np.testing.assert_array_equal(got, want)
            assert is_open(output) or output.dtype == np.asarray(want).dtype


def test_open_sizes_are_no_floats() -> None:
    known = Known()
    known.add_array("i", of_sizes([N]))
    step = VersionedNode(helper.make_node("Cast", ["i"], ["o"], to=TensorProto.FLOAT), OPSET)
    assert evaluate_any(step, known) is None


def test_a_quotient_of_what_may_be_negative_is_none() -> None:
    known = Known()
    known.add_array("i", of_sizes([N - M]))
    known.add_array("j", of_sizes([2]))
    step = VersionedNode(helper.make_node("Div", ["i", "j"], ["o"]), OPSET)
    with pytest.raises(ArithmeticError):
        evaluate_any(step, known)


def test_types_keep_open_sizes() -> None:
    known = Known()
    known.add_type("x", TensorProto.FLOAT, (N, 3, 2 * M + 1))
    assert known.shape("x") == (N, 3, 2 * M + 1) and known.size("x") == N * 3 * (2 * M + 1)
    known.types["y"] = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 3])
    assert known.shape("y") is None, "a name of the model's is no size"
