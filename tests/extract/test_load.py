# SPDX-License-Identifier: Apache-2.0
"""Addresses of loads are bounded by the ranges of loops and by the conditions of the statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tvm.script import tirx as T
from uir_tvm.extract.box import Atom, Box
from uir_tvm.extract.load import _highest, _is_inside_whatever_index, guard_box
from uir_tvm.igraph import IPointer, ISlice, var
from uir_tvm.igraph.affine import Affine, affine
from uir_tvm.igraph.space import Space

from .compare import check

ROW, COL = var("i"), var("j")


def context(*atoms: Affine) -> Any:
    """i below 8, j below 4, where all of the atoms are 1 or more."""
    space = Space({"i": 8, "j": 4})
    return SimpleNamespace(converter=SimpleNamespace(space=space), atoms=[Atom(atom) for atom in atoms])


@pytest.mark.parametrize(
    ("expr", "atoms", "highest"),
    [
        (ROW, (), 7),
        (ROW, (5 - ROW,), 4),
        (ROW * 3 + COL, (5 - ROW,), 15),
        (ROW * 4, (9 - ROW * 2,), 16),
        # no multiple of the condition takes the variable out
        (ROW * 3, (9 - ROW * 2,), 21),
        # a condition from below says nothing of the highest value
        (ROW, (ROW - 2,), 7),
        (-ROW, (ROW - 2,), -3),
        (ROW + COL, (5 - ROW, 3 - COL), 6),
        (affine(6), (5 - ROW,), 6),
    ],
)
def test_an_upper_bound_uses_the_conditions(expr: Affine, atoms: tuple[Affine, ...], highest: int) -> None:
    assert _highest(context(*atoms), expr) == highest


def test_all_guards_are_one_box_unless_one_is_none() -> None:
    def guarded(*boxes: Box | None) -> str:
        made = context()
        made.guards = list(boxes)
        return str(guard_box(made))

    rows, cols = Box(row_end=affine(3)), Box(col_begin=COL)
    assert guarded() == "None"
    assert guarded(rows) == str(rows) != str(cols)
    assert guarded(rows, cols) == str(Box(row_end=affine(3), col_begin=COL))
    assert guarded(rows, None) == guarded(None, rows) == "None"


@pytest.mark.parametrize(("offset", "inside"), [(0, True), (4, False), (-1, False)])
def test_a_table_of_rows_lies_inside_as_a_whole(offset: int, inside: bool) -> None:
    pointer = IPointer("t", "dram", "fp32", 20)
    table = ISlice(pointer, affine(offset), (5, 4), (4, 1))
    storage = cast(Any, SimpleNamespace(pointer=pointer))
    assert _is_inside_whatever_index(context(), storage, table) is inside


def test_what_is_read_where_a_guard_does_not_hold_is_not_chosen() -> None:
    """Column p + 1 of the last plane is none, and a bound that is data keeps it out; so it does wild rows."""

    @T.prim_func(s_tir=True)
    def looked_up(
        X: T.Buffer((5, 4, 6), "float32"),
        rows: T.Buffer((8,), "int32"),
        ends: T.Buffer((8,), "int32"),
        B: T.Buffer((4, 8, 6), "float32"),
    ):
        for p in T.serial(4, annotations={"uir.loop": 1}):
            for i, j in T.grid(8, 6):
                with T.sblock("b"):
                    vp, vi, vj = T.axis.remap("SSS", [p, i, j])
                    B[vp, vi, vj] = T.if_then_else(vp + 1 < ends[vi], X[rows[vi], vp + 1, vj], T.float32(-1))

    given = {
        "rows": np.array([0, 4, 2, 9, -3, 1 << 30, 3, 4]),
        "ends": np.array([4, 4, 2, 0, 1, -1, 3, 1]),
    }
    graph, (got,) = check(looked_up, given=given)
    assert (got.reshape(4, 8, 6)[3] == -1).all()
    ops = [iop.op for iop, _ in graph.walk()]
    assert ops.count("gather") == ops.count("select") == 1
