# SPDX-License-Identifier: Apache-2.0
"""Code for all sizes asks when it is launched which kernel is for the sizes at hand."""

from __future__ import annotations

import numpy as np
import tvm
from tvm.script import tirx as T
from tvm_ffi.structural import structural_map
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import condition_of
from uir_tvm.target.handing_over import handing_over


@T.prim_func(s_tir=True)
def whole(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")) -> None:
    for i, j in T.grid(x.shape[0], 4):
        y[i, j] = x[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def alone(a: T.Buffer((1, 4), "float32"), b: T.Buffer((1, 4), "float32")) -> None:
    for j in range(4):
        b[0, j] = a[0, j] + T.float32(100)


@T.prim_func(s_tir=True)
def few(a: T.Buffer(("n", 4), "float32"), b: T.Buffer(("n", 4), "float32")) -> None:
    for i, j in T.grid(a.shape[0], 4):
        b[i, j] = a[i, j] + T.float32(10)


def test_each_range_runs_its_own_body() -> None:
    """Three bodies that differ, so that each result says which one ran; the first that fits does."""
    made = handing_over(whole, [([Size("n", 1, 1)], alone), ([Size("n", 0, 6, 2)], few)])
    run = tvm.compile(tvm.IRModule({"main": made.with_attr("global_symbol", "main")}), target="llvm")["main"]
    for rows, wanted in ((1, 101), (2, 11), (3, 2), (6, 11), (7, 2), (8, 2)):
        x, y = np.ones((rows, 4), "float32"), tvm.runtime.empty((rows, 4), "float32")
        run(tvm.runtime.tensor(x), y)
        assert (y.numpy() == wanted).all(), rows


def test_without_variants_nothing_changes() -> None:
    assert handing_over(whole, []).same_as(whole)


@T.prim_func(s_tir=True)
def of_two(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")) -> None:
    for i, j in T.grid(x.shape[0], x.shape[1]):
        y[i, j] = x[i, j]


def test_conditions_speak_of_products_too() -> None:
    """Dimensions that are walked together have one range, of their product."""
    condition = condition_of(of_two, [Size("n_times_m", 2, 12), Size("m", 3, 3)])
    n, m = of_two.params[0].shape
    for rows in range(6):
        for columns in range(6):
            values = {n: tvm.tirx.const(rows, n.ty.dtype), m: tvm.tirx.const(columns, m.ty.dtype)}
            bound = tvm.sym.Analyzer().simplify(
                structural_map(condition, (tvm.ir.Var, lambda var, values=values: values[var]))
            )
            assert bool(bound) == (2 <= rows * columns <= 12 and columns == 3)
