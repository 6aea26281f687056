# SPDX-License-Identifier: Apache-2.0
"""Groups that units take in turn: which graphs get the loop, and that its loads run ahead and end with it."""

from __future__ import annotations

import pytest
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import IGraph, Loop, parse_igraph, print_igraph, walk_body
from uir_tvm.igraph.affine import Affine, var
from uir_tvm.igraph.dealt import AHEAD, DEALT, says_so
from uir_tvm.optimize import deal_groups, hoist, multibuffer, split_live_ranges
from uir_tvm.verify import equivalent, verify

from . import pairs
from .equal import assert_same_bits

TEXT = pairs.text("deal_groups", "before")
#: A tile for each group, which no bound leaves empty.
WHOLE = TEXT.replace("; rows :n - 4*pid", "").replace("(n + 3) / 4", "n").replace("(n, 32)", "(n, 128)")
N, PID, K = var("n"), var("pid"), var("k")
#: Rows of open length: the bound of a tile says nothing of groups.
INNER = f"""{pairs.HARDWARE}
igraph inner on toy parallel (3*n, 1) {{
  size n = [1, 64]
  size s = [1, 64]
  x = iPointer(dram, fp32, (n, 3, s), in)
  y = iPointer(dram, fp32, (n, 3, s), out)
  t = iPointer(reg, fp32, 64)
  u = iPointer(reg, fp32, 64)
  move.dram.reg.fp32 t[0; (1,64); (64,1); cols :s], x[s*pid; (1,64); (64,1); cols :s]
  unary.exp.fp32 u[0; (1,64); (64,1); cols :s], t[0; (1,64); (64,1); cols :s]
  move.reg.dram.fp32 y[s*pid; (1,64); (64,1); cols :s], u[0; (1,64); (64,1); cols :s]
}}
"""
#: Units that wait for whole queues.
LATE = "vector_bytes = 64\n  figure late_stores = 1"


def loops(graph: IGraph) -> list[Loop]:
    return [node for node in graph.body if isinstance(node, Loop)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # every group has a unit of its own
        ("[0, 4096]", "[0, 16]"),
        # groups of several units, which may share memory
        (", 1) {", ", 2) {"),
        # memory beside the parameters
        ("  w = iPointer", "  z = iPointer(sram, fp32, 4)\n  w = iPointer"),
        ("  w = iPointer", "  z = iPointer(dram, fp32, 4)\n  w = iPointer"),
        # a loop that loads ahead by itself
        ("  binary.mul", "  for k in 2 [pipeline=2] { fill.fp32 w[0; (1,32); (32,1)] [1.0] }\n  binary.mul"),
        # how many groups there are no size decides
        ("((n + 3) / 4, 1)", "(1024, 1)"),
    ],
)
def test_other_graphs_stay_as_they_are(old: str, new: str) -> None:
    graph = parse_igraph(TEXT.replace(old, new))
    assert old in TEXT and deal_groups.run(graph) is graph


@pytest.mark.parametrize("text", [WHOLE, INNER], ids=["whole", "inner"])
def test_rounds_beyond_the_last_group_are_none(text: str) -> None:
    """No bound says so: the loop does, and a graph whose groups are fewer than its tiles is refused."""
    graph = parse_igraph(text)
    verify(graph)
    made = deal_groups.run(graph)
    (loop,) = loops(made)
    assert loop.attrs[DEALT]
    assert not any(loop.var in str(end) for iop in loop.body for piece in iop.slices() for end in piece.valid)
    assert equivalent(graph, made, bits=True)
    assert_same_bits(graph, made)
    with pytest.raises(VerifyError, match="beyond the end"):
        verify(made.replace(groups=made.groups + 1))
    with pytest.raises(VerifyError, match="No unit writes"):
        verify(made.replace(groups=made.groups // 2))


def test_what_is_ahead_needs_its_condition() -> None:
    """A load for a later round that is not left out where there is none leaves its tensor."""
    made = multibuffer.run(split_live_ranges.run(deal_groups.run(parse_igraph(INNER))))
    verify(made)
    bare = [
        Loop(
            node.var,
            node.extent,
            [Loop(n.var, n.extent, n.body) if isinstance(n, Loop) else n for n in node.body],
            node.attrs,
        )
        if isinstance(node, Loop) and DEALT in node.attrs
        else node
        for node in made.body
    ]
    with pytest.raises(VerifyError, match="beyond the end"):
        verify(made.replace(body=bare))


@pytest.mark.parametrize(
    ("end", "tiles", "told"),
    [
        (N - 4 * PID - 64 * K, (N + 3) // 4 - PID - 16 * K, True),
        (N - 4 * PID - 64 * K + 1, (N + 3) // 4 - PID - 16 * K, False),
        (N - 4 * PID, (N + 3) // 4 - PID - 16 * K, False),
        (N - PID - 16 * K, N - PID - 16 * K, True),
        (N - PID, N - PID - 16 * K, False),
    ],
)
def test_which_bounds_say_that_no_tiles_are_left(end: Affine, tiles: Affine, told: bool) -> None:
    assert says_so(end, tiles) is told


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("text", [TEXT, WHOLE], ids=["ends", "whole"])
def test_tiles_are_loaded_ahead_and_what_they_share_once(text: str, late: bool) -> None:
    """Nothing leads out of the loop, which may end after any round; what is ahead has a condition."""
    graph = parse_igraph(text.replace("vector_bytes = 64", LATE) if late else text)
    made = multibuffer.run(split_live_ranges.run(hoist.run(deal_groups.run(graph))))
    verify(made)
    (loop,) = (node for node in loops(made) if DEALT in node.attrs)
    assert made.body[-1].var == loop.var and loop.attrs["stages"] == 2
    ahead = [node.attrs[AHEAD] for node in loop.body if isinstance(node, Loop)]
    assert ahead == ([2, 1] if late else [1])
    inside = {str(piece.pointer.name) for iop, _ in walk_body(loop.body) for piece in iop.slices()}
    assert "g" not in inside and {"x", "y"} <= inside
    assert_same_bits(graph, made)
    again = parse_igraph(print_igraph(made))
    assert print_igraph(again) == print_igraph(made) and again.num_groups == 4


def test_a_loop_whose_buffers_do_not_fit_twice_is_left_single() -> None:
    """Nobody asked for stages: one that has no room for them is no error."""
    graph = parse_igraph(TEXT.replace("reg_bytes = 4096", "reg_bytes = 1500"))
    made = multibuffer.run(hoist.run(deal_groups.run(graph)))
    (loop,) = loops(made)
    assert DEALT in loop.attrs and "stages" not in loop.attrs and "pipeline" not in loop.attrs
    verify(made)
