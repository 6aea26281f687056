# SPDX-License-Identifier: Apache-2.0
"""Neighbouring open dimensions become one where every block walks them together; else they stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from uir_tvm.igraph.tir_sizes import sizes_of
from uir_tvm.schedule.joined_sizes import join_sizes

from tests.open_functions import OPEN


def var(name: str) -> tirx.Var:
    return tirx.Var(name, "int64")


def shapes(func: tirx.PrimFunc) -> list[tuple[str, ...]]:
    return [tuple(str(d) for d in p.shape) for p in func.params]


def test_elementwise() -> None:
    joined = join_sizes(OPEN["two sizes"].func())
    assert shapes(joined) == [("n_times_m", "24")] * 3
    assert [str(s.name) for s in sizes_of(joined).values()] == ["n_times_m"]


def test_three_dimensions() -> None:
    n, m, k = var("n"), var("m"), var("k")
    x = te.placeholder((n, m, k), "float32", "x")
    func = te.create_prim_func([x, te.compute((n, m, k), lambda *at: x[at] + 1.0)])
    (shape,) = set(shapes(join_sizes(func)))
    assert sorted(shape[0].split("_times_")) == ["k", "m", "n"]


def test_intermediates_and_reductions() -> None:
    func = OPEN["layer norm of two sizes"].func()
    joined = join_sizes(func)
    assert shapes(joined) == [("n_times_m", "40"), ("40",), ("40",), ("n_times_m", "40")]
    given = OPEN["layer norm of two sizes"].inputs({"n": 3, "m": 5})
    numbers = []
    for one, leading in ((func, (3, 5)), (joined, (15,))):
        x, *rest = given
        out = tvm.runtime.tensor(np.zeros((*leading, 40), "float32"))
        tensors = [tvm.runtime.tensor(a) for a in (x.reshape(*leading, 40), *rest)]
        tvm.build(one.with_attr("global_symbol", "main"), target="llvm")["main"](*tensors, out)
        numbers.append(out.numpy().reshape(-1))
    np.testing.assert_array_equal(numbers[0], numbers[1])


def turned(n: Any, m: Any) -> tirx.PrimFunc:
    x = te.placeholder((n, m, 4), "float32", "x")
    return te.create_prim_func([x, topi.transpose(x, (1, 0, 2))])


def masked(n: Any, m: Any) -> tirx.PrimFunc:
    x, b = te.placeholder((n, m, 4), "float32", "x"), te.placeholder((m, 4), "float32", "b")
    return te.create_prim_func([x, b, te.compute((n, m, 4), lambda i, j, k: x[i, j, k] + b[j, k])])


def numbered(n: Any, m: Any) -> tirx.PrimFunc:
    x = te.placeholder((n, m), "float32", "x")
    return te.create_prim_func([x, te.compute((n, m), lambda i, j: x[i, j] + i.astype("float32"))])


def reduced(n: Any, m: Any) -> tirx.PrimFunc:
    x = te.placeholder((n, m, 4), "float32", "x")
    return te.create_prim_func([x, topi.sum(x, 1)])


def shifted(n: Any, m: Any) -> tirx.PrimFunc:
    x = te.placeholder((n, m), "float32", "x")
    return te.create_prim_func([x, te.compute((n, m), lambda i, j: x[i, m - 1 - j])])


@pytest.mark.parametrize("make", [turned, masked, numbered, reduced, shifted])
def test_what_stays_apart(make: Callable[[Any, Any], tirx.PrimFunc]) -> None:
    func = make(var("n"), var("m"))
    assert join_sizes(func).same_as(func)


def test_a_product_whose_name_is_taken_stays_apart() -> None:
    n, m, taken = var("n"), var("m"), var("n_times_m")
    x, z = te.placeholder((n, m), "float32", "x"), te.placeholder((taken,), "float32", "z")
    twice = te.compute((n, m), lambda *at: x[at] * 2.0, "twice")
    func = te.create_prim_func([x, z, twice, te.compute((taken,), lambda i: z[i] + 1.0, "more")])
    assert join_sizes(func).same_as(func)


def test_static_functions_stay() -> None:
    func = turned(3, 5)
    assert join_sizes(func).same_as(func)
