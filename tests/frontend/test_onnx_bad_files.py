# SPDX-License-Identifier: Apache-2.0
"""Files that are no sound model end in a typed error that names what is wrong and what to do."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import onnx
import pytest
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from uir_tvm.errors import ModelFormatError
from uir_tvm.frontend import from_onnx

FOUR = np.ones(4, np.float32)


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])


def model(
    nodes: list[onnx.NodeProto],
    output: str = "y",
    weights: tuple[onnx.TensorProto, ...] = (),
    inputs: tuple[str, ...] = ("x",),
    opset: int = 18,
    ir: int = 9,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [value(name) for name in inputs], [value(output)], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def weight(size: int = 4) -> onnx.TensorProto:
    """Four numbers that are said to be so many."""
    tensor = numpy_helper.from_array(FOUR, "w")
    tensor.dims[0] = size
    return tensor


NEG = helper.make_node("Neg", ["x"], ["y"])
ADD = helper.make_node("Add", ["x", "w"], ["y"])
MODELS = {
    "a cycle": (
        model([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"])], "b"),
        "topologically sorted.*'b'",
    ),
    "a node that reads itself": (model([helper.make_node("Add", ["x", "y"], ["y"])]), "topologically sorted"),
    "a weight larger than its data": (model([ADD], weights=(weight(10**6),)), "too small for the declared"),
    "a weight of a negative size": (model([ADD], weights=(weight(-4),)), "Negative dimension"),
    "a result of two nodes": (model([NEG, helper.make_node("Abs", ["x"], ["y"])]), "'y' has been used"),
    "an input named twice": (model([NEG], inputs=("x", "x")), "'x' has been used"),
    "an opset to come": (model([NEG], opset=999), "opset 999"),
    "a version of the format to come": (model([NEG], ir=999), "ir_version 999"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_break_the_rules(name: str) -> None:
    proto, says = MODELS[name]
    with pytest.raises(ModelFormatError, match=says) as caught:
        from_onnx(proto)
    assert caught.value.remedy


def written(folder: pathlib.Path, **fields: object) -> pathlib.Path:
    """A model whose weight is said to lie in another file."""
    tensor = weight()
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in fields.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(text)
    path = folder / "model.onnx"
    path.write_bytes(model([ADD], weights=(tensor,)).SerializeToString())
    return path


def test_data_beside_the_model_is_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "w.bin").write_bytes(FOUR.tobytes())
    assert len(from_onnx(written(tmp_path, location="w.bin"))["main"].params) == 1


@pytest.mark.parametrize("way", ["above", "absolute", "link", "missing"])
def test_data_from_elsewhere_is_not_read(way: str, tmp_path: pathlib.Path) -> None:
    secret, folder = tmp_path / "secret.bin", tmp_path / "model"
    secret.write_bytes(FOUR.tobytes())
    folder.mkdir()
    os.symlink(secret, folder / "link.bin")
    places = {"above": "../secret.bin", "absolute": secret, "link": "link.bin", "missing": "w.bin"}
    with pytest.raises(ModelFormatError, match="cannot be read") as caught:
        from_onnx(written(folder, location=places[way]))
    assert "beside it" in caught.value.remedy


@pytest.mark.parametrize("fields", [{"offset": 8, "length": 16}, {"offset": 0, "length": 8}, {"offset": 99}])
def test_data_that_ends_early(fields: dict[str, int], tmp_path: pathlib.Path) -> None:
    (tmp_path / "w.bin").write_bytes(FOUR.tobytes())
    with pytest.raises(ModelFormatError) as caught:
        from_onnx(written(tmp_path, location="w.bin", **fields))
    assert "model.onnx" in caught.value.what and caught.value.remedy


def test_a_long_chain_is_no_deep_recursion() -> None:
    """Each node is looked at once, however many stand before it."""
    names = ["x", *(f"v{number}" for number in range(1500))]
    nodes = [helper.make_node("Neg", [a], [b]) for a, b in zip(names, names[1:], strict=False)]
    assert from_onnx(model(nodes, names[-1]))["main"] is not None


@pytest.mark.parametrize("told", [False, True], ids=["no type", "no shape"])
def test_an_output_need_not_say_what_it_is(told: bool) -> None:
    """Its type and shape are inferred, as those of other results are; an element type of none is refused."""
    whole = model([helper.make_node("Add", ["x", "w"], ["y"])], weights=(numpy_helper.from_array(FOUR, "w"),))
    output = whole.graph.output[0]
    output.ClearField("type")
    if told:
        output.type.tensor_type.elem_type = TensorProto.FLOAT
    (result,) = uir_tvm.compile(whole).info.outputs
    assert (tuple(result.shape), str(result.dtype)) == ((4,), "float32")
    output.type.tensor_type.elem_type = TensorProto.UNDEFINED
    with pytest.raises(ModelFormatError, match="required but missing"):
        from_onnx(whole)
