# SPDX-License-Identifier: Apache-2.0
"""What is printed reads back to the same graph, and looks like the definition's examples."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from uir_tvm.errors import IGraphError
from uir_tvm.igraph import Affine, IGraph, IOp, IPointer, ISlice, Loop, make, parse_igraph, print_igraph, var
from uir_tvm.igraph.text import print_affine, print_iop, print_pointer, print_slice

from .strategies import affines, printable_igraphs, runnable_igraphs

A = IPointer("a", "dram", "fp32", 8192, "in")
B = IPointer("b", "reg", "fp32", 64)
TILE = ISlice(B, 0, (2, 32))


@settings(max_examples=60, deadline=None)
@given(printable_igraphs())
def test_round_trip(graph: IGraph) -> None:
    assert parse_igraph(print_igraph(graph)) == graph


@settings(max_examples=20, deadline=None)
@given(runnable_igraphs())
def test_round_trip_of_complete_operators(graph: IGraph) -> None:
    assert parse_igraph(str(graph)) == graph


@given(affines(("pid", "i")))
def test_expressions_round_trip(expression: Affine) -> None:
    body = [make.fill(TILE.replace(offset=expression), 0.0)]
    graph = IGraph("g", parse_igraph(EMPTY).hardware, 1, 1, [B], body)
    (iop,) = parse_igraph(print_igraph(graph)).body
    assert str(iop.target.offset) == print_affine(expression)


EMPTY = """\
hardware host {
  kind = cpu
  num_groups = 64
  num_units = 1
  reg_bytes = 16384
  sram_bytes = 0
  vector_bytes = 64
}

igraph empty on host parallel (64, 1) {
}
"""


def test_text_of_an_empty_graph_is_stable() -> None:
    assert print_igraph(parse_igraph(EMPTY)) == EMPTY


def test_text_is_close_to_the_definition() -> None:
    s = ISlice(A, 4096 * var("lid") + 64 * var("pid"), (2, 32))
    assert print_pointer(A) == "iPointer(dram, fp32, 8192, in)"
    assert print_pointer(B) == "iPointer(reg, fp32, 64)"
    assert print_iop(make.move(TILE, s)) == (
        "move.dram.reg.fp32 b[0; (2,32); (32,1)], a[4096*lid + 64*pid; (2,32); (32,1)]"
    )
    assert print_iop(make.unary("muls", TILE, TILE, [2.0])) == (
        "unary.muls.fp32 b[0; (2,32); (32,1)], b[0; (2,32); (32,1)] [2.0]"
    )
    buffer = ISlice(IPointer("u", "sram", "fp32", 8), 0, (4, 2))
    assert print_iop(make.reduce("add", TILE.replace(shape=(2, 1)), TILE, "row", "group", buffer, 4)) == (
        "reduce.add.row.group.fp32 b[0; (2,1); (32,1)], b[0; (2,32); (32,1)] "
        "[buffer=u[0; (4,2); (2,1)], group_size=4]"
    )


def test_valid_ranges_are_printed_per_axis() -> None:
    n = 100 - var("pid")
    assert print_slice(TILE.replace(rows=(None, n))).endswith("; rows :-pid + 100]")
    assert print_slice(TILE.replace(rows=(1, None), cols=(n, n + 2))).endswith(
        "; rows 1:; cols -pid + 100:-pid + 102]"
    )


def test_iops_that_break_rules_still_print() -> None:
    assert print_iop(IOp("warp", "", "fp32", [TILE], [], {"x": 1})) == "warp.fp32 b[0; (2,32); (32,1)] [x=1]"
    assert print_iop(IOp("reduce", "add", "fp32", [TILE], [TILE])).startswith("reduce.add.?.?.fp32 ")


def test_what_has_no_text_is_refused() -> None:
    hardware = parse_igraph(EMPTY).hardware
    with pytest.raises(IGraphError, match="cannot be written"):
        print_igraph(IGraph("g", hardware, 1, 1, [], [Loop("two words", 1, [])]))
    with pytest.raises(IGraphError, match="cannot be written"):
        print_igraph(IGraph("g", hardware, 1, 1, [], [], {"x": A}))
