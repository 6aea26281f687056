# SPDX-License-Identifier: Apache-2.0
"""Loops without iterations are left out; a reduction over nothing is what it begins with."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm.script import tirx as T
from tvm_ffi.structural import structural_map, structural_walk
from uir_tvm.errors import ShapeError
from uir_tvm.schedule.blocks import collect
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


@T.prim_func(s_tir=True)
def in_one_nest(
    x: T.Buffer((6, 0), "float32"), y: T.Buffer((6,), "float32"), z: T.Buffer((6,), "float32")
) -> None:
    for i in range(6):
        for j in range(0):
            with T.sblock("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    y[vi] = T.float32(1)
                y[vi] += x[vi, vj]
            if i < 4:
                with T.sblock("most"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        z[vi] = T.float32(2)
                    z[vi] = T.max(z[vi], x[vi, vj])


@T.prim_func(s_tir=True)
def in_tiles(x: T.Buffer((6, 0), "float32"), y: T.Buffer((6,), "float32")) -> None:
    for i, j in T.grid(2, 0):
        with T.sblock("tile"):
            vi, vj = T.axis.remap("SR", [i, j])
            for k, r in T.grid(4, 2):
                with T.sblock("total"):
                    row = T.axis.spatial(6, vi * 4 + k)
                    column = T.axis.reduce(0, vj * 2 + r)
                    T.where(vi * 4 + k < 6 and r < 1)
                    with T.init():
                        y[row] = T.float32(1)
                    y[row] += x[row, column]


def test_every_reduction_of_a_nest_is_its_start() -> None:
    """Two in one nest, one under a condition; one in tiles with guards of rows and of what is summed."""
    for func, wanted in ((in_one_nest, ([1] * 6, [2] * 4 + [7] * 2)), (in_tiles, ([1] * 6,))):
        assert {int(loop.extent) for loop in collect(without_empty_loops(func).body, tirx.For)} <= {2, 4, 6}
        run = tvm.build(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}), target="uir-cpu")
        results = [tvm.runtime.tensor(np.full(6, 7, "float32")) for _ in wanted]
        run["main"](tvm.runtime.empty((6, 0), "float32"), *results)
        for result, numbers in zip(results, wanted, strict=True):
            assert result.numpy().tolist() == numbers, func


def refused(place: str, condition: str = "True") -> tirx.PrimFunc:
    """A sum over nothing whose row is an expression of the loops, under a condition."""
    return tvm.script.from_source(
        f"""
@T.prim_func(s_tir=True)
def main(x: T.Buffer((6, 0), "float32"), y: T.Buffer((6,), "float32")) -> None:
    for i, j in T.grid(6, 0):
        with T.sblock("total"):
            row = T.axis.spatial(6, {place})
            column = T.axis.reduce(0, j)
            T.where({condition})
            with T.init():
                y[row] = T.float32(1)
            y[row] += x[row, column]
""",
        {"T": T},
    )


@pytest.mark.parametrize(
    ("func", "why"),
    [
        (refused("i", "i + j < 3"), "decides both its elements and what is reduced"),
        (refused("i + j"), "walks both its elements and what is summed"),
    ],
)
def test_a_start_that_is_not_known_is_refused(func: tirx.PrimFunc, why: str) -> None:
    """Nothing would write the result: an error with the block, not memory as it was."""
    with pytest.raises(ShapeError, match=why) as raised:
        without_empty_loops(func)
    assert "block total" in raised.value.where


def test_two_blocks_that_begin_one_buffer_are_refused() -> None:
    """Which of them would have been last is not known once each has a nest of its own."""
    _, y, z = in_one_nest.params
    body = structural_map(in_one_nest.body, (tirx.Buffer, lambda buffer: y if buffer.same_as(z) else buffer))
    with pytest.raises(ShapeError, match="several blocks of one nest begin it"):
        without_empty_loops(in_one_nest.with_body(body))
