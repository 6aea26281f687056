# SPDX-License-Identifier: Apache-2.0
"""The NumPy meanings agree with what TVM computes for the same calls on variables."""

from __future__ import annotations

import inspect

import ml_dtypes
import numpy as np
import tvm
from tvm import relax
from tvm.relax import op
from uir_tvm.frontend.fold import MEANINGS, fold

from tests.frontend.stock import run

RANDOM = np.random.default_rng(5)
FLOATS = RANDOM.uniform(0.5, 3, (3, 4)).astype("float32")
SIGNED = RANDOM.integers(-9, 9, (3, 4)).astype("int64")
DIVISOR = np.array([[2, -3, 5, -7]], dtype="int64")
FLAGS = SIGNED > 0
ROW = np.array([2, 0, 1, 1], dtype="int64")


def const(array: np.ndarray) -> tvm.ir.Expr:
    return relax.const(array, str(array.dtype))


# Operands for every operator that takes tensors elementwise; the others are written out below.
OPERANDS: dict[str, tuple[np.ndarray, ...]] = {
    **dict.fromkeys(("logical_not", "bitwise_not"), (FLAGS,)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (FLAGS, FLAGS[:, ::-1].copy())),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (SIGNED, DIVISOR)),
    **dict.fromkeys(("floor_divide", "floor_mod", "divide"), (SIGNED, DIVISOR)),
    "where": (FLAGS, FLOATS, -FLOATS),
}
CALLS = {
    "arange": lambda x: op.arange(3, 12, 2, "int64"),
    "astype": lambda x: op.astype(x, "int32"),
    "broadcast_to": lambda x: op.broadcast_to(x, (2, 3, 4)),
    "concat": lambda x: op.concat([x, x], axis=1),
    "cumsum": lambda x: op.cumsum(x, 1),
    "expand_dims": lambda x: op.expand_dims(x, [1]),
    "flip": lambda x: op.flip(x, 1),
    "full": lambda x: op.full((2, 3), relax.const(7.5)),
    "full_like": lambda x: op.full_like(x, relax.const(7.5)),
    "gather_elements": lambda x: op.gather_elements(x, const(ROW[None, :3].repeat(3, 0)), 1),
    "gather_nd": lambda x: op.gather_nd(x, const(np.array([[2, 3], [0, 1]], dtype="int64"))),
    "index_tensor": lambda x: op.index_tensor(x, [const(ROW[:3]), const(ROW[1:])]),
    "max": lambda x: op.max(x, 0),
    "min": lambda x: op.min(x, [0, 1], keepdims=True),
    "nn.pad": lambda x: op.nn.pad(x, [0, 1, 2, 0], pad_value=0.5),
    "ones": lambda x: op.ones((2, 3), "float32"),
    "ones_like": op.ones_like,
    "permute_dims": lambda x: op.permute_dims(x, [1, 0]),
    "prod": lambda x: op.prod(x, -1),
    "reshape": lambda x: op.reshape(x, (2, 6)),
    "shape_to_tensor": lambda x: op.shape_to_tensor(relax.ShapeExpr([3, 4])),
    "squeeze": lambda x: op.squeeze(x),
    "strided_slice": lambda x: op.strided_slice(x, [1], [-1], [-9], [-2]),
    "sum": lambda x: op.sum(x, 1),
    "take": lambda x: op.take(x, const(ROW[:3]), axis=0),
    "tril": lambda x: op.tril(x, 1),
    "triu": lambda x: op.triu(x, -1),
    "zeros": lambda x: op.zeros((2, 3), "float32"),
    "zeros_like": op.zeros_like,
}


def operands(name: str) -> tuple[np.ndarray, ...]:
    """Arrays for an elementwise operator, as many as it takes."""
    if name in OPERANDS:
        return OPERANDS[name]
    tensors = [p for p in inspect.signature(getattr(op, name)).parameters.values() if p.default is p.empty]
    return (FLOATS, FLOATS[:1, ::-1].copy())[: len(tensors)]


def test_every_meaning_agrees_with_tvm() -> None:
    """One module computes all operators on variables; folding computes them on the same constants.

    fp32 functions of NumPy and of TVM's LLVM lowering differ by some ULP; everything else is exact.
    """
    builder = relax.BlockBuilder()
    params: list[relax.Var] = []
    feeds: list[np.ndarray] = []

    def parameter(array: np.ndarray) -> relax.Var:
        params.append(relax.Var(f"p{len(params)}", relax.TensorType(array.shape, str(array.dtype))))
        feeds.append(array)
        return params[-1]

    calls, folded = [], []
    for name in sorted(MEANINGS):
        if name in CALLS:
            arrays: tuple[np.ndarray, ...] = (FLOATS,)
            make = CALLS[name]
        else:
            arrays, make = operands(name), getattr(op, name)
        calls.append(make(*[parameter(array) for array in arrays]))
        constant = fold(relax.BlockBuilder().normalize(make(*[const(array) for array in arrays])))
        assert constant is not None, f"{name} does not fold"
        folded.append(constant.value.numpy())
    with builder.function("main", params):
        output = builder.emit_func_output(relax.Tuple([builder.emit(call) for call in calls]))
    del output
    for name, have, want in zip(sorted(MEANINGS), folded, run(builder.get(), feeds), strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype), name
        np.testing.assert_allclose(have, want, rtol=2e-6, atol=1e-7, err_msg=name)


def test_low_precision_is_left_alone() -> None:
    """NumPy has no arithmetic of its own for bfloat16."""
    x = relax.const(np.ones(3, "float32"))
    cast = relax.BlockBuilder().normalize(op.astype(x, "bfloat16"))
    assert fold(cast) is None


def test_index_outside_is_left_alone() -> None:
    call = op.take(const(FLOATS), const(np.array([7], dtype="int64")), axis=0)
    assert fold(relax.BlockBuilder().normalize(call)) is None


def test_a_range_of_narrow_floats_is_rounded_once() -> None:
    """TVM makes a tensor of it when it lowers the operator, which no kernel holds."""
    found = fold(relax.BlockBuilder().normalize(op.arange(0, 300, 7, "bfloat16")))
    assert found is not None and str(found.ty.dtype) == "bfloat16"
    np.testing.assert_array_equal(
        found.value.numpy().astype("float32"),
        np.arange(0, 300, 7).astype(ml_dtypes.bfloat16).astype("float32"),
    )
