# SPDX-License-Identifier: Apache-2.0
"""Loops over a unit's tiles: how many units and rounds there are at some sizes, and how they are written."""

from __future__ import annotations

import pytest
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import parse_igraph, print_igraph
from uir_tvm.igraph.dealt import is_dealt, tile_of
from uir_tvm.igraph.rounds import needless_rounds
from uir_tvm.igraph.sizes import at
from uir_tvm.verify import verify

TEXT = """
hardware h { kind = h num_groups = 3 num_units = 1 reg_bytes = 4096 sram_bytes = 0 vector_bytes = 32 }
igraph rows on h parallel ((n + 3) / 4 up_to 3, 1) {
  size n = [0, 100000]
  x = iPointer(dram, fp32, (n, 8), in)
  y = iPointer(dram, fp32, (n, 8), out)
  t = iPointer(reg, fp32, 32)
  for tile in 8334 [dealt=true] {
    move.dram.reg.fp32 t[0; (4,8); (8,1); rows :n - 4*pid - 12*tile], x[32*pid + 96*tile; (4,8); (8,1); \
rows :n - 4*pid - 12*tile]
    move.reg.dram.fp32 y[32*pid + 96*tile; (4,8); (8,1); rows :n - 4*pid - 12*tile], t[0; (4,8); (8,1); \
rows :n - 4*pid - 12*tile]
  }
}
""".replace("\\\n", "")


def test_units_and_rounds_follow_the_sizes() -> None:
    """Not the hundred thousand of the greatest: the interpreter, reports and models run such graphs."""
    graph = parse_igraph(TEXT)
    verify(graph)
    found = [
        (made.num_groups, made.body[0].extent) for made in (at(graph, {"n": n}) for n in (0, 4, 12, 13, 40))
    ]
    assert found == [(0, 1), (1, 1), (3, 1), (3, 2), (3, 4)]
    assert is_dealt(graph) and needless_rounds(graph) == 1
    assert str(tile_of("tile", 3, 1)) == "pid + 3*tile + 3"


def test_the_text_says_how_many_groups_there_are_at_most() -> None:
    graph = parse_igraph(TEXT)
    assert "parallel (((n + 3) / 4) up_to 3, 1)" in print_igraph(graph)
    assert print_igraph(parse_igraph(print_igraph(graph))) == print_igraph(graph)


def test_fewer_groups_than_sizes_make_need_a_loop_that_deals_them() -> None:
    graph = parse_igraph(TEXT.replace(" [dealt=true]", ""))
    with pytest.raises(VerifyError, match="up to 25000 groups, but says 3"):
        verify(graph)


def test_a_loop_that_is_too_short_for_the_last_tiles_leaves_elements_unwritten() -> None:
    with pytest.raises(VerifyError) as raised:
        verify(parse_igraph(TEXT.replace("8334", "8333")))
    assert raised.value.rule == "coverage"
