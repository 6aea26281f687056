# SPDX-License-Identifier: Apache-2.0
"""What is inlined and what gets memory of its own before a recipe schedules a function."""

from __future__ import annotations

import operator
from functools import reduce

import pytest
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.script import tirx as T
from uir_tvm.schedule import prepare as prepare_module
from uir_tvm.schedule.blocks import leaf_blocks
from uir_tvm.schedule.prepare import prepare


def prepared(func: tirx.PrimFunc) -> Schedule:
    sch = Schedule(func)
    prepare(sch)
    return sch


def written(sch: Schedule) -> list[list[str]]:
    return [list(block.writes) for block in leaf_blocks(sch)]


def test_an_output_that_is_read_on_is_a_copy_of_a_value() -> None:
    """The second result reads a register, not the memory of the first one."""
    x = te.placeholder((60, 100), name="x")
    first = te.compute((60, 100), lambda i, j: te.exp(x[i, j]), name="first")
    second = te.compute((60, 100), lambda i, j: first[i, j] + x[j % 60, i], name="second")
    sch = prepared(te.create_prim_func([x, first, second]))
    assert sorted(written(sch)) == [["first"], ["first_local"], ["second"]]
    (reader,) = (block for block in leaf_blocks(sch) if "second" in block.writes)
    assert set(reader.reads) == {"first_local", "x"}


def test_long_expressions_are_not_written_into_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader's operations, and twice those that it would get, are limited."""
    monkeypatch.setattr(prepare_module, "MAX_FLOPS", 12)
    x = te.placeholder((60, 100), name="x")

    def squares(tensor: te.Tensor, count: int, name: str) -> te.Tensor:
        return te.compute(
            (60, 100), lambda i, j: reduce(operator.mul, [tensor[i, j]] * (count + 1)), name=name
        )

    def left(ours: int, reader: int) -> int:
        func = te.create_prim_func([x, squares(squares(x, ours, "a"), reader, "b")])
        assert [block.flops for block in leaf_blocks(Schedule(func))] == [ours, reader]
        return len(leaf_blocks(prepared(func)))

    assert [left(4, 4), left(3, 6), left(4, 5), left(5, 4)] == [1, 1, 2, 2]


@T.prim_func(s_tir=True)
def goes_on(x: T.Buffer((8, 16), "float32"), y: T.Buffer((8, 16), "float32")) -> None:
    """y += the sums of x."""
    for i, j in T.grid(8, 16):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            y[vi, 0] = y[vi, 0] + x[vi, vj]


def test_an_output_that_goes_on_from_what_it_holds_stays() -> None:
    assert written(prepared(goes_on)) == [["y"]]
