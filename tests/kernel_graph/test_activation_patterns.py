# SPDX-License-Identifier: Apache-2.0
"""Activations of several operators that a library applies as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm import relax

from .programs import check, constant, kinds, number, only

op = relax.op
Emit = Callable[[Any], Any]
INPUT = {"x": ((3, 8), "float32")}


def product(emit: Emit, x: Any) -> Any:
    """Sums around 0, of which some are beyond every bound."""
    return emit(op.matmul(x, constant(8, 16)))


def between(emit: Emit, x: Any, low: float, high: float, outer_first: bool = False) -> Any:
    if outer_first:
        return emit(op.maximum(emit(op.minimum(x, number(high))), number(low)))
    return emit(op.minimum(emit(op.maximum(x, number(low))), number(high)))


def shifted(emit: Emit, x: Any) -> Any:
    return between(emit, emit(op.add(x, number(3))), 0, 6)


FUNCTIONS: dict[str, tuple[Callable[[Emit, Any], Any], str]] = {
    "relu6": (lambda e, x: between(e, x, 0, 6), "clip(0.0,6.0)"),
    "the other way round": (lambda e, x: between(e, x, -1, 1, outer_first=True), "clip(-1.0,1.0)"),
    "relax's clip": (lambda e, x: e(op.clip(x, 0, 6)), "clip(0.0,6.0)"),
    "leaky relu": (lambda e, x: e(op.nn.leakyrelu(x, 0.1)), "leaky_relu(0.1)"),
    "hard sigmoid": (
        lambda e, x: e(op.divide(shifted(e, x), number(6))),
        "hard_sigmoid(0.16666666666666666,0.5)",
    ),
    "ONNX's": (
        lambda e, x: between(e, e(op.add(e(op.multiply(x, number(0.25))), number(0.5))), 0, 1),
        "hard_sigmoid(1.0,0.5)",  # the factor is the product's own
    ),
    "hard swish": (
        lambda e, x: e(op.divide(e(op.multiply(x, shifted(e, x))), number(6))),
        "hard_swish(0.16666666666666666,0.5)",
    ),
    "hard swish, factor inside": (
        lambda e, x: e(op.multiply(e(op.divide(shifted(e, x), number(6))), x)),
        "hard_swish(0.16666666666666666,0.5)",
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_part_of_the_product(name: str) -> None:
    function, text = FUNCTIONS[name]
    assert only(check(INPUT, lambda emit, x: function(emit, product(emit, x)))).activation == text


def test_after_a_bias_and_before_a_residual() -> None:
    def body(emit: Emit, x: Any, r: Any) -> Any:
        y = emit(op.add(product(emit, x), constant(16)))
        return emit(op.add(between(emit, y, 0, 6), r))

    attrs = only(check({**INPUT, "r": ((3, 16), "float32")}, body))
    assert (attrs.bias, attrs.activation, attrs.residual) == (True, "clip(0.0,6.0)", "after_activation")


def test_the_longest_is_taken() -> None:
    """A bias with the 3 of a hard sigmoid in it leaves a clip, which alone would be an activation too."""

    def body(emit: Emit, x: Any) -> Any:
        y = between(emit, emit(op.add(product(emit, x), constant(16))), 0, 6)
        return emit(op.divide(y, number(6)))

    attrs = only(check(INPUT, body))
    assert (attrs.bias, attrs.activation) == (True, "hard_sigmoid(0.16666666666666666,0.0)")


def test_the_factor_of_a_hard_swish_is_not_the_next_product_s() -> None:
    """Two layers are two calls: 1 / 6 between them ends the first one's activation."""

    def body(emit: Emit, x: Any) -> Any:
        y = emit(op.add(product(emit, x), constant(16)))
        y = emit(op.divide(emit(op.multiply(y, shifted(emit, y))), number(6)))
        return emit(op.matmul(y, constant(16, 4)))

    graph = check(INPUT, body)
    assert kinds(graph) == ["matmul", "matmul"]
    first, second = (node.attrs for node in graph.library_ops)
    assert (first.bias, first.activation) == (True, "hard_swish(0.16666666666666666,0.5)")
    assert second.alpha == 1.0


NOT = {
    "bounds that cross": lambda e, x: between(e, x, 6, 0),
    "one bound": lambda e, x: e(op.maximum(x, number(0.5))),
    "the gate of another value": lambda e, x: e(
        op.divide(e(op.multiply(e(op.exp(x)), shifted(e, x))), number(6))
    ),
    "what is between is read elsewhere": lambda e, x: (
        lambda y: e(op.concat([e(op.minimum(y, number(6))), e(op.exp(y))], axis=1))
    )(e(op.maximum(x, number(0)))),
}


@pytest.mark.parametrize("name", NOT)
def test_is_a_kernel(name: str) -> None:
    """What only looks alike stays what it is."""
    graph = check(INPUT, lambda emit, x: NOT[name](emit, product(emit, x)))
    assert kinds(graph)[0] == "matmul" and len(graph.nodes) > 1
    assert graph.library_ops[0].attrs.activation == "none"


def test_a_clip_that_is_scaled_otherwise_is_a_clip() -> None:
    graph = check(INPUT, lambda emit, x: emit(op.divide(shifted(emit, product(emit, x)), number(5))))
    assert kinds(graph) == ["matmul", "elementwise"]
    assert graph.library_ops[0].attrs.activation == "clip(0.0,6.0)"


def test_a_result_between_stays_an_output() -> None:
    def body(emit: Emit, x: Any) -> Any:
        y = emit(op.maximum(product(emit, x), number(0)))
        return emit(relax.Tuple([y, emit(op.minimum(y, number(6)))]))

    assert check(INPUT, body).library_ops[0].attrs.activation == "none"
