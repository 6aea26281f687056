# SPDX-License-Identifier: Apache-2.0
"""Functions written out operator by operator, recognised and still the same function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tvm import relax
from uir_tvm.kernel_graph import build

from .programs import check, constant, module, number, only, run_graph

op = relax.op
F32 = "float32"
f = np.float32


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


def gelu_by_tanh(
    emit: Any,
    x: Any,
    dtype: str = F32,
    half: float = 0.5,
    one: float = 1.0,
    cubic: float = 0.044715,
    root: float = math.sqrt(2 / math.pi),
    other: Any = None,
) -> Any:
    """0.5 * x * (1 + tanh(root * (x + cubic * x^3))); ``other`` in one place of x."""

    def const(value: float) -> relax.Expr:
        return relax.const(value, dtype)

    cubed = emit(op.multiply(emit(op.multiply(x, x)), x if other is None else other))
    inner = emit(op.add(x, emit(op.multiply(cubed, const(cubic)))))
    tanh = emit(op.tanh(emit(op.multiply(inner, const(root)))))
    return emit(op.multiply(emit(op.multiply(x, const(half))), emit(op.add(tanh, const(one)))))


def gelu_by_erf(emit: Any, x: Any, y: Any, root: float = math.sqrt(2)) -> Any:
    """0.5 * x * (1 + erf(y / root))."""
    erf = emit(op.erf(emit(op.divide(y, number(root)))))
    return emit(op.multiply(emit(op.multiply(x, number(0.5))), emit(op.add(erf, number(1.0)))))


def silu_of(emit: Any, x: Any, y: Any) -> Any:
    return emit(op.multiply(x, emit(op.sigmoid(y))))


#: Name -> (what recognises it, the program of x and y, of one shape and square).
NEARLY: dict[str, tuple[str, Any]] = {
    "silu of another": ("nn.silu", silu_of),
    "silu of a row": ("nn.silu", lambda e, x, y: silu_of(e, x, e(op.strided_slice(x, [0], [1], [2])))),
    "silu transposed": ("nn.silu", lambda e, x, y: silu_of(e, x, e(op.permute_dims(x)))),
    "erf of another": ("nn.gelu", gelu_by_erf),
    "erf transposed": ("nn.gelu", lambda e, x, y: gelu_by_erf(e, x, e(op.permute_dims(x)))),
    "erf of x / 1.4141": ("nn.gelu", lambda e, x, y: gelu_by_erf(e, x, x, 1.4141)),
    "tanh, a cube of two": ("nn.gelu_tanh", lambda e, x, y: gelu_by_tanh(e, x, other=y)),
    "tanh, another root": ("nn.gelu_tanh", lambda e, x, y: gelu_by_tanh(e, x, root=0.8)),
    "tanh, another cubic": ("nn.gelu_tanh", lambda e, x, y: gelu_by_tanh(e, x, cubic=0.0447)),
    "tanh, not quite a half": ("nn.gelu_tanh", lambda e, x, y: gelu_by_tanh(e, x, half=f(0.5) + f(2**-24))),
    "tanh, not quite one": ("nn.gelu_tanh", lambda e, x, y: gelu_by_tanh(e, x, one=f(1) - f(2**-24))),
}


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_a_function_is_not_taken_for_it(name: str) -> None:
    """Another operand, view or number in one place: the operators stay, and compute what they did."""
    recognised, body = NEARLY[name]
    graph = check({"x": ((4, 4), F32), "y": ((4, 4), F32)}, body)
    assert recognised not in {op_name for node in graph.nodes for op_name in node.ops}


@pytest.mark.parametrize(("root", "same"), [(math.sqrt(2 / math.pi), True), (0.7978845608, False)])
def test_double_precision_has_double_constants(root: float, same: bool) -> None:
    """Ten digits are another number in fp64, and another function: by 5e-11, where fp64 has 1e-16."""
    graph = build(module({"x": ((3, 8), "float64")}, lambda e, x: gelu_by_tanh(e, x, "float64", root=root)))
    assert ([node.ops for node in graph.nodes] == [("nn.gelu_tanh",)]) == same


@pytest.mark.parametrize(
    ("dtype", "name", "left", "right", "dropped"),
    [
        (F32, "add", None, -0.0, True),
        (F32, "add", None, 0.0, False),
        (F32, "add", 0.0, None, False),
        (F32, "subtract", None, 0.0, True),
        (F32, "subtract", None, -0.0, False),
        (F32, "subtract", 0.0, None, False),
        (F32, "multiply", 1.0, None, True),
        (F32, "divide", None, 1.0, True),
        (F32, "divide", 1.0, None, False),
        ("int32", "add", None, 0, True),
        ("int32", "subtract", 0, None, False),
    ],
)
def test_neutral_operands_leave_every_bit(
    dtype: str, name: str, left: float | None, right: float | None, dropped: bool
) -> None:
    """-0 + 0 is +0, and a difference or a quotient has an order."""
    x = np.array([0.0, -0.0, 1.5, -2.5, np.inf, np.nan] if dtype == F32 else [0, -1, 7, 3, -5, 2], dtype)

    def body(emit: Any, v: Any) -> Any:
        operands = [v if n is None else relax.const(n, dtype) for n in (left, right)]
        return emit(getattr(op, name)(*operands))

    graph = build(module({"x": ((6,), dtype)}, body))
    assert ([node.ops for node in graph.nodes] == [("copy",)]) == dropped
    with np.errstate(all="ignore"):
        operands = [x if n is None else np.asarray(n, dtype) for n in (left, right)]
        expected = getattr(np, name)(*operands)
    (actual,) = run_graph(graph, [x])
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


def test_fast_math_drops_zeros_of_either_sign() -> None:
    mod = module({"x": ((6,), F32)}, lambda emit, x: emit(op.add(x, number(0.0))))
    assert [node.ops for node in build(mod).nodes] == [("add",)]
    assert [node.ops for node in build(mod, fast_math=True).nodes] == [("copy",)]
