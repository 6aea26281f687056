# SPDX-License-Identifier: Apache-2.0
"""What no iGraph expresses is refused with the block, the need and the remedy."""

from __future__ import annotations

import pytest
from tvm import te
from tvm.s_tir import Schedule
from tvm.script import tirx as T
from uir_tvm.errors import ExtractionError
from uir_tvm.schedule.annotations import PARALLEL

from tests.extracted import extracted

from .compare import HARDWARE
from .schedules import prim


def _refused(func) -> str:
    with pytest.raises(ExtractionError) as caught:
        extracted(func, HARDWARE)
    return str(caught.value)


def test_zero_extent():
    """An empty loop is named."""

    @T.prim_func(s_tir=True)
    def empty(A: T.Buffer((4,), "float32")):
        for nothing in range(0):
            with T.sblock("b"):
                v = T.axis.spatial(4, nothing)
                A[v] = T.float32(0)

    assert "'nothing' has extent 0" in _refused(empty)


def test_symbolic_shape():
    """A unit's loop over an open dimension has no bound: sizes decide how many units there are."""

    @T.prim_func(s_tir=True)
    def dynamic(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.sblock("b"):
                v = T.axis.spatial(n, i)
                B[v] = A[v]

    assert "as sizes decide" in _refused(dynamic)


def test_scalar_parameter():
    """A scalar parameter is named, with the way round it."""

    @T.prim_func(s_tir=True)
    def scaled(n: T.int32, A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                A[v] = T.Cast("float32", n)

    message = _refused(scaled)
    assert "'n'" in message and "remedy" in message


def test_block_outside_of_the_parallel_loop():
    """Every block must lie inside of the parallel loop."""

    def build(a):
        b = te.compute(a.shape, lambda i: a[i] + 1.0, "first")
        return te.compute(a.shape, lambda i: b[i] * 2.0, "second")

    sch = Schedule(prim(build, ((16,), "float32")))
    sch.annotate(sch.split(sch.get_loops(sch.get_sblock("second"))[0], [4, 4])[0], PARALLEL, "4,1")
    assert "parallel loop" in _refused(sch.mod["main"])


def test_parallel_extent():
    """The annotation and the extent of the parallel loop agree."""
    sch = Schedule(prim(lambda a: te.compute(a.shape, lambda i: a[i] + 1.0, "out"), ((16,), "float32")))
    sch.annotate(sch.get_loops(sch.get_sblock("out"))[0], PARALLEL, "4,1")
    assert "extent 16" in _refused(sch.mod["main"])


def test_thread_binding():
    """Thread axes are TVM's own; the message says what to do instead."""
    sch = Schedule(prim(lambda a: te.compute(a.shape, lambda i: a[i] + 1.0, "out"), ((16,), "float32")))
    sch.bind(sch.get_loops(sch.get_sblock("out"))[0], "threadIdx.x")
    assert "uir.parallel" in _refused(sch.mod["main"])


def test_unknown_call():
    """A call with no iOp is named, with those that have one."""

    @T.prim_func(s_tir=True)
    def called(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                B[v] = T.nextafter(A[v], A[v])

    message = _refused(called)
    assert "nextafter" in message and "block 'b'" in message and "tanh" in message


def test_loop_under_data():
    """Loops that data decides on are refused, with the remedy."""

    @T.prim_func(s_tir=True)
    def maybe(A: T.Buffer((4,), "float32"), B: T.Buffer((4, 3), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                if A[v] > T.float32(0):
                    for j in range(3):
                        B[v, j] = A[v]

    assert "Select" in _refused(maybe)


def test_a_condition_that_its_own_stores_change():
    """Data that a branch changes itself cannot be looked at again for its next store."""

    @T.prim_func(s_tir=True)
    def changing(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                if A[v] > T.float32(0):
                    A[v] = T.float32(-1)
                    B[v] = T.float32(1)

    assert "Select" in _refused(changing)


def test_function_of_the_wrong_dtype():
    """An operation that no iOp does on that dtype is refused with block and statement."""

    @T.prim_func(s_tir=True)
    def integer_exp(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                B[v] = T.call_pure_extern("int32", "expf", A[v])

    message = _refused(integer_exp)
    assert "exp" in message and "block 'b'" in message


def test_not_a_prim_func():
    """Something else than a PrimFunc is named by its type."""
    assert "str" in _refused("main")
