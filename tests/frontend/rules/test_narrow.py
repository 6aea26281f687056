# SPDX-License-Identifier: Apache-2.0
"""Operators in a wider dtype: the numbers of the narrow one, in order, and as the operator declares them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import uir_tvm
from tvm import relax
from uir_tvm.frontend.rules.narrow import SORTED

from tests import tiny

op = relax.op


def edges(dtype: str) -> np.ndarray:
    """Numbers from end to end of a dtype, out of order."""
    numpy = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if numpy.kind in "iu":
        info = np.iinfo(numpy)
        return np.array([7, info.max, 3, info.min, 100, info.max - 1], numpy)
    info = ml_dtypes.finfo(numpy)
    return np.array([1, float(info.max), 0, float(info.min), -1, float(info.tiny)], numpy)


@pytest.mark.parametrize("dtype", SORTED)
def test_orders_from_end_to_end(dtype: str) -> None:
    """Stock TVM reads narrow floats beyond their end, and refuses the integers."""
    x = edges(dtype)
    exe = uir_tvm.compile(tiny.elementwise(lambda a: op.sort(a), (x.shape, dtype)))
    got = exe(x)
    assert got.dtype == x.dtype
    order = np.argsort(x if x.dtype.kind in "iu" else x.astype("float32"))
    np.testing.assert_array_equal(got.astype("float64"), x[order].astype("float64"))
    exe = uir_tvm.compile(tiny.elementwise(lambda a: op.argsort(a, descending=True), (x.shape, dtype)))
    np.testing.assert_array_equal(exe(x), order[::-1])


def test_values_and_places_of_a_tuple() -> None:
    x = np.array([[3, 250, 0, 7]], "uint8")
    values, places = uir_tvm.compile(tiny.elementwise(lambda a: op.topk(a, 2), (x.shape, "uint8")))(x)
    assert (values.dtype, values.tolist(), places.tolist()) == (np.uint8, [[250, 7]], [[1, 3]])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("isnan", [0, 0, 1, 0]), ("isinf", [0, 1, 0, 1]), ("isfinite", [1, 0, 0, 0])],
)
def test_what_bfloat16_numbers_are(name: str, wanted: list[int]) -> None:
    x = np.array([1.5, np.inf, np.nan, -np.inf], ml_dtypes.bfloat16)
    exe = uir_tvm.compile(tiny.elementwise(lambda a: getattr(op, name)(a), (x.shape, "bfloat16")))
    np.testing.assert_array_equal(exe(x), np.array(wanted, bool))
