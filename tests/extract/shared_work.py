# SPDX-License-Identifier: Apache-2.0
"""Functions and schedules of them in which the units of a group share work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel

from .schedules import prim

GRID = HardwareModel("grid", "cpu", 4, 4, 1 << 16, 1 << 16, 32)  # type: ignore[call-arg]
F32 = "float32"


def row_sum(rows: int, cols: int) -> Any:
    def build(a: Any) -> Any:
        k = te.reduce_axis((0, cols), "k")
        return te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), "out")

    return prim(build, ((rows, cols), F32))


def attach(sch: Schedule, lid: Any, *names: str, scope: str = "local") -> None:
    """Compute blocks at a loop, consumers first."""
    for name in names:
        block = sch.get_sblock(name)
        sch.compute_at(block, lid)
        if str(sch.get(block).writes[0].source.scope()) == "global":
            sch.set_scope(block, 0, scope)


def softmax(rows: int, cols: int) -> Any:
    def build(a: Any) -> Any:
        k, m = te.reduce_axis((0, cols), "k"), te.reduce_axis((0, cols), "m")
        top = te.compute((rows,), lambda i: te.max(a[i, k], axis=k), "top")
        e = te.compute((rows, cols), lambda i, j: te.exp(a[i, j] - top[i]), "e")
        s = te.compute((rows,), lambda i: te.sum(e[i, m], axis=m), "s")
        return te.compute((rows, cols), lambda i, j: e[i, j] / s[i], "out")

    return prim(build, ((rows, cols), F32))


def schedule_softmax(func: Any, size: int, tile: int) -> Schedule:
    """Both reductions, the exponentials and the quotients shared by sets."""
    sch = Schedule(func)
    for name in ("top", "s"):
        block = sch.get_sblock(name)
        sch.group_reduce(block, sch.get_loops(block)[-1], size, hardware=GRID)
    _, lid, *_ = sch.map_to_units("out", tile=(tile, None), group_size=size, hardware=GRID)
    attach(sch, lid, "s", "s_rf", "e", "top", "top_rf")
    sch.group_share("e", sch.get_loops(sch.get_sblock("e"))[-1], size, hardware=GRID)
    return sch


def product(rows: int, cols: int, depth: int) -> Any:
    def build(a: Any, b: Any) -> Any:
        k = te.reduce_axis((0, depth), "k")
        return te.compute((rows, cols), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "out")

    return prim(build, ((rows, depth), F32), ((depth, cols), F32))


def stage_b(func: Any, share: Callable[[Schedule], None]) -> Schedule:
    """A product whose operand b is staged in sram for every step of k; the accumulator in reg."""
    sch = Schedule(func)
    block = sch.get_sblock("out")
    held = sch.cache_write(block, 0, "local")
    staged = sch.cache_read(block, 1, "shared")
    i, j, k = sch.get_loops(block)
    pid, ii = sch.split(i, [8, None])
    ko, ki = sch.split(k, [None, 8])
    sch.reorder(pid, ko, ii, j, ki)
    sch.annotate(pid, "uir.parallel", "2,4")
    sch.annotate(ko, "uir.loop", 1)
    sch.reverse_compute_at(held, pid)
    sch.compute_at(staged, ko)
    share(sch)
    return sch


def schedule_row_sum(func: Any, size: int, tile: int) -> Schedule:
    """A row's sum is shared by a set."""
    sch = Schedule(func)
    block = sch.get_sblock("out")
    sch.group_reduce(block, sch.get_loops(block)[-1], size, hardware=GRID)
    _, lid, *_ = sch.map_to_units(block, tile=(tile, None), group_size=size, hardware=GRID)
    attach(sch, lid, "out_rf")
    return sch


def stage_tile(func: Any, operand: int, loop: int) -> Schedule:
    """A product in tiles of which the units of a group have one row; an operand is staged by all of them."""
    sch = Schedule(func)
    block = sch.get_sblock("out")
    held = sch.cache_write(block, 0, "local")
    staged = sch.cache_read(block, operand, "shared")
    i, j, k = sch.get_loops(block)
    (io, ii), (jo, ji), (ko, ki) = sch.split(i, [2, None]), sch.split(j, [4, None]), sch.split(k, [None, 8])
    sch.reorder(io, jo, ko, ii, ji, ki)
    pid = sch.fuse(io, jo)
    sch.annotate(pid, "uir.parallel", "2,4")
    sch.annotate(ko, "uir.loop", 1)
    sch.reverse_compute_at(held, pid)
    sch.compute_at(staged, ko)
    sch.group_share(staged, sch.get_loops(staged)[loop], 4, hardware=GRID)
    return sch


def share_b(sch: Schedule) -> None:
    """The rows of the staged operand are brought by all four units of a group."""
    staged = sch.get_sblock("a1_shared")
    sch.group_share(staged, sch.get_loops(staged)[-2], 4, hardware=GRID)


def keep_b(sch: Schedule) -> None:
    """Every unit stages all of it."""
