# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a loop's body may run iterations ahead."""

from __future__ import annotations

from uir_tvm.igraph import Loop
from uir_tvm.optimize import multibuffer
from uir_tvm.optimize.loads_ahead import Stages, stages_of
from uir_tvm.verify.access import GraphFacts

from .equal import assert_same_bits
from .toy import toy

REGS = "  t = iPointer(reg, fp32, 16)\n  u = iPointer(reg, fp32, 16)\n  acc = iPointer(reg, fp32, 16)\n"


def stages(body: str) -> Stages:
    """Of the loop over k, with one iteration ahead."""
    graph = toy(REGS + body)
    loop = next(n for n in graph.body if isinstance(n, Loop) and str(n.var) == "k")
    found = stages_of(GraphFacts(graph), loop, 1)
    # what runs ahead must leave every value as it is
    if found.ahead:
        assert_same_bits(graph, multibuffer.run(graph))
    return found


def test_a_register_that_a_loop_of_its_own_reads_later() -> None:
    """A pointer that is loaded anew behind the loop, once, and read there in every iteration of another."""
    found = stages(
        """
  for k in 8 [pipeline=2] {
    move.dram.reg.fp32 t[0; (1,16); (16,1)], x[16*k; (1,16); (16,1)]
    move.reg.dram.fp32 y[16*k; (1,16); (16,1)], t[0; (1,16); (16,1)]
  }
  move.dram.reg.fp32 t[0; (1,16); (16,1)], x[128; (1,16); (16,1)]
  for m in 8 {
    move.reg.dram.fp32 y[128 + 16*m; (1,16); (16,1)], t[0; (1,16); (16,1)]
  }
"""
    )
    assert found.ahead == (0,) and "t" in found.private and not found.reasons


def test_a_node_that_also_fills_what_nobody_loads_stays() -> None:
    """What is only filled has one place: iterations in flight would clear each other's sums."""
    found = stages(
        """
  for k in 16 [pipeline=2] {
    for i in 2 {
      move.dram.reg.fp32 t[8*i; (1,8); (8,1)], x[16*k + 8*i; (1,8); (8,1)]
      fill.fp32 acc[8*i; (1,8); (8,1)] [1.0]
    }
    binary.add.fp32 acc[0; (1,16); (16,1)], acc[0; (1,16); (16,1)], t[0; (1,16); (16,1)]
    move.reg.dram.fp32 y[16*k; (1,16); (16,1)], acc[0; (1,16); (16,1)]
  }
"""
    )
    assert not found.ahead
