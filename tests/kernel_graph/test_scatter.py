# SPDX-License-Identifier: Apache-2.0
"""Scatters: operands that are views, updates that are fewer than the data, extremes that keep NaN."""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from tvm import relax

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scattered(x: np.ndarray, index: np.ndarray, y: np.ndarray, axis: int, reduction: str) -> np.ndarray:
    """The same by NumPy, one update after the other."""
    result = x.copy()
    for place in np.ndindex(*index.shape):
        to = (*place[:axis], index[place], *place[axis + 1 :])
        old, new = result[to], y[place]
        result[to] = new if reduction == "update" else UFUNCS[reduction](old, new)
    return result


@pytest.mark.parametrize("reduction", ["update", *UFUNCS])
def test_scatter_of_views_and_of_fewer_updates(reduction: str) -> None:
    """The data are turned, the updates are fewer along two axes behind the scattered one, and hold NaN."""
    print("seed 3")
    generator = np.random.default_rng(3)
    x = generator.standard_normal((6, 5, 4, 3)).astype("float32")
    y = generator.standard_normal((2, 3, 4, 5)).astype("float32")
    y[0, 0, 0, :2] = np.nan
    index = generator.integers(-4, 4, y.shape)
    builder = relax.BlockBuilder()
    params = [
        relax.Var(name, relax.TensorType(value.shape, str(value.dtype)))
        for name, value in (("x", x), ("index", index), ("y", y))
    ]
    with builder.function("main", params):
        with builder.dataflow():
            turned = builder.emit(relax.op.permute_dims(params[0], [3, 2, 1, 0]))
            scattered = relax.op.scatter_elements(turned, *params[1:], axis=1, reduction=reduction)
            result = builder.emit_output(builder.emit(scattered))
        builder.emit_func_output(result)
    found = np.asarray(uir_tvm.compile(builder.get())(x, index, y))
    wanted = _scattered(x.transpose(3, 2, 1, 0), np.where(index < 0, index + 4, index), y, 1, reduction)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
