# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that are linear in their places: masks and indices that models compute of positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import relax

from .test_positions import Spec, expect_same, normalized

op = relax.op


def counted(emit: Any, size: Any, *shape: Any) -> Any:
    found = emit(op.arange(0, size, 1, "int64"))
    return emit(op.reshape(found, list(shape))) if shape else found


def steps_between(emit: Any, n: Any, first: int = -1) -> Any:
    """How often neighbouring positions are not one apart, as transformers finds packed sequences."""
    places = counted(emit, n, 1, n)
    joined = emit(op.concat([relax.const(np.array([[first]]), "int64"), places], axis=-1))
    behind = emit(op.strided_slice(joined, [1], [0], [n]))
    ahead = emit(op.strided_slice(joined, [1], [1], [n + 1]))
    gaps = emit(op.not_equal(emit(op.subtract(ahead, behind)), relax.const(1, "int64")))
    return emit(op.cumsum(emit(op.astype(gaps, "int64")), axis=1))


def masked(emit: Any, x: Any, n: Any, m: Any, first: int = -1) -> Any:
    """x (n, n) where rows and columns are of one sequence."""
    parts, zero = steps_between(emit, n, first), relax.const(np.zeros((1, 1)), "int64")
    rows = emit(op.index_tensor(parts, (zero, counted(emit, n, n, 1))))
    cols = emit(op.index_tensor(parts, (zero, counted(emit, n, 1, n))))
    same = emit(op.equal(rows, cols))
    return emit(op.where(same, x, relax.const(0.0, "float32")))


def jumping(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """The first position does not follow on what stands before it: a sum is left."""
    return masked(emit, x, n, m, first=5)


def looked_up(emit: Any, x: Any, n: Any, m: Any, first: int = 0) -> Any:
    """gather_nd of x (n, m) at all places, with negative ones wrapped, as ONNX has it."""
    rows, cols = counted(emit, n, n, 1, 1), counted(emit, m, 1, m, 1)
    if first:
        cols = emit(op.subtract(cols, relax.const(first, "int64")))
    wide = [emit(op.broadcast_to(each, [n, m, 1])) for each in (rows, cols)]
    places = emit(op.concat(wide, axis=-1))
    ends = emit(op.shape_to_tensor(relax.ShapeExpr([n, m])))
    below = emit(op.less(places, relax.const(0, "int64")))
    places = emit(op.where(below, emit(op.add(places, ends)), places))
    return emit(op.add(emit(op.gather_nd(x, places)), relax.const(1.0, "float32")))


def turned(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """The same from the last column on: no reshape."""
    return looked_up(emit, x, n, m, first=1)


def causal(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """Which position is behind which is not the same everywhere."""
    behind = emit(op.less_equal(counted(emit, n, 1, n), counted(emit, n, n, 1)))
    return emit(op.where(behind, x, relax.const(0.0, "float32")))


SQUARE: Spec = (("n", "n"), "float32")


@pytest.mark.parametrize(
    ("body", "spec", "gone"),
    [
        (masked, SQUARE, {"cumsum", "index_tensor", "concat", "equal", "where"}),
        (looked_up, (("n", "m"), "float32"), {"gather_nd", "where", "less"}),
    ],
)
def test_what_is_known_of_positions_is_not_computed(
    body: Callable[..., Any], spec: Spec, gone: set[str]
) -> None:
    left, mod, space = normalized(body, spec)
    assert not gone & set(left) and not space.conditions
    for sizes in ({"n": 1, "m": 1}, {"n": 5, "m": 3}):
        expect_same(body, mod, space, [spec], sizes)


@pytest.mark.parametrize(
    ("body", "spec", "kept"),
    [
        (jumping, SQUARE, {"cumsum"}),
        (turned, (("n", "m"), "float32"), {"gather_nd"}),
        (causal, SQUARE, {"less_equal", "where"}),
    ],
)
def test_what_is_not_the_same_everywhere_is_computed(
    body: Callable[..., Any], spec: Spec, kept: set[str]
) -> None:
    left, mod, space = normalized(body, spec)
    assert kept <= set(left)
    expect_same(body, mod, space, [spec], {"n": 5, "m": 3})
