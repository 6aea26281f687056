# SPDX-License-Identifier: Apache-2.0
"""Loops, predicates and traces of `split` are those of TVM's own split."""

from __future__ import annotations

import pytest
import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError
from tvm.script import tirx as T
from tvm_ffi import structural_equal
from uir_tvm.schedule import split_loop


@T.prim_func(s_tir=True)
def copy(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (30, 100))
    B = T.match_buffer(b, (30, 100))
    for i, j in T.grid(30, 100):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


@T.prim_func(s_tir=True)
def wide(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (T.int64(30), T.int64(100)))
    B = T.match_buffer(b, (T.int64(30), T.int64(100)))
    for i, j in T.grid(T.int64(30), T.int64(100)):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


@T.prim_func(s_tir=True)
def two_blocks(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (100, 7))
    B = T.match_buffer(b, (100, 7))
    C = T.match_buffer(c, (100,))
    for i in range(100):
        for j in range(7):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for j in range(7):
            with T.sblock("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vj]


@T.prim_func(s_tir=True)
def open_rows(a: T.handle, b: T.handle, n: T.int64) -> None:
    A = T.match_buffer(a, (n, T.int64(100)))
    B = T.match_buffer(b, (n, T.int64(100)))
    for i, j in T.grid(n, T.int64(100)):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def _theirs(sch: Schedule, loop: object, factors: list[object]) -> list[object]:
    return list(sch.split(loop, factors))


WAYS = (split_loop.split, _theirs)


def _same(ours: Schedule, theirs: Schedule) -> None:
    assert structural_equal(ours.mod, theirs.mod)
    assert ours.mod.script() == theirs.mod.script()
    assert str(ours.trace) == str(theirs.trace)
    assert str(ours.trace.as_json()) == str(theirs.trace.as_json())


@pytest.mark.parametrize("func", [copy, wide, two_blocks, open_rows], ids=lambda func: func.__name__)
@pytest.mark.parametrize("factors", [[None, 64], [3, None], [2, None, 8], [16, 7], [None, 5], [None, 128]])
def test_is_tvms(func: tvm.tirx.PrimFunc, factors: list[int | None]) -> None:
    """Of the outermost loop, whether its predicate is needed or not."""
    made = []
    for way in WAYS:
        sch = Schedule(func)
        loop = sch.get_loops(sch.get_sblock("copy"))[0]
        try:
            way(sch, loop, factors)
        except ScheduleError:
            made.append(None)  # too few iterations, of one way as of the other
        else:
            made.append(sch)
    ours, theirs = made
    assert (ours is None) == (theirs is None)
    if ours is not None:
        _same(ours, theirs)


def test_predicates_join() -> None:
    """A second split guards a block that is guarded, and a fused loop keeps what stands for its parts."""
    made = []
    for split in WAYS:
        sch = Schedule(copy)
        loop = sch.fuse(*sch.get_loops(sch.get_sblock("copy")))
        outer, inner = split(sch, loop, [None, 256])
        split(sch, outer, [5, None])
        split(sch, inner, [None, 96])
        made.append(sch)
    _same(*made)
    assert made[0].mod.script().count("T.where") == 1


def test_sampled_factors() -> None:
    """The trace says the random variable, and replays as TVM's own."""
    made = []
    for split in WAYS:
        sch = Schedule(copy, seed=3)
        factor = sch.sample_categorical([48, 64], [0.5, 0.5], decision=0)
        split(sch, sch.get_loops(sch.get_sblock("copy"))[1], [None, factor])
        made.append(sch)
    _same(*made)
    again = Schedule(copy)
    made[0].trace.apply_to_schedule(again, remove_postproc=False)
    assert structural_equal(again.mod, made[0].mod)
    assert "T.where" in again.mod.script()


def test_asks_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM proves nothing where numbers say that there are too many iterations, also of open sizes."""
    told = []
    stock = Schedule.split

    def counted(self: Schedule, loop: object, factors: list[object], **options: bool) -> list[object]:
        told.append(options.get("disable_predication", False))
        return stock(self, loop, factors, **options)

    monkeypatch.setattr(Schedule, "split", counted)
    for func, factor in ((copy, 64), (open_rows, 64), (copy, 10)):
        sch = Schedule(func)
        split_loop.split(sch, sch.get_loops(sch.get_sblock("copy"))[0], [None, factor])
    assert told == [True, True, False]
