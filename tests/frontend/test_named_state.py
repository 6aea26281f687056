# SPDX-License-Identifier: Apache-2.0
"""Inputs of ONNX and Relax models that the caller names as state."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import tvm
import uir_tvm
from onnx import TensorProto, helper
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T
from uir_tvm.errors import ArtifactError, FrontendError, PositionError, ShapeError

LENGTH = 6
TARGETS = ("uir-cpu", "uir-cuda", "uir-ascend", "uir-bang")
NAMES = {"past_key_values.0.key": "present.0.key", "past_key_values.0.value": "present.0.value"}


def decoder(length: int | str = LENGTH) -> onnx.ModelProto:
    """Keys and values of two heads: rows of the past at places that are an input, and their products."""

    def tensor(name: str, shape: list[Any], kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    cache, row = [1, 2, length, 3], [1, 2, 1, 3]
    nodes = [
        helper.make_node("Expand", ["place", "row"], ["places"]),
        *(
            helper.make_node("ScatterElements", [past, "places", "x"], [present], axis=2)
            for past, present in NAMES.items()
        ),
        helper.make_node("Mul", ["present.0.key", "present.0.value"], ["product"]),
        helper.make_node("ReduceSum", ["product", "axes"], ["y"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "decoder",
        [
            tensor("x", row),
            tensor("place", [1, 1, 1, 1], TensorProto.INT64),
            *(tensor(n, cache) for n in NAMES),
        ],
        [*(tensor(name, cache) for name in NAMES.values()), tensor("y", [1, 2, 3])],
        [
            helper.make_tensor("row", TensorProto.INT64, [4], row),
            helper.make_tensor("axes", TensorProto.INT64, [1], [2]),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize(("state", "target"), [(True, "uir-cpu"), *((NAMES, each) for each in TARGETS)])
def test_past_and_present_are_state(state: Any, target: str) -> None:
    exe = uir_tvm.compile(decoder(), target, state=state)
    assert not any(kernel.fallback for kernel in exe.info.kernels)
    assert [spec.name for spec in exe.info.inputs] == ["x", "place"] and len(exe.info.outputs) == 1
    expected = np.zeros((1, 2, LENGTH, 3), "float32")
    for place in (0, 3, 3, -1):
        x = np.full((1, 2, 1, 3), place + 1.5, "float32")
        expected[:, :, place] = x[:, :, 0]
        np.testing.assert_allclose(exe(x, np.full((1, 1, 1, 1), place)), (expected**2).sum(2), rtol=1e-6)
    assert {spec.name: (spec.how, spec.written) for spec in exe.info.state} == dict.fromkeys(
        (name.replace(".", "_") if state is True else name for name in NAMES), ("in place", 24)
    )
    with pytest.raises(PositionError):
        exe(x, np.full((1, 1, 1, 1), LENGTH))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"past": "present.0.key"}, "no input 'past'"),
        ({"x": "present"}, "no result 'present'"),
        ({"x": "present.0.key"}, "no next value"),
        ({"x": None}, "no kernel updates"),
        (dict.fromkeys(NAMES, "present.0.key"), "of two inputs"),
    ],
)
def test_names_that_are_none_are_refused(state: Any, message: str) -> None:
    found = uir_tvm.supports(decoder(), state=state)
    assert not found and isinstance(found.error, FrontendError) and message in found.error.what


def growing() -> onnx.ModelProto:
    """A decoder as exporters write it: its present is the past with the new rows behind it."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[b, n, 3] x, float[b, past, 3] past_0) => (float[b, n, 3] y, float[b, all, 3] present_0) {
        present_0 = Concat<axis=1>(past_0, x)
        turned = Transpose<perm=[0, 2, 1]>(present_0)
        scores = MatMul(x, turned)
        weights = Softmax<axis=-1>(scores)
        y = MatMul(weights, present_0)
    }"""
    return onnx.parser.parse_model(text)


def test_a_past_that_grows_is_handed_over() -> None:
    exe = uir_tvm.compile(growing(), state=True)
    assert [spec.name for spec in exe.info.inputs] == ["x"]
    rng, seen = np.random.default_rng(0), np.zeros((2, 0, 3), "float32")
    for count in (3, 1, 1, 1):
        x = rng.standard_normal((2, count, 3)).astype("float32")
        seen = np.concatenate([seen, x], 1)
        scores = np.exp(x @ seen.transpose(0, 2, 1))
        want = scores / scores.sum(-1, keepdims=True) @ seen
        np.testing.assert_allclose(exe(x), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(exe.state["past_0"], seen)
    other = exe.clone()
    with pytest.raises(ShapeError):
        exe(x[:, :, :2])
    exe.reset()
    assert exe.state["past_0"].shape == (0, 0, 3) and other.state["past_0"].shape == (2, 6, 3)
    np.testing.assert_allclose(exe(x), x, rtol=1e-5)
    assert [row["how"] for row in exe.report()["state"]] == ["grows"]
    exe.state["past_0"] = seen
    np.testing.assert_array_equal(exe(x), other(x))
    with pytest.raises(ShapeError, match="cannot be set"):
        exe.state["past_0"] = seen[0]
    with pytest.raises(ArtifactError, match="grows its state"):
        exe.save("model.uir")
    with pytest.raises(FrontendError, match="no result 'later'"):
        uir_tvm.compile(growing(), state={"past_0": "later"})


def test_open_sizes_may_be_fixed() -> None:
    assert uir_tvm.supports(decoder("past"), state=True, sizes={"past": 4}).state[0].shape == (1, 2, 4, 3)


@I.ir_module(s_tir=True)
class Updating:
    """A kernel that updates a parameter of main."""

    @T.prim_func(private=True, s_tir=True)
    def count(x: T.Buffer((4,), "float32"), c: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("count"):
                v = T.axis.spatial(4, i)
                c[v] = c[v] + x[v]

    @R.function
    def main(c: R.Tensor((4,), "float32"), x: R.Tensor((4,), "float32")):
        cls = Updating
        with R.dataflow():
            made = R.call_tir_inplace(
                cls.count, (x, c), out_ty=R.Tensor((4,), "float32"), inplace_indices=[1]
            )
            y = R.multiply(made, R.const(2, "float32"))
            R.output(y)
        return y


@pytest.mark.parametrize("target", TARGETS)
def test_arguments_that_kernels_of_relax_update_are_state(target: str) -> None:
    exe = uir_tvm.compile(Updating, target, state={"c": None})
    assert not any(kernel.fallback for kernel in exe.info.kernels)
    x = np.arange(4, dtype="float32")
    for calls in (1, 2, 3):
        np.testing.assert_array_equal(exe(x), 2 * calls * x)
    np.testing.assert_array_equal(exe.state["c"], 3 * x)
    exe.reset()
    np.testing.assert_array_equal(exe(x), 2 * x)


@pytest.mark.parametrize("target", TARGETS)
def test_results_of_relax_are_state_by_number(target: str) -> None:
    builder = tvm.relax.BlockBuilder()
    x, h = (tvm.relax.Var(name, tvm.relax.TensorType([3], "float32")) for name in "xh")
    with builder.function("main", [x, h]):
        with builder.dataflow():
            new = builder.emit(tvm.relax.op.add(tvm.relax.op.multiply(h, tvm.relax.const(0.5)), x))
            results = [builder.emit_output(new), builder.emit_output(tvm.relax.op.exp(new))]
        builder.emit_func_output(tvm.relax.Tuple(results))
    exe = uir_tvm.compile(builder.get(), target, state={"h": 0})
    assert not any(kernel.fallback for kernel in exe.info.kernels)
    h_now, given = np.zeros(3, "float32"), np.arange(3, dtype="float32")
    for _ in range(3):
        h_now = h_now * 0.5 + given
        np.testing.assert_allclose(exe(given), np.exp(h_now), rtol=1e-6)
    np.testing.assert_allclose(exe.state["h"], h_now, rtol=1e-6)
