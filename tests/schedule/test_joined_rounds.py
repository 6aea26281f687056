# SPDX-License-Identifier: Apache-2.0
"""Producers of guarded rows are attached as TVM attaches them, in one loop over the rows."""

from __future__ import annotations

import contextlib

import pytest
from tvm import te, tirx
from tvm.s_tir import Schedule
from uir_tvm import hardware
from uir_tvm.schedule import row_chain
from uir_tvm.schedule.blocks import loop_extent
from uir_tvm.schedule.driver import apply_default
from uir_tvm.schedule.joined_rounds import joined_rounds
from uir_tvm.schedule.row_chain import attach_producers, map_chain

CPU = hardware.get("avx512-2core")


def softmax(*shape: int) -> tirx.PrimFunc:
    """Softmax along the last dimension."""
    x = te.placeholder(shape, name="x")
    k, j = (te.reduce_axis((0, shape[-1]), name=name) for name in "kj")
    most = te.compute(shape[:-1], lambda *at: te.max(x[(*at, k)], axis=k), name="most")
    raised = te.compute(shape, lambda *at: te.exp(x[at] - most[at[:-1]]), name="raised")
    total = te.compute(shape[:-1], lambda *at: te.sum(raised[(*at, j)], axis=j), name="total")
    y = te.compute(shape, lambda *at: raised[at] / total[at[:-1]], name="y")
    return te.create_prim_func([x, y])


def extents(sch: Schedule, block: str) -> list[int]:
    return [loop_extent(sch, loop) for loop in sch.get_loops(sch.get_sblock(block))]


@pytest.mark.parametrize("shape", [(35, 384), (5, 7, 64), (36, 384), (7, 5000), (3, 11, 13, 100)])
def test_functions_are_those_of_tvm(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that threads share unevenly and evenly, of several dimensions, and some to a tile."""
    ours = apply_default(softmax(*shape), CPU)
    monkeypatch.setattr(row_chain, "joined_rounds", lambda *_: contextlib.nullcontext())
    assert ours.script() == apply_default(softmax(*shape), CPU).script()


def test_guarded_rows_are_one_loop_inside() -> None:
    """What is attached inside sees all rows, and is guarded as the others afterwards."""
    sch = Schedule(softmax(35, 384), debug_mask="none")
    nest = map_chain(sch, CPU, 35, (1, None), num_groups=2)
    assert extents(sch, "y")[:2] == [2, 18]
    with joined_rounds(sch, nest.pid, nest.lid):
        assert extents(sch, "y")[:2] == [1, 35]
        sch.compute_at("total", nest.lid, preserve_unit_loops=True)
    assert extents(sch, "y")[:2] == extents(sch, "total")[:2] == [2, 18]
    text = sch.mod["main"].script()
    assert text.count("T.where(") == 2 and text.count("< T.int64(35)") + text.count("< 35") == 2, text


@pytest.mark.parametrize("rows", [36, 2])
def test_even_rows_are_left_alone(rows: int) -> None:
    """Without a guard there is nothing to join."""
    sch = Schedule(softmax(rows, 384), debug_mask="none")
    nest = map_chain(sch, CPU, rows, (1, None), num_groups=2)
    before = sch.mod["main"]
    with joined_rounds(sch, nest.pid, nest.lid):
        assert sch.mod["main"].same_as(before)
    attach_producers(sch, nest)
    assert extents(sch, "total")[:2] == [2, rows // 2]
