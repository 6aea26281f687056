# SPDX-License-Identifier: Apache-2.0
"""Reductions without an init go on from what their result holds; apart from it every recipe takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.s_tir import Schedule
from tvm.script import tirx as T
from uir_tvm.schedule.blocks import leaf_blocks
from uir_tvm.schedule.continued_reductions import reduce_apart
from uir_tvm.schedule.rooted import rooted

from tests.primfuncs.table import STRUCTURES
from tests.stock import stock


def reduction(update: Callable[[Any, Any], Any], dtype: str) -> Any:
    """C[i] = update(C[i], A[i, k])."""

    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((5, 7), dtype), C: T.Buffer((5,), dtype)):
        for i, k in T.grid(5, 7):
            with T.sblock("reduce"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = update(C[vi], A[vi, vk])

    return main


@T.prim_func(s_tir=True)
def halves(A: T.Buffer((8, 7), "float32"), C: T.Buffer((4,), "float32")):
    """Two iterations update one element."""
    for i, k in T.grid(8, 7):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi // 2] = C[vi // 2] + A[vi, vk]


@T.prim_func(s_tir=True)
def predicated(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 7):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i + k < 4)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def of_itself(C: T.Buffer((5,), "float32")):
    """What is added changes on the way."""
    for i, k in T.grid(5, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + C[vk]


@T.prim_func(s_tir=True)
def along(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5, 7), "float32")):
    """Every iteration updates an element of its own: nothing is reduced."""
    for i, k in T.grid(5, 7):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi, vk] = C[vi, vk] + A[vi, vk]


def run(func: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """TVM's own lowering of a function."""
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    stock(func)["main"](*tensors)
    return [tensor.numpy() for tensor in tensors]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize(
    "update",
    [lambda c, a: c + a, lambda c, a: a + c, lambda c, a: c * a, T.max, T.min],
    ids=["add", "added to", "multiply", "max", "min"],
)
def test_the_reduction_is_apart_from_its_update(update: Any, dtype: str) -> None:
    """A reduction with an init, then one update an element; the numbers are those of before."""
    func = rooted(reduction(update, dtype))
    apart = reduce_apart(func)
    first, second = leaf_blocks(Schedule(apart))
    assert first.is_reduction and first.stmt.init is not None and second.is_injective
    rng = np.random.default_rng(0)
    x, c = (rng.integers(-2, 3, shape).astype(dtype) for shape in [(5, 7), (5,)])
    for got, want in zip(run(apart, x, c), run(func, x, c), strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_least_of_floats_is_infinite() -> None:
    """A maximum over what is -inf alone leaves what the result holds, also where that is -inf."""
    x, c = np.full((5, 7), -np.inf, "float32"), np.full(5, -np.inf, "float32")
    _, got = run(reduce_apart(rooted(reduction(T.max, "float32"))), x, c)
    np.testing.assert_array_equal(got, c)


@pytest.mark.parametrize(
    "func", [halves, predicated, of_itself, along], ids=lambda f: str(f.attrs["global_symbol"])
)
def test_what_is_no_update_of_each_element_stays(func: Any) -> None:
    func = rooted(func)
    assert reduce_apart(func).same_as(func)


def test_what_is_no_reduction_of_these_stays() -> None:
    """A decay multiplies what the result holds in every step: nothing can be added at the end."""
    func = rooted(STRUCTURES["decayed_rows"].build(5, "float32"))
    assert reduce_apart(func).same_as(func)
