# SPDX-License-Identifier: Apache-2.0
"""ONNX's reductions over nothing that the standard leaves open: a number, not what NumPy happens to have."""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from onnx import TensorProto, helper, numpy_helper

TYPES = {"int64": TensorProto.INT64, "uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT}


def _mean(rows: int | str, dtype: str, found: bool = False) -> uir_tvm.Executable:
    """The mean of rows: of as many as there are, or of those that a mask keeps."""
    inputs = [helper.make_tensor_value_info("x", TYPES[dtype], [rows, 3])]
    nodes = [helper.make_node("ReduceMean", ["kept" if found else "x", "axis"], ["mean"], keepdims=0)]
    if found:
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, [rows]))
        nodes.insert(0, helper.make_node("Compress", ["x", "mask"], ["kept"], axis=0))
    result = helper.make_tensor_value_info("mean", TYPES[dtype], [3])
    axis = numpy_helper.from_array(np.array([0]), "axis")
    graph = helper.make_graph(nodes, "mean", inputs, [result], [axis])
    return uir_tvm.compile(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    )


@pytest.mark.parametrize(("dtype", "mean"), [("int64", 0), ("uint8", 0), ("float32", np.nan)])
def test_the_mean_of_nothing(dtype: str, mean: float) -> None:
    """0 of integers, as ONNX Runtime has it, whose least number a NaN is as a whole one."""
    x = np.arange(18).reshape(6, 3).astype(dtype)
    want = np.full(3, mean, dtype)
    np.testing.assert_array_equal(_mean(0, dtype)(x[:0]), want)
    some = _mean("n", dtype)
    np.testing.assert_array_equal(some(x[:0]), want)
    np.testing.assert_array_equal(some(x[:3]), x[1])


def test_the_mean_of_nothing_that_is_found() -> None:
    x = np.arange(18).reshape(6, 3)
    exe = _mean(6, "int64", found=True)
    np.testing.assert_array_equal(exe(x, np.arange(6) < 3), x[1])
    np.testing.assert_array_equal(exe(x, np.arange(6) < 0), np.zeros(3, np.int64))
