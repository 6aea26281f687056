# SPDX-License-Identifier: Apache-2.0
"""Reductions and row-wise chains give what TVM's own lowering gives."""

from __future__ import annotations

import pytest
from tvm import te, tirx, topi
from tvm.s_tir import Schedule
from tvm.script import tirx as T
from uir_tvm.schedule.annotations import LOOP, PARALLEL

from .compare import GROUPED, check
from .schedules import map_rows, prim

F32 = "float32"


@T.prim_func(s_tir=True)
def softmax(A: T.Buffer((37, 50), "float32"), B: T.Buffer((37, 50), "float32")):
    m = T.sblock_alloc_buffer((37,))
    e = T.sblock_alloc_buffer((37, 50))
    s = T.sblock_alloc_buffer((37,))
    for i, k in T.grid(37, 50):
        with T.sblock("m"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                m[vi] = T.min_value("float32")
            m[vi] = T.max(m[vi], A[vi, vk])
    for i, k in T.grid(37, 50):
        with T.sblock("e"):
            vi, vk = T.axis.remap("SS", [i, k])
            e[vi, vk] = T.exp(A[vi, vk] - m[vi])
    for i, k in T.grid(37, 50):
        with T.sblock("s"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[vi] = T.float32(0)
            s[vi] = s[vi] + e[vi, vk]
    for i, k in T.grid(37, 50):
        with T.sblock("d"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = e[vi, vk] / s[vi]


@pytest.mark.parametrize(("units", "rows"), [(3, 4), (4, 1), (1, 8)])
def test_softmax_in_one_pass(units, rows):
    """Intermediates hold one row tile; 37 rows are ragged for every choice here."""
    graph, _ = check(softmax, map_rows(softmax, "d", units, rows, local=("s", "e", "m")))
    assert graph.pointer("e_local").size == rows * 50
    assert graph.pointer("m_local").size == rows


def test_init_is_folded():
    """A sum that is filled with 0 and updated once is one reduce; the maximum keeps its finite start."""
    graph, _ = check(softmax, map_rows(softmax, "d", 1, 8, local=("s", "e", "m")))
    ops = [(iop.op, iop.name) for iop, _ in graph.walk()]
    assert ("binary", "add") not in ops and ("binary", "max") not in ops
    assert ("unary", "maxs") in ops


def test_softmax_unscheduled():
    """Global intermediates are dram pointers of the kernel's own."""
    graph, _ = check(softmax)
    assert {p.name for p in graph.pointers if p.level == "dram" and not p.is_param} == {"m", "e", "s"}


def test_layer_norm():
    """Two sums over rows in one pass, then the chain."""

    def build(x, g, b):
        return topi.nn.layer_norm(x, g, b, [1], 1e-5)

    func = prim(build, ((21, 40), F32), ((40,), F32), ((40,), F32))
    check(func)
    sch = Schedule(func)
    blocks = [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_sblock("root"))]
    sch = Schedule(func)
    last = sch.get_sblock(blocks[-1])
    pid, serial, _ = sch.split(sch.get_loops(last)[0], [2, None, 4])
    sch.annotate(pid, PARALLEL, "2,1")
    sch.annotate(serial, LOOP, 1)
    for name in reversed(blocks[:-1]):
        sch.compute_at(sch.get_sblock(name), serial)
        for k in range(len(sch.get(sch.get_sblock(name)).writes)):
            sch.set_scope(sch.get_sblock(name), k, "local")
    check(func, sch.mod["main"])


def _sum(axis, op=te.sum):
    def build(a):
        k = te.reduce_axis((0, a.shape[axis]), "k")
        if axis == 1:
            return te.compute((a.shape[0],), lambda i: op(a[i, k], axis=k), "out")
        return te.compute((a.shape[1],), lambda j: op(a[k, j], axis=k), "out")

    return build


@pytest.mark.parametrize("op", [te.sum, te.max, te.min])
@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_of_rows_and_columns(axis, op):
    """Row reductions read along rows, column sums across them; both with ragged sizes."""
    graph, _ = check(prim(_sum(axis, op), ((67, 83), F32)))
    axes = {iop.attrs["axis"] for iop, _ in graph.walk() if iop.op == "reduce"}
    assert axes == {"col" if axis == 0 else "row"}


def test_column_sum_in_tiles():
    """Columns over units, rows in serial tiles: the accumulator is loaded once and stored once."""
    func = prim(_sum(0), ((70, 64), F32))
    sch = Schedule(func)
    block = sch.get_sblock("out")
    j, k = sch.get_loops(block)
    pid, inner = sch.split(j, [4, 16])
    outer, rows = sch.split(k, [None, 8])
    sch.reorder(pid, outer, rows, inner)
    sch.annotate(pid, PARALLEL, "4,1")
    sch.annotate(outer, LOOP, 1)
    graph, _ = check(func, sch.mod["main"])
    moves = [loops for iop, loops in graph.walk() if iop.op == "move" and "out" in str(iop.slices())]
    assert all(not loops for iop, loops in graph.walk() if any(s.pointer.name == "out" for s in iop.slices()))
    assert not moves or len(moves) <= 2


def test_two_reduction_axes():
    """A sum over two axes around a kept one."""

    def build(a):
        i, k = te.reduce_axis((0, 9), "i"), te.reduce_axis((0, 14), "k")
        return te.compute((5,), lambda j: te.sum(a[i, j, k], axis=[i, k]), "out")

    check(prim(build, ((9, 5, 14), F32)))


def test_reduction_loops_above_the_tile():
    """A serial reduction loop outside of the spatial tile: the init goes before it."""

    def build(a):
        k = te.reduce_axis((0, 24), "k")
        return te.compute((10, 32), lambda i, j: te.sum(a[i, k, j], axis=k), "out")

    func = prim(build, ((10, 24, 32), F32))
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_sblock("out"))
    pid, ii = sch.split(i, [2, 5])
    ko, ki = sch.split(k, [6, 4])
    sch.reorder(pid, ko, ii, ki, j)
    sch.annotate(pid, PARALLEL, "2,1")
    sch.annotate(ko, LOOP, 1)
    check(func, sch.mod["main"])


def test_bool_reductions():
    """all and any: minimum and maximum of bools."""

    def build(a):
        k = te.reduce_axis((0, 9), "k")
        every = te.comm_reducer(lambda x, y: tirx.And(x, y), lambda t: tirx.const(True, t))
        return te.compute((7,), lambda i: every(a[i, k], axis=k), "out")

    check(prim(build, ((7, 9), "bool")))


@pytest.mark.parametrize("axis", [0, 1])
def test_argmax(axis):
    """An update of two buffers keeps its order: the reduction is serial, the rest a tile."""
    graph, _ = check(prim(lambda a: topi.argmax(a, axis), ((12, 17), F32)))
    assert any(loops for _, loops in graph.walk())


def test_scan_is_serial():
    """A loop that reads what its last iteration wrote runs in order."""

    @T.prim_func(s_tir=True)
    def scan(A: T.Buffer((6, 20), "float32"), B: T.Buffer((6, 20), "float32")):
        with T.sblock("scan"):
            for i in range(6):
                B[i, 0] = A[i, 0]
                for j in range(19):
                    B[i, j + 1] = B[i, j] + A[i, j + 1]

    check(scan)


@pytest.mark.parametrize("annotated", [True, False])
def test_matmul(annotated):
    """c += a.b with 3 ragged tile loops: one contract iOp, or a serial loop over k."""

    def build(a, b):
        k = te.reduce_axis((0, 45), "k")
        return te.compute((19, 34), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "out")

    func = prim(build, ((19, 45), F32), ((45, 34), F32))
    sch = Schedule(func)
    block = sch.get_sblock("out")
    i, j, k = sch.get_loops(block)
    pid, ii = sch.split(i, [None, 8])
    jo, ji = sch.split(j, [None, 16])
    ko, ki = sch.split(k, [None, 16])
    sch.reorder(pid, jo, ko, ii, ji, ki)
    sch.annotate(pid, PARALLEL, "3,1")
    for loop in (jo, ko):
        sch.annotate(loop, LOOP, 1)
    if annotated:
        sch.annotate(block, "uir.contract", 1)
    graph, _ = check(func, sch.mod["main"])
    assert any(iop.op == "contract" for iop, _ in graph.walk()) is annotated


@pytest.mark.parametrize("turned", [False, True])
def test_the_factor_of_the_columns_is_the_second_one_however_it_is_written(turned):
    """Its loop walks the stored columns: the other way round the result would be stored by columns."""

    def build(a, b):
        k = te.reduce_axis((0, 12), "k")

        def product(i, j):
            return b[k, j] * a[i, k] if turned else a[i, k] * b[k, j]

        return te.compute((6, 10), lambda i, j: te.sum(product(i, j), axis=k), "out")

    func = prim(build, ((6, 12), F32), ((12, 10), F32))
    sch = Schedule(func)
    block = sch.get_sblock("out")
    pid, _ = sch.split(sch.get_loops(block)[0], [3, None])
    sch.annotate(pid, PARALLEL, "3,1")
    sch.annotate(block, "uir.contract", 1)
    graph, _ = check(func, sch.mod["main"])
    (product,) = [iop for iop, _ in graph.walk() if iop.op == "contract"]
    assert tuple(product.target.shape) == (2, 10)
    assert [tuple(source.shape) for source in product.sources] == [(2, 12), (12, 10)]


@pytest.mark.parametrize("side", [0, 1])
def test_a_sum_over_one_factor_alone_is_no_depth_of_a_contraction(side):
    """Both factors have k; l, which one of them has, is a loop around."""

    def build(a, b):
        k, m = te.reduce_axis((0, 12), "k"), te.reduce_axis((0, 3), "l")

        def product(i, j):
            return a[i, k] * b[k, j, m] if side else a[i, k, m] * b[k, j]

        return te.compute((6, 10), lambda i, j: te.sum(product(i, j), axis=[k, m]), "out")

    shapes = ((6, 12), (12, 10, 3)) if side else ((6, 12, 3), (12, 10))
    func = prim(build, *((shape, F32) for shape in shapes))
    sch = Schedule(func)
    block = sch.get_sblock("out")
    pid, _ = sch.split(sch.get_loops(block)[0], [3, None])
    sch.annotate(pid, PARALLEL, "3,1")
    sch.annotate(block, "uir.contract", 1)
    graph, _ = check(func, sch.mod["main"])
    (shape,) = {iop.sources[0].shape for iop, _ in graph.walk() if iop.op == "contract"}
    assert 12 in shape


def test_units_of_a_group_share_sram():
    """A shared buffer holds what the whole group touches; a barrier stands between writers and readers."""

    def build(a):
        twice = te.compute(a.shape, lambda i, j: a[i, j] * 2.0, "twice")
        return te.compute(a.shape, lambda i, j: twice[i // 8 * 8 + 7 - i % 8, j] + 1.0, "out")

    func = prim(build, ((16, 12), F32))
    sch = Schedule(func)
    out, twice = sch.get_sblock("out"), sch.get_sblock("twice")
    pid, ii = sch.split(sch.get_loops(out)[0], [8, 2])
    sch.annotate(pid, PARALLEL, "2,4")
    sch.set_scope(twice, 0, "shared")
    # each unit writes its two rows; what it reads is another unit's
    sch.compute_at(twice, pid)
    graph, _ = check(func, sch.mod["main"], hardware=GROUPED)
    assert graph.pointer("twice_shared").level == "sram"
