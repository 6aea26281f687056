# SPDX-License-Identifier: Apache-2.0
"""Work that the units of a group share: group forms, exchanges through sram, tiles staged together.

Each schedule is run twice, as TVM lowers it and as the interpreter runs its iGraph; both equal TVM's
lowering of the function before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import te
from tvm.s_tir import Schedule
from uir_tvm.errors import ExtractionError
from uir_tvm.extract import extract
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.schedule.annotations import GROUP

from .compare import TOLERANCE, check, random_inputs, run_tvm
from .schedules import prim

GRID = HardwareModel("grid", "cpu", 4, 4, 1 << 16, 1 << 16, 32)  # type: ignore[call-arg]
F32 = "float32"


def ops(graph: IGraph) -> list[str]:
    """What there is: class of iOp and scope of each iOp that has one."""
    return [f"{iop.op}.{iop.attrs['scope']}" for iop, _ in graph.walk() if "scope" in iop.attrs]


def same(func: Any, sch: Schedule) -> IGraph:
    """The graph of a schedule, after all three agree."""
    scheduled = sch.mod["main"]
    graph, _ = check(func, scheduled, hardware=GRID)
    inputs = random_inputs(graph, {})
    pairs = zip(run_tvm(func, graph, inputs), run_tvm(scheduled, graph, inputs), strict=True)
    for before, after in pairs:
        np.testing.assert_allclose(after, before, rtol=TOLERANCE[F32], atol=TOLERANCE[F32])
    return graph


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


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("rows, tile", [(32, 2), (8, 1), (30, 4)])
def test_reduction(rows: int, tile: int, size: int) -> None:
    """A row's sum is shared by a set; only its first unit stores it."""
    func = row_sum(rows, 64)
    sch = Schedule(func)
    block = sch.get_sblock("out")
    sch.group_reduce(block, sch.get_loops(block)[-1], size, hardware=GRID)
    _, lid, *_ = sch.map_to_units(block, tile=(tile, None), group_size=size, hardware=GRID)
    attach(sch, lid, "out_rf")
    graph = same(func, sch)
    assert "reduce.group" in ops(graph)
    assert graph.num_units == 4


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


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("rows, cols, tile", [(24, 64, 2), (8, 32, 1), (20, 128, 3)])
def test_softmax(rows: int, cols: int, tile: int, size: int) -> None:
    """All units go on with the maximum and the sum: each reduce is followed by a broadcast."""
    func = softmax(rows, cols)
    graph = same(func, schedule_softmax(func, size, tile))
    kinds = ops(graph)
    assert kinds.count("reduce.group") == kinds.count("broadcast.group") == 2
    # every unit has but its share of a row in reg
    assert graph.pointer("e_local").size == tile * cols // size


@pytest.mark.parametrize("size", [2, 4])
def test_normalisation(size: int) -> None:
    """Mean and mean of squares in one pass, a scale per column."""

    def build(a: Any, g: Any) -> Any:
        k, m = te.reduce_axis((0, 48), "k"), te.reduce_axis((0, 48), "m")
        s = te.compute((20,), lambda i: te.sum(a[i, k], axis=k), "s")
        q = te.compute((20,), lambda i: te.sum(a[i, m] * a[i, m], axis=m), "q")
        mean = te.compute((20,), lambda i: s[i] / 48.0, "mean")
        scale = te.compute(
            (20,), lambda i: te.rsqrt(q[i] / 48.0 - mean[i] * mean[i] + te.const(1e-5, F32)), "scale"
        )
        return te.compute((20, 48), lambda i, j: (a[i, j] - mean[i]) * scale[i] * g[j], "out")

    func = prim(build, ((20, 48), F32), ((48,), F32))
    sch = Schedule(func)
    for name in ("s", "q"):
        block = sch.get_sblock(name)
        sch.group_reduce(block, sch.get_loops(block)[-1], size, hardware=GRID)
    _, lid, *_ = sch.map_to_units("out", tile=(2, None), group_size=size, hardware=GRID)
    attach(sch, lid, "scale", "mean", "q", "q_rf", "s", "s_rf")
    assert ops(same(func, sch)).count("reduce.group") == 2


def test_the_leader_broadcasts() -> None:
    """group_broadcast: the sum is the first unit's, and a broadcast of its own hands it on."""
    rows, cols, size = 16, 64, 4

    def build(a: Any) -> Any:
        k = te.reduce_axis((0, cols), "k")
        s = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), "s")
        return te.compute((rows, cols), lambda i, j: a[i, j] / s[i], "out")

    func = prim(build, ((rows, cols), F32))
    sch = Schedule(func)
    block = sch.get_sblock("s")
    sch.group_reduce(block, sch.get_loops(block)[-1], size, hardware=GRID)
    sch.group_broadcast("out", "s", size, hardware=GRID)
    _, lid, *_ = sch.map_to_units("out", tile=(2, None), group_size=size, hardware=GRID)
    attach(sch, lid, "s_shared", "s", "s_rf")
    kinds = ops(same(func, sch))
    assert kinds.count("reduce.group") == kinds.count("broadcast.group") == 1


def test_a_parameter_is_broadcast() -> None:
    """The first unit of each set loads the bias, the others get it from there."""
    func = prim(
        lambda a, b: te.compute((16, 64), lambda i, j: a[i, j] + b[i], "out"), ((16, 64), F32), ((16,), F32)
    )
    sch = Schedule(func)
    sch.group_broadcast("out", "a1", 4, hardware=GRID)
    _, lid, *_ = sch.map_to_units("out", tile=(2, None), group_size=4, hardware=GRID)
    attach(sch, lid, "a1_shared")
    graph = same(func, sch)
    assert "broadcast.group" in ops(graph)


def test_an_exchange_through_sram() -> None:
    """A pair that is no group form (the final reduction maps what it adds) stores and reads all parts."""
    func = row_sum(16, 64)
    sch = Schedule(func)
    block = sch.get_sblock("out")
    sch.group_reduce(block, sch.get_loops(block)[-1], 4, hardware=GRID)
    # a consumer of the partial results beside the final reduction
    sch.cache_read(block, 0, "local")
    _, lid, *_ = sch.map_to_units(block, tile=(2, None), group_size=4, hardware=GRID)
    copy = next(
        b for b in sch.get_child_blocks(sch.get_sblock("root")) if "rf_shared" in sch.get(b).name_hint
    )
    sch.compute_at(copy, lid)
    attach(sch, lid, "out_rf")
    graph = same(func, sch)
    kinds = ops(graph)
    assert "reduce.group" not in kinds and "sync.sram" in kinds


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


def test_units_stage_an_operand_together() -> None:
    """Each unit of a group brings a part of b; barriers stand around the reads."""

    def share(sch: Schedule) -> None:
        staged = sch.get_sblock("a1_shared")
        sch.group_share(staged, sch.get_loops(staged)[-2], 4, hardware=GRID)

    func = product(32, 16, 24)
    graph = same(func, stage_b(func, share))
    (staged,) = [p for p in graph.pointers if p.level == "sram"]
    assert staged.size == 8 * 16
    assert ops(graph).count("sync.sram") == 2


def test_units_that_do_not_share_have_parts_of_their_own() -> None:
    """Without group_share every unit stages all of b for itself: no syncs, four times the sram."""
    func = product(32, 16, 24)
    graph = same(func, stage_b(func, lambda sch: None))
    (staged,) = [p for p in graph.pointers if p.level == "sram"]
    assert staged.size == 4 * 8 * 16
    assert "sync.sram" not in ops(graph)


def refusal(scheduled: Any) -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        extract(scheduled, GRID)
    assert caught.value.remedy or caught.value.need
    return caught.value


def test_a_reduction_needs_partial_results() -> None:
    func = row_sum(16, 64)
    sch = Schedule(func)
    i, k = sch.get_loops(sch.get_sblock("out"))
    outer, _ = sch.split(k, [4, None])
    sch.annotate(i, "uir.parallel", "4,4")
    sch.annotate(outer, GROUP, 4)
    assert "group_reduce" in refusal(sch.mod["main"]).remedy


def test_what_members_share_must_be_the_same_for_all() -> None:
    """Without sets every unit has rows of its own: they cannot be shared."""
    func = prim(lambda a: te.compute((16, 64), lambda i, j: te.exp(a[i, j]), "out"), ((16, 64), F32))
    sch = Schedule(func)
    i, j = sch.get_loops(sch.get_sblock("out"))
    sch.annotate(i, "uir.parallel", "4,4")
    sch.group_share("out", j, 4, hardware=GRID)
    assert "differs from unit to unit" in refusal(sch.mod["main"]).what


def test_sets_fill_groups() -> None:
    func = prim(lambda a: te.compute((8, 64), lambda i, j: te.exp(a[i, j]), "out"), ((8, 64), F32))
    sch = Schedule(func)
    i, j = sch.get_loops(sch.get_sblock("out"))
    outer, _ = sch.split(j, [4, None])
    sch.annotate(i, "uir.parallel", "4,2")
    sch.annotate(outer, GROUP, 4)
    assert "no sets of 4" in refusal(sch.mod["main"]).what


def test_registers_are_not_shared() -> None:
    """Each unit has a part of e in reg; a reader of all of it is refused."""
    func = softmax(8, 32)
    sch = Schedule(func)
    for name in ("top", "s"):
        block = sch.get_sblock(name)
        sch.group_reduce(block, sch.get_loops(block)[-1], 4, hardware=GRID)
    _, lid, *_ = sch.map_to_units("out", tile=(1, None), group_size=4, hardware=GRID)
    attach(sch, lid, "s", "s_rf", "e", "top", "top_rf")
    # shared along other lines than those of its readers
    block = sch.get_sblock("e")
    inner = sch.get_loops(block)[-1]
    _, member = sch.split(inner, [None, 4])
    sch.annotate(member, GROUP, 4)
    assert "another unit" in refusal(sch.mod["main"]).what
