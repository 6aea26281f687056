# SPDX-License-Identifier: Apache-2.0
"""PrimFuncs that the tests of primitives and recipes schedule."""

from __future__ import annotations

from tvm import te, tirx
from tvm.script import tirx as T


def elementwise(rows: int = 60, cols: int = 100) -> tirx.PrimFunc:
    """y = exp(x + bias), with the sum as an intermediate."""
    x = te.placeholder((rows, cols), name="x")
    bias = te.placeholder((cols,), name="bias")
    s = te.compute((rows, cols), lambda i, j: x[i, j] + bias[j], name="s")
    y = te.compute((rows, cols), lambda i, j: te.exp(s[i, j]), name="y")
    return te.create_prim_func([x, bias, y])


def row_sum(rows: int = 60, cols: int = 128) -> tirx.PrimFunc:
    """y[i] = sum over k of x[i, k]."""
    x = te.placeholder((rows, cols), name="x")
    k = te.reduce_axis((0, cols), name="k")
    y = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="y")
    return te.create_prim_func([x, y])


def gathered(dtype: str = "int64") -> tirx.PrimFunc:
    """y[i, j] = (a joined with b)[index[i], j]: rows of an intermediate that the data names."""
    a = te.placeholder((4, 8), name="a")
    b = te.placeholder((2, 8), name="b")
    index = te.placeholder((5,), dtype, name="index")
    whole = te.compute((6, 8), lambda i, j: tirx.if_then_else(i < 4, a[i, j], b[i - 4, j]), name="whole")
    y = te.compute((5, 8), lambda i, j: whole[index[i], j], name="y")
    return te.create_prim_func([a, b, index, y])


@T.prim_func(s_tir=True)
def recurrence(a: T.Buffer((64,), "float32"), b: T.Buffer((64,), "float32")) -> None:
    """b[i] = b[i - 1] + a[i]: every iteration needs the one before."""
    for i in range(63):
        with T.sblock("scan"):
            vi = T.axis.spatial(63, i)
            b[vi + 1] = b[vi] + a[vi + 1]


@T.prim_func(s_tir=True)
def quadratic_store(a: T.Buffer((8,), "float32"), b: T.Buffer((64,), "float32")) -> None:
    """b[i * i] = a[i]: not affine."""
    for i in range(8):
        with T.sblock("store"):
            vi = T.axis.spatial(8, i)
            b[vi * vi] = a[vi]


@T.prim_func(s_tir=True)
def empty(a: T.Buffer((4, 0), "float32"), b: T.Buffer((4, 0), "float32")) -> None:
    """A dimension of size zero."""
    for i, j in T.grid(4, 0):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = a[vi, vj]
