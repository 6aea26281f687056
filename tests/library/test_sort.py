# SPDX-License-Identifier: Apache-2.0
"""Sorts of the library against NumPy's stable ones."""

from __future__ import annotations

from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.library.sort_attrs import SortAttrs, sort_reference
from uir_tvm.library.work import work_of

Array = np.ndarray[Any, Any]
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    """Few different ones, and the ends of the dtype: NaN of both signs, infinities and both zeros."""
    make = np.random.default_rng(seed)
    if dtype == "bool":
        return make.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        ends = np.iinfo(dtype)
        few, many = (make.integers(*of, shape, dtype, True) for of in ((0, 3), (ends.min, ends.max)))
        return np.where(make.random(shape) < 0.5, few, many)
    x = np.round(make.standard_normal(shape) * make.choice([2, 1e4], shape))
    edges = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0])
    x = np.where(make.random(shape) < 0.2, edges[make.integers(0, len(edges), shape)], x)
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def call(attributes: SortAttrs, x: Array, index_dtype: str = "int64") -> list[Array]:
    """The results of the registered function."""
    shape = (attributes.outer, attributes.count, attributes.inner)
    made = [np.zeros(shape, x.dtype)] * attributes.values + [
        np.full(shape, -1, index_dtype)
    ] * attributes.indices
    results = [tvm.runtime.tensor(array) for array in made]
    tvm_ffi.get_global_func("uir.library.cpu.sort")(tvm.runtime.tensor(x), attributes.to_json(), *results)
    return [tensor.numpy() for tensor in results]


def check(attributes: SortAttrs, x: Array, index_dtype: str = "int64") -> None:
    """Bits of the values, and the places."""
    values, places = sort_reference(attributes, x)
    got = call(attributes, x, index_dtype)
    want = [values.view(f"u{x.dtype.itemsize}")] * attributes.values + [places] * attributes.indices
    for one, other in zip(got, want, strict=True):
        bits = one.view(f"u{x.dtype.itemsize}") if one.dtype == x.dtype else one
        np.testing.assert_array_equal(bits, other, err_msg=f"{attributes} {x.dtype}")


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_every_dtype(dtype: str) -> None:
    """Both orders of long and short rows, whole and some; equal elements in their order, NaN as largest."""
    for seed, (length, count) in enumerate(
        [(1, 1), (37, 37), (37, 5), (700, 700), (700, 100), (1500, 3), (5000, 50)]
    ):
        x = numbers(dtype, (3, length, 1), seed)
        for descending in (False, True):
            check(SortAttrs(outer=3, length=length, inner=1, count=count, descending=descending), x)


@pytest.mark.parametrize("inner", [1, 2, 16, 21])
def test_every_axis(inner: int) -> None:
    """Columns that lie beside each other, more and fewer than are turned at once; each result alone."""
    x = numbers("float32", (2, 301, inner), inner)
    for count in (2, 301):
        attributes = SortAttrs(outer=2, length=301, inner=inner, count=count, descending=True)
        check(attributes, x, "int32")
        for values in (False, True):
            alone = SortAttrs(
                outer=2, length=301, inner=inner, count=count, values=values, indices=not values
            )
            check(alone, x)


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "NaN"])
def test_few_of_orders_that_are_worst(order: str) -> None:
    """Rows each element of which is better than all before it, or none is."""
    x = np.arange(4099, dtype=np.float32).reshape(1, -1, 1)
    x = {"rising": x, "falling": -x, "equal": x * 0, "NaN": x * np.float32(np.nan)}[order]
    for descending in (False, True):
        check(SortAttrs(outer=1, length=4099, inner=1, count=17, descending=descending), x)


def test_many_rows() -> None:
    """Enough work for all threads of the pool."""
    x = numbers("float32", (4000, 200, 1), 5)
    for count in (1, 30, 200):
        check(SortAttrs(outer=4000, length=200, inner=1, count=count), x)


def test_refusals() -> None:
    """More elements than a row has, no result, tensors that do not fit: each says which."""
    x = np.zeros((1, 4, 1), np.float32)
    good = SortAttrs(outer=1, length=4, inner=1, count=4)
    for change, words in (
        ({"count": 5}, "count is 5"),
        ({"values": False, "indices": False}, "need:   a result"),
        ({"length": 1 << 33}, "length is"),
        ({"outer": 2}, "operand 1 does not fit"),
        ({"indices": False}, "arguments"),
    ):
        changed = attrs.evolve(good, **change).to_json()
        results = [tvm.runtime.tensor(np.zeros((1, 4, 1), kind)) for kind in ("float32", "int64")]
        with pytest.raises(ValueError, match=words):
            tvm_ffi.get_global_func("uir.library.cpu.sort")(tvm.runtime.tensor(x), changed, *results)
    results = [tvm.runtime.tensor(np.zeros((1, 4, 1), kind)) for kind in ("float32", "float32")]
    with pytest.raises(ValueError, match="neither int32 nor int64"):
        tvm_ffi.get_global_func("uir.library.cpu.sort")(tvm.runtime.tensor(x), good.to_json(), *results)


def test_work() -> None:
    """Every element once, and the results."""
    work = work_of("sorted", SortAttrs(outer=64, length=1000, inner=1, count=10).to_json())
    assert work.sizes == "10 of 64x1000x1"
    assert (work.operations, work.elements) == (64000, 64 * 1020)
