# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements, on every target: nothing in, nothing out, and what remains of operators."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import tvm
import uir_tvm
from onnx import TensorProto, helper
from tvm import relax, te
from uir_tvm.target.registry import TARGETS

op = relax.op


def some_empty() -> tvm.IRModule:
    """Operators on empty tensors; the last four results have elements."""
    builder = relax.BlockBuilder()
    none = relax.Var("none", relax.TensorType((3, 0), "float32"))
    full = relax.Var("full", relax.TensorType((3, 4), "float32"))
    at = relax.Var("at", relax.TensorType((0, 4), "int64"))
    with builder.function("main", [none, full, at]):
        with builder.dataflow():
            empty = builder.emit(op.exp(none))
            both = builder.emit(op.topk(op.strided_slice(full, [0], [1], [1]), 2))
            results = [
                empty,
                builder.emit(op.matmul(op.permute_dims(full), none)),
                builder.emit(op.strided_slice(full, [0], [1], [1])),
                builder.emit(relax.TupleGetItem(both, 1)),
                builder.emit(op.sum(empty, axis=1)),
                builder.emit(op.exp(op.concat([full, empty], 1))),
                builder.emit(
                    op.add(op.matmul(none, op.permute_dims(none)), op.full((3, 3), relax.const(2.0)))
                ),
                builder.emit(op.scatter_elements(full, at, op.zeros((0, 4), "float32"))),
            ]
            output = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(output)
    return builder.get()


@pytest.mark.parametrize("target", TARGETS)
def test_operators_on_nothing(target: str) -> None:
    program = uir_tvm.compile(some_empty(), target)
    full = np.arange(12, dtype="float32").reshape(3, 4)
    got = program(np.zeros((3, 0), "float32"), full, np.zeros((0, 4), "int64"))
    assert [array.shape for array in got[:4]] == [(3, 0), (4, 0), (0, 4), (0, 2)]
    assert got[3].dtype == np.int32
    np.testing.assert_array_equal(got[4], np.zeros(3))
    np.testing.assert_allclose(got[5], np.exp(full), rtol=1e-6)
    np.testing.assert_array_equal(got[6], np.full((3, 3), 2.0))
    np.testing.assert_array_equal(got[7], full)


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_of_nothing_is_not_called(target: str) -> None:
    given = te.placeholder((0, 4), name="given")
    func = te.create_prim_func([given, te.compute((0, 4), lambda i, j: given[i, j] + 1.0, name="more")])
    program = uir_tvm.compile(func, target)
    assert program.info.kernels == ()
    assert program(np.zeros((0, 4), "float32")).shape == (0, 4)


def test_saved_and_loaded(tmp_path) -> None:
    uir_tvm.compile(some_empty(), "uir-cpu").save(tmp_path / "model")
    got = uir_tvm.load(tmp_path / "model")(
        np.zeros((3, 0), "float32"), np.ones((3, 4), "float32"), np.zeros((0, 4), "int64")
    )
    assert got[0].shape == (3, 0) and got[4].shape == (3,)


def test_through_onnx() -> None:
    """A written zero is a size, not an open dimension."""
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["y"])],
        "empty",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (0, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (0, 4))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    assert uir_tvm.compile(model)(np.zeros((0, 4), "float32")).shape == (0, 4)
