# SPDX-License-Identifier: Apache-2.0
"""Nearest resizes by whole factors are views; others stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op
from uir_tvm.frontend import normalize

from tests.frontend.stock import operators, run

SHAPE = (2, 3, 4, 6)
VIEWS = {"reshape", "broadcast_to", "strided_slice"}


def _module(function: Callable[[Any], Any]) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            output = builder.emit_output(function(x))
        builder.emit_func_output(output)
    return builder.get()


def _taken(places: Any, axis: int) -> Callable[[Any], Any]:
    return lambda x: op.take(x, relax.const(np.asarray(places, "int64")), axis=axis)


def _resized(size: tuple[int, int], mode: str, rounding: str) -> Callable[[Any], Any]:
    return lambda x: op.image.resize2d(x, size, None, "NCHW", "nearest_neighbor", mode, rounding)


WHOLE = {
    "twice": _taken(np.arange(12) // 2, -1),
    "three times": _taken(np.arange(12) // 3, 2),
    "every second": _taken(np.arange(3) * 2, 3),
    "every third from the second": _taken([1, 4], 3),
    "asymmetric": _resized((8, 18), "asymmetric", "floor"),
    "half pixels, halves down": _resized((12, 12), "half_pixel", "round_prefer_floor"),
    "half pixels, halves up": _resized((8, 6), "half_pixel", "round_prefer_ceil"),
    "repeat": lambda x: op.repeat(x, 3, 1),
    "repeat all": lambda x: op.repeat(x, 2),
}
OTHERS = {
    "other places": _taken([0, 0, 1, 2, 2, 3], 3),
    "backwards": _taken([3, 3, 2, 2, 1, 1, 0, 0], 2),
    "behind the end": _taken([0, 3, 6], 3),
    "half pixels down": _resized((8, 12), "half_pixel", "floor"),
    "no whole factor": _resized((6, 9), "asymmetric", "floor"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_views(name: str) -> None:
    """Nothing but views is left, with the values of stock TVM."""
    mod = _module(WHOLE[name])
    made = normalize(mod)
    assert set(operators(made)) <= VIEWS
    x = np.random.default_rng(3).standard_normal(SHAPE).astype("float32")
    np.testing.assert_array_equal(run(made, [x])[0], run(mod, [x])[0])


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    """What takes other elements stays a call of its operator."""
    assert set(operators(normalize(_module(OTHERS[name])))) & {"take", "image.resize2d"}
