# SPDX-License-Identifier: Apache-2.0
"""What loads that run ahead wrote is told by the form of both accesses, and nothing else is."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IGraph, parse_igraph
from uir_tvm.verify import verify
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.written_ahead import by_rounds

TEXT = """
hardware toy {
  kind = toy
  num_groups = 1
  num_units = 1
  reg_bytes = 4096
  sram_bytes = 4096
  vector_bytes = 64
}

igraph ahead on toy parallel (4, 1) {
  size s = [1, 16]
  x = iPointer(dram, fp32, (4, 8, s), in)
  y = iPointer(dram, fp32, (4, 8, s), out)
  t = iPointer(reg, fp32, 32)
  move.dram.reg.fp32 t[0; (1,16); (16,1); cols :s], x[8*pid*s; (1,16); (16,1); cols :s]
  for k in 7 {
    move.dram.reg.fp32 t[16*((k + 1) % 2); (1,16); (16,1); cols :s],
      x[(8*pid + k + 1)*s; (1,16); (16,1); cols :s]
    move.reg.dram.fp32 y[8*pid*s + k*s; (1,16); (16,1); cols :s], t[16*(k % 2); (1,16); (16,1); cols :s]
  }
  move.reg.dram.fp32 y[8*pid*s + 7*s; (1,16); (16,1); cols :s], t[16; (1,16); (16,1); cols :s]
}
"""


def told(graph: IGraph) -> bool:
    """Whether the form says that what the loop reads of ``t`` was written."""
    accesses = GraphFacts(graph).by_pointer["t"]
    read = next(each for each in accesses if each.kind == "read" and each.loops)
    return by_rounds([each for each in accesses if each.kind == "write"], read)


def test_a_load_of_the_round_before_is_seen() -> None:
    graph = parse_igraph(TEXT)
    verify(graph)
    assert told(graph)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the first round reads what nothing wrote
        ("  move.dram.reg.fp32 t[0;", "  move.dram.reg.fp32 t[16;"),
        ("(16,1); cols :s], x[8*pid*s;", "(16,1); cols :s - 1], x[8*pid*s;"),
        # later ones do
        ("t[16*((k + 1) % 2)", "t[16*(k % 2)"),
        ("t[16*((k + 1) % 2); (1,16); (16,1); cols :s]", "t[16*((k + 1) % 2); (1,16); (16,1); cols :s - 1]"),
        ("t[16*((k + 1) % 2); (1,16)", "t[16*((k + 1) % 2); (1,8)"),
        ("t[16*((k + 1) % 2); (1,16); (16,1); cols :s]", "t[16*((k + 1) % 2); (1,16); (16,1); cols :s - k]"),
    ],
)
def test_what_is_not_written_is_not(old: str, new: str) -> None:
    assert old in TEXT and not told(parse_igraph(TEXT.replace(old, new)))
