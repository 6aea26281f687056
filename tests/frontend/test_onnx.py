# SPDX-License-Identifier: Apache-2.0
"""from_onnx: shape arithmetic, rewritten operators, local functions, fixed symbols, and bad files."""

from __future__ import annotations

import contextlib
import io
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator
from uir_tvm.errors import (
    FrontendError,
    ModelFormatError,
    ShapeError,
    UnsupportedOperatorError,
    ValueNeededError,
)
from uir_tvm.frontend import from_onnx
from uir_tvm.frontend.onnx import walk

from tests.frontend.stock import assert_close, operators, run

RANDOM = np.random.default_rng(7)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int | str, ...]],
    constants: dict[str, np.ndarray] | None = None,
    output: str = "y",
    domains: dict[str, int] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
) -> onnx.ModelProto:
    """A model of fp32 inputs and one output of open type."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in {"": 18, **(domains or {})}.items()]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions or [])
    with contextlib.suppress(shape_inference.InferenceError):  # where the operators make no sense
        proto = shape_inference.infer_shapes(proto, data_prop=True)
    if not proto.graph.output[0].type.tensor_type.HasField("shape"):
        proto.graph.output[0].type.tensor_type.shape.dim.add().dim_param = "n"
    return proto


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def floats(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


CASES: dict[str, tuple[onnx.ModelProto, dict[str, int]]] = {
    "shape arithmetic": (
        model(
            [
                helper.make_node("Shape", ["x"], ["shape"]),
                helper.make_node("Gather", ["shape", "zero"], ["rows"]),
                helper.make_node("Concat", ["rows", "minus"], ["target"], axis=0),
                helper.make_node("Reshape", ["x", "target"], ["y"]),
            ],
            {"x": (2, 3, 4)},
            {"zero": ints(0), "minus": ints(-1)},
        ),
        {"reshape": 1},
    ),
    "constant of shape": (
        model(
            [
                helper.make_node("Shape", ["x"], ["shape"]),
                helper.make_node(
                    "ConstantOfShape",
                    ["shape"],
                    ["twos"],
                    value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2]),
                ),
                helper.make_node("Add", ["x", "twos"], ["y"]),
            ],
            {"x": (2, 3)},
        ),
        {"add": 1},
    ),
    "clip with both bounds": (
        model(
            [helper.make_node("Clip", ["x", "low", "high"], ["y"])],
            {"x": (4, 5)},
            {"low": floats(-0.5), "high": floats(0.5)},
        ),
        {"maximum": 1, "minimum": 1},
    ),
    "clip with the upper bound": (
        model([helper.make_node("Clip", ["x", "", "high"], ["y"])], {"x": (4, 5)}, {"high": floats(0.5)}),
        {"minimum": 1},
    ),
    "clip without bounds": (
        model(
            [helper.make_node("Clip", ["x", "", ""], ["z"]), helper.make_node("Tanh", ["z"], ["y"])],
            {"x": (4,)},
        ),
        {"tanh": 1},
    ),
    "tile": (
        model([helper.make_node("Tile", ["x", "n"], ["y"])], {"x": (2, 3)}, {"n": ints(2, 3)}),
        {"reshape": 2, "broadcast_to": 1},
    ),
    "sum of three": (
        model([helper.make_node("Sum", ["a", "b", "c"], ["y"])], {"a": (2, 3), "b": (3,), "c": (1,)}),
        {"add": 2},
    ),
    "split": (
        model(
            [
                helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
                helper.make_node("Sub", ["a", "b"], ["y"]),
            ],
            {"x": (2, 6)},
        ),
        {"strided_slice": 2, "subtract": 1},
    ),
    "reciprocal of a root": (
        model(
            [
                helper.make_node("Exp", ["x"], ["e"]),
                helper.make_node("Sqrt", ["e"], ["r"]),
                helper.make_node("Reciprocal", ["r"], ["y"]),
            ],
            {"x": (3,)},
        ),
        {"exp": 1, "rsqrt": 1},
    ),
    "padding": (
        model(
            [helper.make_node("Pad", ["x", "pads", "value"], ["y"])],
            {"x": (2, 3)},
            {"pads": ints(0, 1, 1, 0), "value": floats(2)},
        ),
        {"concat": 2},
    ),
    "local function": (
        model(
            [helper.make_node("Twice", ["x"], ["y"], domain="own")],
            {"x": (3,)},
            domains={"own": 1},
            functions=[
                helper.make_function(
                    "own",
                    "Twice",
                    ["a"],
                    ["b"],
                    [helper.make_node("Add", ["a", "a"], ["b"])],
                    [helper.make_opsetid("", 18)],
                )
            ],
        ),
        {"add": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_import(name: str) -> None:
    """The numbers are those of ONNX's reference implementation, the operators are as few as expected."""
    proto, expected = CASES[name]
    feeds = {
        value.name: RANDOM.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim]).astype(
            "float32"
        )
        for value in proto.graph.input
    }
    before = proto.SerializeToString()
    mod = from_onnx(proto)
    assert proto.SerializeToString() == before, "the caller's model was changed"
    assert operators(mod) == expected
    # Exact but for rsqrt and exp, which agree to some ULP.
    assert_close(run(mod, list(feeds.values())), ReferenceEvaluator(proto).run(None, feeds), 1e-6)


ADD = model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": ("batch", 4), "b": ("batch", 4)})


def test_dynamic_dimension_names_the_input_and_the_remedy() -> None:
    with pytest.raises(ShapeError) as caught:
        from_onnx(ADD)
    assert "'a'" in caught.value.what and "batch" in caught.value.where and "shapes=" in caught.value.remedy


def test_a_symbol_fixed_for_one_input_is_fixed_for_all() -> None:
    main = from_onnx(ADD, shapes={"a": (3, 4)})["main"]
    assert [[int(n) for n in param.ty.shape.values] for param in main.params] == [[3, 4], [3, 4]]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"a": (3, 4), "b": (-2, 4)}, "does not fit input 'b'"),
        ({"a": (3, 5)}, "does not fit input 'a'"),
        ({"a": (3,)}, "does not fit input 'a'"),
        ({"c": (3, 4)}, "'c', which is no input"),
    ],
)
def test_wrong_shapes(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        from_onnx(ADD, shapes=shapes)


def sum_of(a: list[object], b: list[object], out: list[object]) -> onnx.ModelProto:
    """a + b of the declared shapes."""
    inputs = [helper.make_tensor_value_info(name, 1, dims) for name, dims in (("a", a), ("b", b))]
    output = helper.make_tensor_value_info("y", 1, out)
    node = helper.make_node("Add", ["a", "b"], ["y"])
    return helper.make_model(helper.make_graph([node], "g", inputs, [output]))


@pytest.mark.parametrize("name", ["?", "-1", "None", "unk", "n", -1])
def test_names_that_mean_nothing_are_told_apart(name: object) -> None:
    """Also a name that stands for two sizes."""
    main = from_onnx(sum_of([name, name], [name, 4], [name, -1]), shapes={"a": (1, 4), "b": (2, 4)})["main"]
    assert [int(n) for n in main.ret_ty.shape.values] == [2, 4]


def test_a_name_of_two_sizes_fixes_nothing() -> None:
    with pytest.raises(ShapeError, match="input 'b' has a dynamic") as caught:
        from_onnx(sum_of(["n", "n"], ["n", 4], ["n", 4]), shapes={"a": (1, 4)})
    assert "'n' is 1 and 4" in caught.value.where


def test_what_does_not_fit_is_one_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing but the error is said, by TVM neither."""
    with pytest.raises(FrontendError, match="not broadcastable"):
        from_onnx(sum_of(["n", 4], ["m", 4], ["n", 4]), shapes={"a": (3, 4), "b": (2, 4)})
    assert capfd.readouterr() == ("", "")


def test_missing_file() -> None:
    with pytest.raises(ModelFormatError, match="no ONNX file at '/nowhere/model.onnx'"):
        from_onnx("/nowhere/model.onnx")


@pytest.mark.parametrize("keep", [0, 7, 100, -1, -40])
def test_truncated_file(tmp_path: Path, keep: int) -> None:
    """Wherever a file is cut, the error says that the file is at fault."""
    weights = {"w": RANDOM.standard_normal((8, 8)).astype("float32")}
    data = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (2, 8)}, weights).SerializeToString()
    path = tmp_path / "cut.onnx"
    path.write_bytes(data[:keep])
    with pytest.raises(ModelFormatError, match="cut.onnx") as caught:
        from_onnx(path)
    assert caught.value.remedy


def test_text_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "readme.onnx"
    path.write_text("This is not a model.\n" * 20)
    with pytest.raises(ModelFormatError, match="readme.onnx"):
        from_onnx(path)


def test_missing_external_data(tmp_path: Path) -> None:
    weights = {"w": RANDOM.standard_normal((64, 64)).astype("float32")}
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (2, 64)}, weights)
    path = tmp_path / "model.onnx"
    onnx.save_model(proto, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert from_onnx(path)["main"]
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ModelFormatError, match=r"model.onnx.*weights.bin"):
        from_onnx(path)


def test_undefined_value_breaks_the_rules() -> None:
    proto = model([helper.make_node("Add", ["x", "ghost"], ["y"])], {"x": (2,)})
    with pytest.raises(ModelFormatError, match="rules of ONNX.*ghost"):
        from_onnx(proto)


@pytest.mark.parametrize(
    ("operator", "domain", "named"),
    [("Frobnicate", "", "Frobnicate"), ("Add", "vendor", "vendor::Add"), ("Attention", "", "Attention")],
)
def test_unknown_operator(operator: str, domain: str, named: str) -> None:
    node = helper.make_node(operator, ["x", "x"], ["y"], domain=domain, name="odd")
    with pytest.raises(UnsupportedOperatorError) as caught:
        from_onnx(model([node], {"x": (2,)}, domains={domain: 1} if domain else None))
    assert named in caught.value.what and "odd" in caught.value.where and caught.value.remedy


def test_data_dependent_shape_is_refused_with_its_reason() -> None:
    node = helper.make_node("NonZero", ["x"], ["i"])
    with pytest.raises(ValueNeededError, match="NonZero runs outside kernels: the shape"):
        from_onnx(model([node, helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT)], {"x": (2,)}))


def test_failing_import_names_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    """A contraction whose sizes clash fails inside the importer: the error is typed, nothing is printed."""
    node = helper.make_node("Einsum", ["x", "x"], ["y"], equation="ij,jk->ik")
    with pytest.raises(FrontendError, match="importer fails"):
        from_onnx(model([node], {"x": (2, 3)}))
    assert capsys.readouterr().out == ""


def test_input_names_and_bytes_of_a_file(tmp_path: Path) -> None:
    """A file and its loaded model import alike; names that no identifier can have are changed."""
    proto = model(
        [helper.make_node("Add", ["in.1", "w"], ["y"])], {"in.1": (2, 3)}, {"w": np.ones(3, "float32")}
    )
    path = tmp_path / "add.onnx"
    path.write_bytes(proto.SerializeToString())
    for source in (path, str(path), onnx.load_model(io.BytesIO(path.read_bytes()))):
        assert [param.name for param in from_onnx(source)["main"].params] == ["in_1"]


def test_other_threads_print_meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What TVM's importer prints is kept for its error; what others print is theirs."""

    def failing(*_: object) -> None:
        print("Error converting operator Erf, with inputs: x")
        other = threading.Thread(target=print, args=("a line of another thread",))
        other.start()
        other.join()
        raise ValueError("no such operator")

    monkeypatch.setattr(walk.Walk, "_stock", failing)
    with pytest.raises(FrontendError, match="importer fails: no such operator") as caught:
        from_onnx(model([helper.make_node("Erf", ["x"], ["y"], name="odd")], {"x": (2,)}))
    assert "odd = Erf" in caught.value.where and "float32[2]" in caught.value.where
    assert capsys.readouterr().out == "a line of another thread\n"
