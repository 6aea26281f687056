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
