# SPDX-License-Identifier: Apache-2.0
"""Loops without iterations are left out; a reduction over nothing is what it begins with."""

from __future__ import annotations

from tvm import te, tirx
from tvm_ffi.structural import structural_walk
from uir_tvm.schedule.empty_loops import without_empty_loops


def reduction(rows: int, inner: int) -> tirx.PrimFunc:
    """The sum over two axes, doubled afterwards."""
    x = te.placeholder((rows, 4, inner), name="x")
    first, second = te.reduce_axis((0, rows), name="a"), te.reduce_axis((0, inner), name="b")
    total = te.compute((4,), lambda j: te.sum(x[first, j, second], axis=[first, second]), "total")
    return te.create_prim_func([x, te.compute((4,), lambda j: total[j] * 2.0, "twice")])


def test_a_function_with_iterations_is_the_same() -> None:
    func = reduction(2, 3)
    assert without_empty_loops(func) is func


def test_a_reduction_over_nothing_is_its_start() -> None:
    """With either axis empty; what follows it stays, and no loop of the reduction does."""
    for sizes in ((0, 3), (2, 0), (0, 0)):
        made = without_empty_loops(reduction(*sizes))
        extents: list[int] = []
        structural_walk(made.body, (tirx.For, lambda loop, found=extents: found.append(int(loop.extent))))
        assert extents == [4, 4]
        assert "total[v_j] = T.float32(0.0)" in made.script() and "T.init" not in made.script()
        assert "* T.float32(2.0)" in made.script()


def test_rows_that_are_none_are_left_out() -> None:
    x = te.placeholder((0, 4), name="x")
    func = te.create_prim_func([x, te.compute((0, 4), lambda i, j: x[i, j] + 1.0, "y")])
    made = without_empty_loops(func)
    assert "for " not in made.script()
    assert [list(map(int, param.shape)) for param in made.params] == [[0, 4], [0, 4]]
