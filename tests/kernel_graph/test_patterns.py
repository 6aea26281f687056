# SPDX-License-Identifier: Apache-2.0
"""Functions written out operator by operator, recognised and still the same function."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax
from uir_tvm.kernel_graph import build

from .programs import arguments, check, constant, kinds, module, number, only, run_graph

op = relax.op
F32 = "float32"


def test_gelu_written_out_is_recognised() -> None:
    """The tanh form as GPT-2 spells it out, operator by operator."""

    def body(emit, x):
        y = emit(op.matmul(x, constant(8, 12)))
        cubed = emit(op.multiply(emit(op.multiply(y, y)), y))
        inner = emit(op.add(y, emit(op.multiply(cubed, number(0.044715)))))
        tanh = emit(op.tanh(emit(op.multiply(inner, number(0.7978845608)))))
        return emit(op.multiply(emit(op.multiply(y, number(0.5))), emit(op.add(tanh, number(1.0)))))

    assert only(check({"x": ((3, 8), "float32")}, body)).activation == "gelu_tanh"


def test_functions_are_recognised_by_constants_as_their_type_rounds_them() -> None:
    """In half, 0.044715 is 0.044708: still the tanh form of GELU."""

    def half(value: float) -> relax.Expr:
        return relax.const(np.float16(value))

    def body(emit, x):
        cubed = emit(op.multiply(emit(op.multiply(x, x)), x))
        inner = emit(op.add(x, emit(op.multiply(cubed, half(0.044715)))))
        tanh = emit(op.tanh(emit(op.multiply(inner, half(0.7978845608)))))
        return emit(op.multiply(emit(op.multiply(x, half(0.5))), emit(op.add(tanh, half(1.0)))))

    graph = build(module({"x": ((3, 8), "float16")}, body))
    assert [node.ops for node in graph.nodes] == [("nn.gelu_tanh",)]


@pytest.mark.parametrize("form", ["flags", "maximum"])
def test_safe_softmax_gives_zeros_for_a_closed_row(form: str) -> None:
    """What export writes around attention becomes one softmax; a fully masked row gives zeros, not NaN."""

    def body(emit, x, flags, v):
        mask = emit(op.where(flags, number(0.0), number(-np.inf)))
        attended = emit(op.matmul(emit(op.nn.softmax(emit(op.add(x, mask)))), v))
        if form == "flags":
            ones = emit(op.where(flags, number(1.0), number(0.0)))
            rows = emit(op.greater(emit(op.max(ones, axis=[-1], keepdims=True)), number(0.0)))
        else:
            rows = emit(op.greater(emit(op.max(mask, axis=[-1], keepdims=True)), number(-np.inf)))
        return emit(op.where(rows, attended, number(0.0)))

    inputs = {"x": ((2, 3, 4, 4), F32), "flags": ((2, 1, 1, 4), "bool"), "v": ((2, 3, 4, 5), F32)}
    x, _, v = arguments(inputs)
    flags = np.array([[1, 1, 0, 1], [0, 0, 0, 0]], bool).reshape(2, 1, 1, 4)
    graph = build(module(inputs, body))
    (actual,) = run_graph(graph, [x, flags, v])
    weights = np.where(flags, np.exp(x.astype("float64")), 0)
    total = weights.sum(-1, keepdims=True)
    expected = (weights / np.where(total == 0, 1, total)) @ v
    np.testing.assert_allclose(actual, expected, atol=2e-6)
    assert "uir.safe_softmax" in {name for node in graph.custom_ops for name in node.ops}
    assert kinds(graph).count("matmul") == 1
    assert len(graph.custom_ops) <= 2
