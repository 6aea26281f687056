# SPDX-License-Identifier: Apache-2.0
"""Work that the units of a group share: group forms, exchanges through sram, tiles staged together.

Each schedule is run twice, as TVM lowers it and as the interpreter runs its iGraph; both equal TVM's
lowering of the function before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import te, topi
from tvm.s_tir import Schedule
from uir_tvm.errors import ExtractionError
from uir_tvm.igraph import IGraph
from uir_tvm.schedule.annotations import GROUP

from tests.extracted import extracted
from tests.target.cuda.products import Product

from .compare import TOLERANCE, check, random_inputs, run_tvm
from .schedules import prim
from .shared_work import (
    F32,
    GRID,
    attach,
    keep_b,
    product,
    row_sum,
    schedule_row_sum,
    schedule_softmax,
    share_b,
    softmax,
    stage_b,
    stage_tile,
)


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


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("rows, tile", [(32, 2), (8, 1), (30, 4)])
def test_reduction(rows: int, tile: int, size: int) -> None:
    """A row's sum is shared by a set; only its first unit stores it."""
    func = row_sum(rows, 64)
    graph = same(func, schedule_row_sum(func, size, tile))
    assert "reduce.group" in ops(graph)
    assert graph.num_units == 4


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


@pytest.mark.parametrize("rows, tile, size", [(12, 2, 4), (13, 4, 2)])
def test_a_reduction_of_tiles(rows: int, tile: int, size: int) -> None:
    """Partial results of rows and columns go line by line; the last tile is ragged."""

    def build(a: Any) -> Any:
        k = te.reduce_axis((0, 8), "k")
        s = te.compute((rows, 20), lambda i, j: te.sum(a[i, k, j], axis=k), "s")
        return te.compute((rows, 20), lambda i, j: s[i, j] * s[i, j], "out")

    func = prim(build, ((rows, 8, 20), F32))
    sch = Schedule(func)
    block = sch.get_sblock("s")
    sch.group_reduce(block, sch.get_loops(block)[-1], size, hardware=GRID)
    _, lid, *_ = sch.map_to_units("out", tile=(tile, None), group_size=size, hardware=GRID)
    attach(sch, lid, "s", "s_rf")
    assert "reduce.group" in ops(same(func, sch))


def test_a_reduction_of_pairs() -> None:
    """argmax has no group form: its partial values and indices are exchanged through sram."""
    func = prim(lambda a: topi.argmax(a, 1), ((16, 64), F32))
    sch = Schedule(func)
    block = sch.get_sblock("a0_red_temp")
    sch.group_reduce(block, sch.get_loops(block)[-1], 4, hardware=GRID)
    _, lid, *_ = sch.map_to_units("a0_red", tile=(2, None), row_loops=1, group_size=4, hardware=GRID)
    for name in ("a0_red_temp", "a0_red_temp_rf"):
        made = sch.get_sblock(name)
        sch.compute_at(made, lid)
        for index, region in enumerate(sch.get(made).writes):
            if str(region.source.scope()) == "global":
                sch.set_scope(made, index, "local")
    kinds = ops(same(func, sch))
    assert "reduce.group" not in kinds and "sync.sram" in kinds


@pytest.mark.parametrize("shared", [True, False])
def test_what_sram_holds_all_units_of_a_set_see(shared: bool) -> None:
    """Exponentials in sram: each unit makes some of those that others read, or the leader makes all."""
    func = softmax(8, 32)
    sch = Schedule(func)
    for name in ("top", "s"):
        block = sch.get_sblock(name)
        sch.group_reduce(block, sch.get_loops(block)[-1], 4, hardware=GRID)
    _, lid, *_ = sch.map_to_units("out", tile=(1, None), group_size=4, hardware=GRID)
    attach(sch, lid, "s", "s_rf")
    attach(sch, lid, "e", scope="shared")
    attach(sch, lid, "top", "top_rf")
    if shared:
        _, member = sch.split(sch.get_loops(sch.get_sblock("e"))[-1], [None, 4])
        sch.annotate(member, GROUP, 4)
    graph = same(func, sch)
    assert "sync.sram" in ops(graph)
    assert graph.pointer("e_shared").size == 32


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


def test_units_stage_an_operand_together() -> None:
    """Each unit of a group brings a part of b; barriers stand around the reads."""
    func = product(32, 16, 24)
    graph = same(func, stage_b(func, share_b))
    (staged,) = [p for p in graph.pointers if p.level == "sram"]
    assert staged.size == 8 * 16
    assert ops(graph).count("sync.sram") == 2


@pytest.mark.parametrize("transposed", [False, True])
def test_a_staged_tile_is_what_the_units_touch(transposed: bool) -> None:
    """Units in rows and columns (pid / 2 % 2, pid % 2) touch 128 rows of a and 64 columns of b a stage."""
    graph = Product(512, 4096, 64, "float32", a_transposed=transposed).graph("h200")
    staged = {p.name: p.size for p in graph.pointers if p.level == "sram"}
    assert staged == {"a0_shared": 3 * 128 * 16, "a1_shared": 3 * 64 * 16}


@pytest.mark.parametrize("shape", [(16, 64, 24), (14, 60, 20)])
@pytest.mark.parametrize("loop", [-2, -1])
def test_units_of_one_row_of_tiles_stage_its_operand(shape: tuple[int, int, int], loop: int) -> None:
    """Iteration p works on row p / 4 of the tiles: a is the same for the four units of a group."""
    func = product(*shape)
    graph = same(func, stage_tile(func, 0, loop))
    assert ops(graph).count("sync.sram") == 2


def test_what_differs_between_units_is_not_staged_together() -> None:
    """Of b each of them has columns of its own."""
    func = product(16, 64, 24)
    assert "differs from unit to unit" in refusal(stage_tile(func, 1, -2).mod["main"]).what


def test_units_that_do_not_share_have_parts_of_their_own() -> None:
    """Without group_share every unit stages all of b for itself: no syncs, four times the sram."""
    func = product(32, 16, 24)
    graph = same(func, stage_b(func, keep_b))
    (staged,) = [p for p in graph.pointers if p.level == "sram"]
    assert staged.size == 4 * 8 * 16
    assert "sync.sram" not in ops(graph)


def refusal(scheduled: Any) -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        extracted(scheduled, GRID)
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
