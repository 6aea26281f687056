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
from uir_tvm.errors import ShapeError
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


def single(operator, *types: relax.TensorType) -> tvm.IRModule:
    """One operator of Relax on inputs of these types."""
    builder = relax.BlockBuilder()
    given = [relax.Var(f"x{place}", type_) for place, type_ in enumerate(types)]
    with builder.function("main", given):
        with builder.dataflow():
            output = builder.emit_output(operator(*given))
        builder.emit_func_output(output)
    return builder.get()


NONE, IMAGE = relax.TensorType((0, 6), "float32"), relax.TensorType((2, 3, 0, 4), "float32")
WEIGHTS, PLACES = relax.TensorType((5, 3, 3, 3), "float32"), relax.TensorType((3,), "int64")


@pytest.mark.parametrize(
    ("operator", "types", "want"),
    [
        (lambda x: op.sum(x, 0), (NONE,), np.zeros(6)),
        (lambda x: op.mean(x, 0), (NONE,), np.full(6, np.nan)),
        (lambda x: op.variance(x, 0), (NONE,), np.full(6, np.nan)),
        (lambda x: op.max(x, 0), (NONE,), np.full(6, -np.inf)),
        (lambda x, y: op.einsum([x, y], "ni,nj->ij"), (NONE, NONE), np.zeros((6, 6))),
        (lambda x, w: op.nn.conv2d(x, w, padding=2), (IMAGE, WEIGHTS), np.zeros((2, 5, 2, 6))),
    ],
    ids=["sum", "mean", "variance", "max", "einsum", "conv2d"],
)
def test_what_is_computed_of_nothing(operator, types, want) -> None:
    given = [np.ones([int(size) for size in type_.shape], "float32") for type_ in types]
    np.testing.assert_array_equal(uir_tvm.compile(single(operator, *types))(*given), want)


@pytest.mark.parametrize(
    ("operator", "types"),
    [
        (lambda x: op.argmax(x, 0), (NONE,)),
        (lambda x, places: op.take(x, places, 0), (NONE, PLACES)),
        (lambda x: op.nn.max_pool2d(x, (2, 2), padding=1), (IMAGE,)),
        (lambda x: op.image.resize2d(x, (4, 4), layout="NCHW"), (IMAGE,)),
    ],
    ids=["argmax", "take", "max_pool2d", "resize2d"],
)
def test_an_element_of_nothing_is_refused(operator, types) -> None:
    with pytest.raises(ShapeError, match="has no result"):
        uir_tvm.compile(single(operator, *types))


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_that_sums_nothing(target: str) -> None:
    """What a reduction begins with is its result, also where TVM's own lowering takes the kernel."""
    x, axis = te.placeholder((0, 6), name="x"), te.reduce_axis((0, 0), name="r")
    total = te.compute((6,), lambda j: te.sum(x[axis, j], axis=axis), "total")
    program = uir_tvm.compile(te.create_prim_func([x, total]), target)
    given = [np.full(each.shape, 7, each.dtype) for each in program.info.inputs]
    np.testing.assert_array_equal(program(*given), np.zeros(6))
