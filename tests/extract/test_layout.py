# SPDX-License-Identifier: Apache-2.0
"""Data movement: transposes, reshapes, concatenation, padding, pooling, slices, gathers, scatters."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx, topi
from tvm.s_tir import Schedule
from tvm.script import tirx as T
from uir_tvm.schedule.annotations import LOOP, PARALLEL

from .compare import check
from .schedules import map_rows, prim

F32 = "float32"


def test_transpose_in_tiles():
    """16 x 16 tiles of a ragged matrix, both sides bounded."""
    func = prim(lambda a: te.compute((50, 37), lambda i, j: a[j, i], "out"), ((37, 50), F32))
    graph, _ = check(func, map_rows(func, "out", 2, 16, 16))
    assert {iop.op for iop, _ in graph.walk()} == {"move"}


def test_heads_to_the_front():
    """[b, s, h, d] -> [b, h, s, d]: rows and columns stay strided slices."""
    func = prim(lambda a: topi.transpose(a, (0, 2, 1, 3)), ((2, 12, 4, 16), F32))
    graph, _ = check(func)
    assert not any(iop.op == "gather" for iop, _ in graph.walk())
    check(func, map_rows(func, "T_transpose", 2, 3, fuse=3))


def test_reshape_then_transpose():
    """A fused dimension that the address divides is split, not gathered."""

    def build(a):
        return te.compute((2, 4, 12, 16), lambda b, h, s, d: a[b, s, h * 16 + d], "out")

    def back(a):
        return te.compute((2, 12, 64), lambda b, s, x: a[b, x // 16, s, x % 16] * 2.0, "out")

    for func in (prim(build, ((2, 12, 64), F32)), prim(back, ((2, 4, 12, 16), F32))):
        graph, _ = check(func)
        assert not any(iop.op == "gather" for iop, _ in graph.walk())


def test_unaligned_reshape():
    """50 elements per row read as rows of 12: no factor fits, so addresses are computed and gathered."""
    func = prim(lambda a: te.compute((6, 50), lambda i, j: a[(i * 50 + j) // 12, (i * 50 + j) % 12], "out"),
                ((25, 12), F32))  # fmt: skip
    check(func)


def test_concat_in_one_expression():
    """Each part of the output is loaded in its own box, with no mask."""
    func = prim(lambda a, b: topi.concatenate((a, b), 1), ((6, 20), F32), ((6, 13), F32))
    graph, _ = check(func)
    assert not any(iop.op in ("select", "gather") for iop, _ in graph.walk())
    check(func, map_rows(func, "T_concat", 2, 3, 16))


def test_concat_by_separate_blocks():
    """Two blocks write two parts of one output."""

    @T.prim_func(s_tir=True)
    def concat(
        A: T.Buffer((6, 20), "float32"), B: T.Buffer((6, 13), "float32"), C: T.Buffer((6, 33), "float32")
    ):
        for i, j in T.grid(6, 20):
            with T.sblock("a"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
        for i, j in T.grid(6, 13):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj + 20] = B[vi, vj]

    check(concat)


def test_padding_is_one_move():
    """A padded copy: one move with the pad, one to dram."""
    func = prim(lambda a: topi.nn.pad(a, (0, 1, 2), (0, 2, 1), 1.5), ((3, 5, 6), F32))
    graph, _ = check(func)
    assert [iop.op for iop, _ in graph.walk()] == ["move", "move"]
    assert any(iop.attrs.get("pad") == 1.5 for iop, _ in graph.walk())


def test_value_under_padding():
    """Arithmetic inside of the padded branch is only done where it is chosen."""

    def build(a):
        return te.compute(
            (8, 9),
            lambda i, j: tirx.if_then_else(tirx.all(i >= 1, i < 7, j >= 2), te.exp(a[i - 1, j - 2]), 7.0),
            "out",
        )

    graph, _ = check(prim(build, ((6, 7), F32)))
    # the condition is a box: one move reads what lies in it
    assert "gather" not in [iop.op for iop, _ in graph.walk()]


def test_condition_that_is_no_box():
    """A triangle couples rows and columns; what is loaded under it never leaves its buffer."""

    check(prim(lambda a: te.compute((7, 7), lambda i, j: tirx.if_then_else(j < i, a[i - j - 1], 0.5), "out"),
               ((6,), F32)))  # fmt: skip


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_with_padding(kind):
    """A padded window, unscheduled and with the padded rows staged in reg."""

    def build(a):
        return topi.nn.pool2d(a, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), kind)

    func = prim(build, ((2, 3, 9, 9), F32))
    check(func)
    if kind == "max":
        sch = Schedule(func)
        pool = sch.get_sblock("pool_max")
        fused = sch.fuse(*sch.get_loops(pool)[:2])
        pid, serial = sch.split(fused, [2, None])
        sch.annotate(pid, PARALLEL, "2,1")
        sch.annotate(serial, LOOP, 1)
        sch.compute_at(sch.get_sblock("pad_temp"), serial)
        sch.set_scope(sch.get_sblock("pad_temp"), 0, "local")
        graph, _ = check(func, sch.mod["main"])
        assert graph.pointer("pad_temp_local").size == 11 * 11


@pytest.mark.parametrize("size", [3, 5])
def test_windows_that_hang_over_are_boxes(size):
    """Rows of a tile are those of the window: its columns have conditions together with the result's."""

    def build(a):
        return topi.nn.pool2d(a, (size, size), (1, 1), (1, 1), (size // 2,) * 4, "max")

    func = prim(build, ((1, 2, 9, 9), F32))
    sch = Schedule(func)
    sch.compute_inline(sch.get_sblock("pad_temp"))
    images, channels, rows, *_ = sch.get_loops(sch.get_sblock("pool_max"))
    sch.annotate(sch.fuse(images, channels), PARALLEL, "2,1")
    sch.annotate(rows, LOOP, 1)
    graph, _ = check(func, sch.mod["main"])
    assert all(iop.op not in ("gather", "select") for iop, _ in graph.walk())


def test_strided_slice():
    """A stride in both dimensions."""
    func = prim(lambda a: te.compute((6, 9), lambda i, j: a[i * 2 + 1, j * 3 + 2], "out"), ((13, 30), F32))
    check(func)
    check(func, map_rows(func, "out", 2, 2, 4))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_embedding_gathers_rows(dtype):
    """A table indexed by data: whole rows, and the ragged tail of the batch."""
    func = prim(
        lambda t, i: te.compute((21, 16), lambda b, j: t[i[b], j], "out"), ((5, 16), F32), ((21,), dtype)
    )
    graph, _ = check(func, map_rows(func, "out", 2, 4))
    assert any(iop.op == "gather" and iop.sources[0].cols == 16 for iop, _ in graph.walk())


def test_a_row_beyond_the_table_under_a_condition():
    """The last index names no row behind it: what is not chosen is not read either."""

    def build(t, i):
        return te.compute(
            (6, 4), lambda b, j: tirx.if_then_else(i[b] < 4, t[i[b] + 1, j], T.float32(0.5)), "out"
        )

    func = prim(build, ((5, 4), F32), ((6,), "int32"))
    check(func, map_rows(func, "out", 2, 2), given={"i": np.array([4, 0, 3, 4, 1, 2])})


def test_gather_of_every_second_element_of_rows():
    func = prim(
        lambda t, i: te.compute((6, 7), lambda b, j: t[i[b], j * 2 + 1], "out"),
        ((5, 16), F32),
        ((6,), "int32"),
    )
    graph, _ = check(func)
    (table,) = [iop.sources[0] for iop, _ in graph.walk() if iop.op == "gather"]
    assert tuple(table.stride) == (16, 2)


def test_gather_of_elements():
    """An index that varies along both axes gathers single elements."""
    func = prim(
        lambda t, i: te.compute((6, 7), lambda b, j: t[b, i[b, j]], "out"), ((6, 5), F32), ((6, 7), "int32")
    )
    check(func)


def test_scatter():
    """A store whose row is data; no two rows are the same."""

    @T.prim_func(s_tir=True)
    def scatter(K: T.Buffer((6,), "int32"), U: T.Buffer((6, 8), "float32"), V: T.Buffer((10, 8), "float32")):
        for i, j in T.grid(10, 8):
            with T.sblock("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                V[vi, vj] = T.float32(0)
        for i, j in T.grid(6, 8):
            with T.sblock("put"):
                vi, vj = T.axis.remap("SS", [i, j])
                V[K[vi], vj] = U[vi, vj]

    graph, _ = check(scatter, given={"K": np.array([9, 0, 3, 1, 7, 5])})
    assert any(iop.op == "scatter" for iop, _ in graph.walk())


def test_scatter_add_with_repeats():
    """Rows that repeat accumulate: each must see what the one before it wrote."""

    @T.prim_func(s_tir=True)
    def scatter(K: T.Buffer((6,), "int32"), U: T.Buffer((6, 8), "float32"), V: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.sblock("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                V[vi, vj] = T.float32(0)
        for i, j in T.grid(6, 8):
            with T.sblock("put"):
                vi, vj = T.axis.remap("SS", [i, j])
                V[K[vi], vj] = V[K[vi], vj] + U[vi, vj]

    check(scatter, given={"K": np.array([1, 0, 1, 1, 3, 0])})


def test_rotary():
    """Halves of each head swapped with a sign, times cosines and sines of the position."""

    def build(x, cos, sin):
        def turned(b, s, h, d):
            return tirx.if_then_else(d < 8, 0.0 - x[b, s, h, d + 8], x[b, s, h, d - 8])

        return te.compute(
            (2, 5, 3, 16),
            lambda b, s, h, d: x[b, s, h, d] * cos[s, d] + turned(b, s, h, d) * sin[s, d],
            "out",
        )

    func = prim(build, ((2, 5, 3, 16), F32), ((5, 16), F32), ((5, 16), F32))
    check(func)
    check(func, map_rows(func, "out", 2, 4, fuse=3))


def test_reshape_is_a_copy():
    """Row-major indices of one shape taken apart for another flatten to the same address."""
    func = prim(lambda a: topi.reshape(a, (30, 37, 8)), ((2, 37, 15, 8), F32))
    graph, _ = check(func)
    assert {iop.op for iop, _ in graph.walk()} == {"move"}


def test_the_inner_of_three_loops_become_one():
    """The first two do not: all of x is read in every iteration of the first."""
    func = prim(lambda x: te.compute((4, 5, 6), lambda i, j, k: x[j, k] + 1.0, "out"), ((5, 6), F32))
    graph, _ = check(func)
    assert {tuple(iop.target.shape)[1] for iop, _ in graph.walk()} == {30}
