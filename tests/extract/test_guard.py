# SPDX-License-Identifier: Apache-2.0
"""A condition that the ranges of loops decide is no condition: one side is all."""

from __future__ import annotations

import pytest
from tvm import te, tirx

from .compare import check
from .schedules import prim


@pytest.mark.parametrize("above", [True, False])
def test_a_side_that_is_always_chosen_is_all(above: bool) -> None:
    def build(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        def chosen(i: tirx.Var, j: tirx.Var) -> tirx.Expr:
            always = i + j < 20 if above else i + j > 20
            return tirx.if_then_else(always, x[i, j] + 1.0, y[i, j])

        return te.compute((6, 9), chosen, "out")

    graph, _ = check(prim(build, ((6, 9), "float32"), ((6, 9), "float32")))
    read = {str(s.pointer.name) for iop, _ in graph.walk() for s in iop.sources if s.pointer.level == "dram"}
    assert len(read) == 1 and all(iop.op != "select" for iop, _ in graph.walk())


def test_choices_with_the_same_other_side_are_one_move() -> None:
    """What is padded twice is loaded where it lies, with zeros around it, and masked by nothing."""

    def build(x: te.Tensor) -> te.Tensor:
        def padded(i: tirx.Var, j: tirx.Var) -> tirx.Expr:
            inner = tirx.if_then_else(tirx.all(i >= 1, j >= 2, j < 8), x[i - 1, j - 2], 0.0)
            return tirx.if_then_else(i < 7, inner, 0.0)

        return te.compute((9, 10), padded, "out")

    graph, _ = check(prim(build, ((6, 6), "float32")))
    assert {iop.op for iop, _ in graph.walk()} == {"move"}
