# SPDX-License-Identifier: Apache-2.0
"""What of a graph runs where a run of all of it takes too long: units first, then iterations."""

from __future__ import annotations

import math

import pytest
from uir_tvm.verify.sample import cost, plan

from .graphs import graph

GRAPH = graph(
    """
    a = iPointer(dram, fp32, 8192, in)
    b = iPointer(dram, fp32, 8192, out)
    r = iPointer(reg, fp32, 8)
    for k in 16 {
      move.dram.reg.fp32 r[0; (1,8); (8,1)], a[8*k + 128*pid; (1,8); (8,1)]
      move.reg.dram.fp32 b[8*k + 128*pid; (1,8); (8,1)], r[0; (1,8); (8,1)]
    }""",
    (64, 1),
)


def test_what_fits_the_budget_runs_as_a_whole() -> None:
    assert plan(GRAPH, math.inf).whole and plan(GRAPH, cost(GRAPH)).whole


@pytest.mark.parametrize(("share", "iterations"), [(0.5, {}), (3 / 64, {}), (0.04, {"k": (0, 1, 8, 14, 15)})])
def test_fewer_units_come_before_fewer_iterations(share: float, iterations: dict) -> None:
    found = plan(GRAPH, cost(GRAPH) * share)
    assert found.units == (0, 32, 63) and dict(found.iterations) == iterations
    parts = 3 / 64 * (5 / 16 if iterations else 1)
    assert found.seconds == pytest.approx(cost(GRAPH) * parts)
