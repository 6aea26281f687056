# SPDX-License-Identifier: Apache-2.0
"""A model whose inputs decide shapes is compiled at the call, once for each of their values."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import uir_tvm
from onnx import TensorProto, helper
from uir_tvm.errors import ArtifactError, FrontendError, ShapeError, ValueNeededError
from uir_tvm.frontend import from_onnx
from uir_tvm.runtime import specialized


def model() -> object:
    """y = ReduceSum(x, axes) with the axes as an input."""
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        "test",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 4)),
            helper.make_tensor_value_info("axes", TensorProto.INT64, (1,)),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    graph.output[0].type.tensor_type.shape.dim.add().dim_param = "n"
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def axes(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_each_value_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialized, "KEPT", 1)
    executable = uir_tvm.compile(model())
    for axis in (0, 1, 0, -1, 1):
        np.testing.assert_array_equal(executable(X, axes(axis)), X.sum(axis))
    # 0, 1, and both again, for which there was no place; -1 and 1 are one module
    report = executable.report()
    assert report["specialized_on"] == ["axes"] and report["compiled"] == 4
    assert len(report["specializations"]) == 1
    with pytest.raises(ShapeError):
        executable(X)
    with pytest.raises(ArtifactError, match="cannot be saved"):
        executable.save("model.uir")


def test_it_goes_as_soon_as_nobody_has_it() -> None:
    """Why one compilation did not do is an error, whose frames would hold all that was compiled."""
    exe = uir_tvm.compile(model(), target="uir-cpu")
    gone = weakref.ref(exe)
    gc.disable()
    try:
        del exe
        assert gone() is None
    finally:
        gc.enable()


def test_a_value_at_compile_time_makes_a_plain_executable() -> None:
    executable = uir_tvm.compile(model(), values={"axes": axes(1)})
    assert [spec.name for spec in executable.info.inputs] == ["x"]
    np.testing.assert_array_equal(executable(X), X.sum(1))


def test_the_import_asks_for_the_value() -> None:
    with pytest.raises(ValueNeededError) as caught:
        from_onnx(model())
    assert caught.value.inputs == ("axes",) and "values=" in caught.value.remedy


@pytest.mark.parametrize("value", [axes(5), axes(0, 1), np.array([0], np.int32)])
def test_wrong_values(value: np.ndarray) -> None:
    with pytest.raises((FrontendError, ShapeError)):
        uir_tvm.compile(model(), values={"axes": value})
