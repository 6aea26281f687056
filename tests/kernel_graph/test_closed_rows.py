# SPDX-License-Identifier: Apache-2.0
"""The choice after a softmax that a safe softmax makes needless, and the choices that must stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax
from uir_tvm.kernel_graph import KernelGraph, build

from .programs import arguments, module, number, run_graph

op = relax.op
F32 = "float32"
INPUTS = {"x": ((2, 3, 4, 4), F32), "flags": ((2, 1, 4, 4), "bool"), "v": ((2, 3, 4, 5), F32)}
INF = float("inf")


def flags_of(seed: int = 3) -> np.ndarray:
    """Flags of rows of which some are closed, though no column is."""
    flags = np.random.default_rng(seed).integers(0, 2, (2, 1, 4, 4)).astype(bool)
    flags[0, 0, 1] = flags[1, 0, 3] = False
    flags[:, :, 0] = True
    return flags


def mask_of(emit: Any, flags: Any, low: float = -INF) -> Any:
    return emit(op.where(flags, number(0.0), number(low)))


def any_of(emit: Any, flags: Any, axis: int = -1, keepdims: bool = True) -> Any:
    ones = emit(op.where(flags, number(1.0), number(0.0)))
    return emit(op.greater(emit(op.max(ones, axis=[axis], keepdims=keepdims)), number(0.0)))


def softmax(emit: Any, x: Any, mask: Any, axis: int = -1) -> Any:
    return emit(op.nn.softmax(emit(op.add(x, mask)), axis))


def by_flags(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(any_of(emit, flags), weights, number(0.0))), v))


def by_maximum(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    mask = mask_of(emit, flags)
    opened = emit(op.greater(emit(op.max(mask, axis=[-1], keepdims=True)), number(-INF)))
    return emit(op.matmul(emit(op.where(opened, softmax(emit, x, mask), number(0.0))), v))


def by_other_than_infinity(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """Of a mask of numbers the flags are ``mask != -inf``."""
    mask = mask_of(emit, flags)
    seen = emit(op.not_equal(mask, number(-INF)))
    return emit(op.matmul(emit(op.where(any_of(emit, seen), softmax(emit, x, mask), number(0.0))), v))


def by_squeezed_rows(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """The axis left out by the maximum and put back; the heads' axis too."""
    rows = any_of(emit, emit(op.reshape(flags, (2, 4, 4))), keepdims=False)
    condition = emit(op.reshape(rows, (2, 1, 4, 1)))
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(condition, weights, number(0.0))), v))


def along_columns(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """Whether a *column* has something open, told to the rows."""
    columns = emit(op.reshape(any_of(emit, flags, axis=2, keepdims=False), (2, 1, 4, 1)))
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(columns, weights, number(0.0))), v))


def of_columns(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """The condition of the rows, told to the columns: not the same along a row."""
    columns = emit(op.permute_dims(any_of(emit, flags), [0, 1, 3, 2]))
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(columns, weights, number(0.0))), v))


def of_another_batch(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """The rows of the first batch for all batches."""
    first = emit(op.strided_slice(any_of(emit, flags), [0], [0], [1]))
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(first, weights, number(0.0))), v))


def of_all_rows(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """Whether anything is open at all."""
    ones = emit(op.where(flags, number(1.0), number(0.0)))
    opened = emit(op.greater(emit(op.max(ones, axis=[-2, -1], keepdims=True)), number(0.0)))
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(opened, weights, number(0.0))), v))


def of_other_flags(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    opened = any_of(emit, emit(op.logical_not(flags)))
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(opened, weights, number(0.0))), v))


def with_a_low_number(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """A mask of -1e4 closes nothing: such a row has a softmax."""
    weights = softmax(emit, x, mask_of(emit, flags, -1e4))
    return emit(op.matmul(emit(op.where(any_of(emit, flags), weights, number(0.0))), v))


def along_the_other_axis(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    weights = softmax(emit, x, mask_of(emit, flags), axis=2)
    return emit(op.matmul(emit(op.where(any_of(emit, flags), weights, number(0.0))), v))


def with_something_else_than_zero(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    weights = softmax(emit, x, mask_of(emit, flags))
    return emit(op.matmul(emit(op.where(any_of(emit, flags), weights, number(1.0))), v))


def read_twice(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """The softmax before the choice is a result too, and NaN there."""
    weights = softmax(emit, x, mask_of(emit, flags))
    chosen = emit(op.where(any_of(emit, flags), weights, number(0.0)))
    return emit(op.matmul(chosen, v)), emit(op.add(weights, number(1.0)))


def after_the_product(emit: Any, x: Any, flags: Any, v: Any) -> Any:
    """0 @ v is NaN where v is: a choice after the product is another one."""
    attended = emit(op.matmul(softmax(emit, x, mask_of(emit, flags)), v))
    return emit(op.where(any_of(emit, flags), attended, number(0.0)))


def reference(body: Any, x: np.ndarray, flags: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """The program in NumPy."""
    with np.errstate(invalid="ignore"):

        def weights(low: float = -INF, axis: int = -1) -> np.ndarray:
            z = x.astype("float64") + np.where(flags, 0.0, low)
            e = np.exp(z - z.max(axis, keepdims=True))
            return np.asarray(e / e.sum(axis, keepdims=True))

        rows = flags.any(-1, keepdims=True)
        conditions = {
            along_columns: flags.any(2).reshape(2, 1, 4, 1),
            of_columns: rows.swapaxes(-1, -2),
            of_another_batch: rows[:1],
            of_all_rows: flags.any((-2, -1), keepdims=True),
            of_other_flags: (~flags).any(-1, keepdims=True),
        }
        if body is after_the_product:
            return [np.where(rows, weights() @ v, 0.0)]
        low = -1e4 if body is with_a_low_number else -INF
        inner = weights(low, 2 if body is along_the_other_axis else -1)
        other = 1.0 if body is with_something_else_than_zero else 0.0
        result = [np.where(conditions.get(body, rows), inner, other) @ v]
        return [*result, inner + 1] if body is read_twice else result


def graph_of(body: Any) -> tuple[KernelGraph, bool]:
    graph = build(module(INPUTS, body))
    return graph, "uir.safe_softmax" in {name for node in graph.custom_ops for name in node.ops}


def check_values(graph: KernelGraph, body: Any) -> None:
    x, _, v = arguments(INPUTS)
    flags = flags_of()
    v[1, 1, 2, 3] = np.nan if body is after_the_product else v[1, 1, 2, 3]
    for actual, expected in zip(run_graph(graph, [x, flags, v]), reference(body, x, flags, v), strict=True):
        np.testing.assert_allclose(actual, expected, atol=2e-6)


@pytest.mark.parametrize("body", [by_flags, by_maximum, by_other_than_infinity, by_squeezed_rows])
def test_the_choice_becomes_part_of_the_softmax(body: Any) -> None:
    """However the program says that a row is closed: one softmax, which gives it zeros and not NaN."""
    graph, safe = graph_of(body)
    assert safe
    assert {name for node in graph.custom_ops for name in node.ops} <= {"where", "add", "uir.safe_softmax"}
    check_values(graph, body)


@pytest.mark.parametrize(
    "body",
    [
        along_columns,
        of_columns,
        of_another_batch,
        of_all_rows,
        of_other_flags,
        with_a_low_number,
        along_the_other_axis,
        with_something_else_than_zero,
        read_twice,
        after_the_product,
    ],
)
def test_a_choice_that_says_something_else_stays(body: Any) -> None:
    """Another axis, view, mask, number or reader: nothing is replaced, and the values are the program's."""
    graph, safe = graph_of(body)
    assert not safe
    check_values(graph, body)


@pytest.mark.parametrize("agree", [True, False])
def test_constant_masks_are_compared_by_their_elements(agree: bool) -> None:
    flags = flags_of()
    mask = np.where(flags, 0, -INF).astype(F32)
    rows = flags.any(-1, keepdims=True)
    if not agree:
        rows[0, 0, 2] ^= True

    def body(emit: Any, x: Any, v: Any) -> Any:
        weights = softmax(emit, x, relax.const(mask))
        return emit(op.matmul(emit(op.where(relax.const(rows), weights, number(0.0))), v))

    inputs = {"x": INPUTS["x"], "v": INPUTS["v"]}
    graph = build(module(inputs, body))
    assert ("uir.safe_softmax" in {name for node in graph.custom_ops for name in node.ops}) == agree
    x, v = arguments(inputs)
    with np.errstate(invalid="ignore"):
        e = np.exp(x + mask - (x + mask).max(-1, keepdims=True))
        expected = np.where(rows, e / e.sum(-1, keepdims=True), 0) @ v
    np.testing.assert_allclose(run_graph(graph, [x, v])[0], expected, atol=2e-6)
