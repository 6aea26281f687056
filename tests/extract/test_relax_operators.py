# SPDX-License-Identifier: Apache-2.0
"""Operators as Relax legalises them, unscheduled, give what TVM's own lowering gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm import relax, tirx
from tvm.relax import op

from .compare import check

F32 = "float32"
_Shapes = list[tuple[tuple[int, ...], str]]

#: name -> (the operator on its operands, shapes and dtypes of the operands)
OPERATORS: dict[str, tuple[Callable[..., Any], _Shapes]] = {
    "softmax": (lambda x: op.nn.softmax(x, -1), [((4, 6, 20), F32)]),
    "log_softmax": (lambda x: op.nn.log_softmax(x, -1), [((4, 6, 20), F32)]),
    "softmax_ax1": (lambda x: op.nn.softmax(x, 1), [((4, 6, 20), F32)]),
    "layer_norm": (
        lambda x, g, b: op.nn.layer_norm(x, g, b, axes=[-1]),
        [((4, 6, 20), F32), ((20,), F32), ((20,), F32)],
    ),
    "rms_norm": (lambda x, g: op.nn.rms_norm(x, g, axes=[-1]), [((4, 6, 20), F32), ((20,), F32)]),
    "group_norm": (
        lambda x, g, b: op.nn.group_norm(x, g, b, num_groups=2, channel_axis=1, axes=[2, 3]),
        [((2, 4, 5, 6), F32), ((4,), F32), ((4,), F32)],
    ),
    "gelu": (lambda x: op.nn.gelu(x), [((4, 6, 20), F32)]),
    "gelu_tanh": (lambda x: op.nn.gelu_tanh(x), [((4, 6, 20), F32)]),
    "silu": (lambda x: op.nn.silu(x), [((4, 6, 20), F32)]),
    "leakyrelu": (lambda x: op.nn.leakyrelu(x, 0.1), [((4, 6, 20), F32)]),
    "add_bcast": (lambda x, y: op.add(x, y), [((4, 6, 20), F32), ((6, 1), F32)]),
    "take0": (lambda x, i: op.take(x, i, axis=0), [((5, 20), F32), ((2, 7), "int64")]),
    "take1": (lambda x, i: op.take(x, i, axis=1), [((3, 5, 8), F32), ((7,), "int32")]),
    "concat1": (lambda x, y: op.concat([x, y], axis=1), [((4, 6, 20), F32), ((4, 3, 20), F32)]),
    "concat-1": (
        lambda x, y, z: op.concat([x, y, z], axis=-1),
        [((4, 6, 20), F32), ((4, 6, 3), F32), ((4, 6, 8), F32)],
    ),
    "split": (lambda x: op.split(x, 3, axis=-1), [((4, 6, 21), F32)]),
    "mean": (lambda x: op.mean(x, -1), [((4, 6, 20), F32)]),
    "sum02": (lambda x: op.sum(x, [0, 2], keepdims=True), [((4, 6, 20), F32)]),
    "max": (lambda x: op.max(x, 1), [((4, 6, 20), F32)]),
    "variance": (lambda x: op.variance(x, -1), [((4, 6, 20), F32)]),
    "prod": (lambda x: op.prod(x, -1), [((4, 6, 20), F32)]),
    "strided": (lambda x: op.strided_slice(x, [1, 2], [1, 3], [6, 20], [2, 3]), [((4, 6, 20), F32)]),
    "where": (lambda c, x, y: op.where(c, x, y), [((4, 1, 20), "bool"), ((4, 6, 20), F32), ((1,), F32)]),
    "tril": (lambda x: op.tril(x), [((2, 6, 9), F32)]),
    "batch_norm": (
        lambda x, g, b, m, v: op.nn.batch_norm(x, g, b, m, v, axis=1, training=False),
        [((2, 4, 5, 6), F32), ((4,), F32), ((4,), F32), ((4,), F32), ((4,), F32)],
    ),
    "avg_pool": (lambda x: op.nn.avg_pool2d(x, (3, 3), (2, 2), (1, 1, 1, 1)), [((2, 4, 9, 9), F32)]),
    "adaptive_avg": (lambda x: op.nn.adaptive_avg_pool2d(x, (1, 1)), [((2, 4, 7, 7), F32)]),
    "adaptive_avg3": (lambda x: op.nn.adaptive_avg_pool2d(x, (3, 3)), [((2, 4, 7, 7), F32)]),
    "max_pool": (lambda x: op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1, 1, 1)), [((2, 4, 9, 9), F32)]),
    "conv2d": (
        lambda x, w: op.nn.conv2d(x, w, (2, 2), (1, 1, 1, 1)),
        [((2, 3, 9, 9), F32), ((4, 3, 3, 3), F32)],
    ),
    "matmul": (lambda x, w: op.matmul(x, w), [((2, 5, 7), F32), ((7, 6), F32)]),
    "argmax": (lambda x: op.argmax(x, -1), [((4, 6, 20), F32)]),
    "transpose": (lambda x: op.permute_dims(x, [0, 2, 1, 3]), [((2, 3, 5, 8), F32)]),
    "reshape": (lambda x: op.reshape(x, (2, 15, 8)), [((2, 3, 5, 8), F32)]),
    "flatten": (lambda x: op.flatten(x), [((2, 3, 5, 8), F32)]),
    "expand": (lambda x: op.broadcast_to(x, (4, 6, 20)), [((6, 1), F32)]),
    "astype": (lambda x: op.astype(x, "float16"), [((4, 6, 20), F32)]),
    "astype_b": (lambda x: op.astype(x, "float32"), [((4, 6, 20), "bool")]),
    "eq": (lambda x, y: op.equal(x, y), [((4, 6), "int64"), ((6,), "int64")]),
    "land": (lambda x, y: op.logical_and(x, y), [((4, 6), "bool"), ((6,), "bool")]),
    "lnot": (lambda x: op.logical_not(x), [((4, 6), "bool")]),
    "arange": (lambda x: op.add(op.arange(0, 6, 1, "int64"), x), [((4, 6), "int64")]),
    "pad": (lambda x: op.nn.pad(x, [0, 0, 1, 2, 2, 1], "constant", 1.5), [((2, 5, 6), F32)]),
    "pad_reflect": (lambda x: op.nn.pad(x, [0, 0, 1, 2, 2, 1], "reflect"), [((2, 5, 6), F32)]),
    "repeat": (lambda x: op.repeat(x, 3, 1), [((2, 5, 6), F32)]),
    "tile": (lambda x: op.tile(x, (1, 2, 3)), [((2, 5, 6), F32)]),
    "flip": (lambda x: op.flip(x, 1), [((2, 5, 6), F32)]),
    "clip": (lambda x: op.clip(x, -1, 1), [((2, 5, 6), F32)]),
    "gather_el": (lambda x, i: op.gather_elements(x, i, 1), [((4, 5), F32), ((4, 3), "int64")]),
    "gather_nd": (lambda x, i: op.gather_nd(x, i), [((5, 5, 8), F32), ((3, 2), "int64")]),
    "scatter_el": (
        lambda x, i, u: op.scatter_elements(x, i, u, 1),
        [((4, 5), F32), ((4, 3), "int64"), ((4, 3), F32)],
    ),
    "scatter_nd": (lambda x, i, u: op.scatter_nd(x, i, u), [((5, 8), F32), ((3, 1), "int64"), ((3, 8), F32)]),
    "resize_nn": (lambda x: op.image.resize2d(x, (8, 10), method="nearest_neighbor"), [((1, 2, 4, 5), F32)]),
    "resize_lin": (lambda x: op.image.resize2d(x, (8, 10), method="linear"), [((1, 2, 4, 5), F32)]),
    "attention": (
        lambda q, k, v: op.nn.attention(q, k, v),
        [((1, 4, 2, 8), F32), ((1, 4, 2, 8), F32), ((1, 4, 2, 8), F32)],
    ),
    "round": (lambda x: op.round(x), [((4, 6), F32)]),
    "sign": (lambda x: op.sign(x), [((4, 6), F32)]),
    "floor_div": (lambda x: op.floor_divide(x, relax.const(3, "int32")), [((4, 6), "int32")]),
    "mod": (lambda x: op.mod(x, relax.const(3, "int32")), [((4, 6), "int32")]),
    "isnan": (lambda x: op.isnan(x), [((4, 6), F32)]),
    "cross": (lambda x, t: op.nn.cross_entropy_with_logits(x, t), [((4, 6), F32), ((4, 6), F32)]),
    "conv_t": (
        lambda x, w: op.nn.conv2d_transpose(x, w, (2, 2), (1, 1, 1, 1)),
        [((1, 3, 5, 5), F32), ((3, 4, 3, 3), F32)],
    ),
}


def legalised(build: Callable[..., Any], shapes: _Shapes) -> dict[str, Any]:
    """The PrimFuncs of one operator, by name."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"p{k}", relax.TensorType(shape, dtype)) for k, (shape, dtype) in enumerate(shapes)]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(build(*params)))
        builder.emit_func_output(result)
    module = relax.transform.LegalizeOps()(builder.get())
    return {v.name_hint: f for v, f in module.functions_items() if isinstance(f, tirx.PrimFunc)}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name: str) -> None:
    """Extracted, verified, interpreted: equal to TVM's lowering."""
    functions = legalised(*OPERATORS[name])
    assert functions
    for func in functions.values():
        check(func)
