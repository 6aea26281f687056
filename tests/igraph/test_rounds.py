# SPDX-License-Identifier: Apache-2.0
"""Rounds that do something: seen where sizes end them, and of no loop that leaves something behind."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from uir_tvm.igraph import parse_igraph, print_igraph, var
from uir_tvm.igraph.interpreter import run
from uir_tvm.igraph.rewrite import substituted
from uir_tvm.igraph.rounds import (
    ended,
    ended_by_unit,
    ended_where_many,
    limited,
    needless_rounds,
    open_rounds,
    with_rounds,
)
from uir_tvm.igraph.sizes import at

TEXT = """
hardware h { kind = cpu num_groups = 4 num_units = 2 reg_bytes = 65536 sram_bytes = 65536 vector_bytes = 32 }
igraph rows on h parallel (n, 1) {
  size n = [1, 1000]
  size m = [1, 64]
  x = iPointer(dram, fp32, (n, m, 8), in)
  y = iPointer(dram, fp32, (n, m, 8), out)
  z = iPointer(dram, fp32, (n, 8), out)
  a = iPointer(reg, fp32, 16)
  b = iPointer(reg, fp32, 16)
  for l in 32 {
    fill.fp32 b[0; (2,8); (8,1)] [1.0]
    move.dram.reg.fp32 a[0; (2,8); (8,1); rows :m - 2*l], x[8*m*pid + 16*l; (2,8); (8,1); rows :m - 2*l]
    binary.add.fp32 a[0; (2,8); (8,1); rows :m - 2*l], a[0; (2,8); (8,1); rows :m - 2*l], \
b[0; (2,8); (8,1); rows :m - 2*l]
    move.reg.dram.fp32 y[8*m*pid + 16*l; (2,8); (8,1); rows :m - 2*l], a[0; (2,8); (8,1); rows :m - 2*l]
  }
  fill.fp32 a[0; (1,8); (8,1)] [0.0]
  move.reg.dram.fp32 z[8*pid; (1,8); (8,1)], a[0; (1,8); (8,1)]
}
"""


def test_rounds_end_where_boxes_do() -> None:
    assert open_rounds(parse_igraph(TEXT)) == {"l": (var("m") + 1) // 2}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # what the last round leaves is read behind the loop
        ("z[8*pid; (1,8); (8,1)], a[0", "z[8*pid; (1,8); (8,1)], b[0"),
        # one iOp has no end, or another one
        ("y[8*m*pid + 16*l; (2,8); (8,1); rows :m - 2*l]", "y[8*m*pid + 16*l; (2,8); (8,1)]"),
        ("y[8*m*pid + 16*l; (2,8); (8,1); rows :m - 2*l]", "y[8*m*pid + 16*l; (2,8); (8,1); rows :n - 2*l]"),
        # the end depends on the round in another way
        ("m - 2*l", "m - 2*(l / 2)"),
        ("m - 2*l", "m"),
        # an end that is a number is the loop's own affair
        ("m - 2*l", "9 - 2*l"),
    ],
)
def test_other_loops_run_to_their_end(old: str, new: str) -> None:
    assert old in TEXT
    assert open_rounds(parse_igraph(TEXT.replace(old, new))) == {}


def test_static_graphs_have_none() -> None:
    static = at(parse_igraph(TEXT), {"n": 2, "m": 3})
    assert open_rounds(static) == {}
    assert needless_rounds(static) == 1 and with_rounds(static) is static


def test_loops_say_their_rounds_for_printers() -> None:
    """Then none is needless; loops whose copies run ahead are counted in rounds, and stay whole."""
    graph = parse_igraph(TEXT)
    assert needless_rounds(graph) == 32
    told = with_rounds(graph)
    assert [node.attrs["rounds"] for node in told.body if hasattr(node, "extent")] == [(var("m") + 1) // 2]
    assert needless_rounds(told) == 1
    staged = parse_igraph(TEXT.replace("for l in 32 {", "for l in 32 [stages=2] {"))
    assert not any("rounds" in node.attrs for node in with_rounds(staged).body if hasattr(node, "extent"))


NESTED = """
hardware h { kind = cpu num_groups = 4 num_units = 1 reg_bytes = 65536 sram_bytes = 0 vector_bytes = 32 }
igraph rows on h parallel (1, 1) {
  size n = [1, 16]
  size m = [1, 64]
  x = iPointer(dram, fp32, (n, m), in)
  y = iPointer(dram, fp32, (n, m), out)
  a = iPointer(reg, fp32, 1)
  for k in 16 {
    for l in 64 {
      move.dram.reg.fp32 a[0; (1,1); (1,1); rows :n - k; cols :m - l], \
x[k*m + l; (1,1); (1,1); rows :n - k; cols :m - l]
      move.reg.dram.fp32 y[k*m + l; (1,1); (1,1); rows :n - k; cols :m - l], \
a[0; (1,1); (1,1); rows :n - k; cols :m - l]
    }
  }
  for j in 32 {
    move.dram.reg.fp32 a[0; (1,1); (1,1); rows :n - j], x[j*m; (1,1); (1,1); rows :n - j]
    move.reg.dram.fp32 y[j*m; (1,1); (1,1); rows :n - j], a[0; (1,1); (1,1); rows :n - j]
  }
}
"""


def test_needless_rounds_of_loops_in_loops_multiply() -> None:
    """Of neighbours the longer way counts."""
    assert needless_rounds(parse_igraph(NESTED)) == 16 * 64


STATIC = """
hardware h { kind = cpu num_groups = 4 num_units = 1 reg_bytes = 65536 sram_bytes = 0 vector_bytes = 32 }
igraph rows on h parallel (4, 1) {
  x = iPointer(dram, fp32, 256, in)
  y = iPointer(dram, fp32, 32, out)
  a = iPointer(reg, fp32, 16)
  b = iPointer(reg, fp32, 16)
  c = iPointer(reg, fp32, 8)
  fill.fp32 c[0; (1,8); (8,1)] [0.0]
  BEFORE
    move.dram.reg.fp32 a[0; (2,8); (8,1); rows :2*pid - 2*l + 2], \
x[64*pid + 16*l; (2,8); (8,1); rows :2*pid - 2*l + 2]
    unary.exp.fp32 b[0; (2,8); (8,1); rows :2*pid - 2*l + 2], a[0; (2,8); (8,1); rows :2*pid - 2*l + 2]
    reduce.add.col.unit.fp32 a[0; (1,8); (8,1); rows :pid - l + 1], b[0; (2,8); (8,1); rows :2*pid - 2*l + 2]
    binary.add.fp32 c[0; (1,8); (8,1); rows :4*pid - 4*l + 4], c[0; (1,8); (8,1); rows :4*pid - 4*l + 4], \
a[0; (1,8); (8,1); rows :pid - l + 1]
  AFTER
  move.reg.dram.fp32 y[8*pid; (1,8); (8,1)], c[0; (1,8); (8,1)]
}
"""


@pytest.mark.parametrize("looped", [True, False])
def test_bounds_that_only_empty_rounds_become_the_end_of_a_loop(looped: bool) -> None:
    """Also where the sum stays behind the loop: nothing is added in rounds that are left out."""
    text = STATIC.replace("BEFORE", "for l in 4 {" if looped else "").replace("AFTER", "}" if looped else "")
    graph = parse_igraph(text if looped else text.replace("*l", "*3").replace("- l", "- 3"))
    freed, rounds = limited(graph)
    assert list(rounds.values()) == [var("pid") + (1 if looped else -2)]
    (loop,) = [node for node in freed.body if hasattr(node, "extent")]
    assert not any(bound is not None for iop in loop.body for s in iop.slices() for bound in s.valid)


JOINED = """
hardware h { kind = cpu num_groups = 4 num_units = 1 reg_bytes = 65536 sram_bytes = 0 vector_bytes = 32 }
igraph rows on h parallel (1, 1) {
  size n = [0, 16]
  size m = [0, 64]
  size c = [0, 8]
  x = iPointer(dram, fp32, (n, m, c), in)
  y = iPointer(dram, fp32, (n, m, c), out)
  a = iPointer(reg, fp32, 8)
  for i in 16 {
    for j in 64 {
      move.dram.reg.fp32 a[0; (1,8); (8,1); rows BEGIN:; cols :c], x[c*m*i + c*j; (1,8); (8,1); cols :c]
      move.reg.dram.fp32 y[c*m*i + c*j; (1,8); (8,1); rows BEGIN:; cols :c], a[0; (1,8); (8,1); cols :c]
    }
  }
}
""".replace("BEGIN", "-((n - i + 15) / 16) - ((m - j + 63) / 64) + 2")


def test_a_bound_of_several_conditions_ends_several_loops() -> None:
    graph = parse_igraph(JOINED)
    assert open_rounds(graph) == {"i": var("n"), "j": var("m")}
    free, rounds = limited(graph)
    assert rounds == open_rounds(graph)
    assert all(piece.row_begin is None for iop, _ in free.walk() for piece in iop.slices())
    # the columns' own bound stays
    assert all(iop.target.col_end == var("c") for iop, _ in free.walk())


def test_loops_end_for_devices_with_pipes_where_there_are_many_rounds() -> None:
    def ended(text: str) -> bool:
        return any("rounds" in str(node.attrs) for node in ended_where_many(parse_igraph(text)).body)

    many = JOINED.replace("for j in 64", "for j in 640").replace("(m - j + 63) / 64", "(m - j + 639) / 640")
    assert not ended(JOINED) and ended(many)
    # units that meet walk all rounds
    assert not ended(many.replace("num_units = 1", "num_units = 2").replace("(1, 1) {", "(1, 2) {", 1))


TRIANGLE = (pathlib.Path(__file__).parents[1] / "optimize/golden/end_loops.before.igraph").read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the first unit has no round
        ("*k + 4", "*k"),
        # the last one has more rounds than there are
        ("*k + 4", "*k + 8"),
        # the unit has no part in it
        ("4*pid - 4*k + 4", "8 - 4*k"),
        # no product: to end a loop takes longer than its rounds
        ("  contract", "  # "),
    ],
)
def test_what_may_have_no_round_or_does_little_in_one_is_not_ended_by_units(old: str, new: str) -> None:
    assert old in TRIANGLE
    graph = parse_igraph(TRIANGLE.replace("8*pid - 8*k + 8", "4*pid - 4*k + 4").replace(old, new))
    assert ended_by_unit(graph) is graph


def test_an_ended_loop_is_text_and_follows_its_variables() -> None:
    graph = ended_by_unit(parse_igraph(TRIANGLE))
    (loop,) = [node for node in graph.body if hasattr(node, "extent")]
    assert loop.attrs["rounds"] == var("pid") + 1
    assert print_igraph(parse_igraph(print_igraph(graph))) == print_igraph(graph)
    moved = substituted(loop, {"pid": var("pid") + 2 * var("turn")})
    assert moved.attrs["rounds"] == var("pid") + 2 * var("turn") + 1


#: Two groups of two units that share a tile; the second one has all rounds.
JOINT = """
hardware h { kind = cuda num_groups = 2 num_units = 2 reg_bytes = 4096 sram_bytes = 4096 vector_bytes = 64 }
igraph joint on h parallel (2, 2) {
  x = iPointer(dram, fp32, 256, in)
  y = iPointer(dram, fp32, 64, out)
  s = iPointer(sram, fp32, 64)
  r = iPointer(reg, fp32, 16)
  t = iPointer(reg, fp32, 16)
  fill.fp32 r[0; (1,16); (16,1)] [0.0]
  for k in 4 {
    move.dram.sram.fp32 s[32*(pid % 2); (1,32); (32,1); rows :E], \
x[64*k + 32*(pid % 2); (1,32); (32,1); rows :E]
    sync.sram s[0; (1,64); (64,1)], s[0; (1,64); (64,1)]
    move.sram.reg.fp32 t[0; (1,16); (16,1); rows :E], s[16*(pid % 2) + 16; (1,16); (16,1); rows :E]
    binary.add.fp32 r[0; (1,16); (16,1); rows :E], r[0; (1,16); (16,1); rows :E], \
t[0; (1,16); (16,1); rows :E]
    sync.sram s[0; (1,64); (64,1)], s[0; (1,64); (64,1)]
  }
  move.reg.dram.fp32 y[16*pid; (1,16); (16,1)], r[0; (1,16); (16,1)]
}
"""


def rounds_of(text: str) -> list[str]:
    """What the loops of a graph say of their rounds once they are ended."""
    made = ended(parse_igraph(text), lambda loop: True)
    return [str(node.attrs["rounds"]) for node in made.body if "rounds" in node.attrs]


def test_loops_in_which_units_meet_end_for_all_units_of_a_group() -> None:
    """Their bodies have no bounds but those in dram, and their values stay: the interpreter ends them too."""
    graph = parse_igraph(JOINT.replace("E", "2*(pid / 2) - k + 2"))
    made = ended(graph, lambda loop: True)
    bounded = [s for iop, _ in made.walk() for s in iop.slices() if any(b is not None for b in s.valid)]
    assert [piece.pointer.level for piece in bounded] == ["dram"]
    assert rounds_of(print_igraph(graph)) == ["2*(pid / 2) + 2"]
    assert print_igraph(parse_igraph(print_igraph(made))) == print_igraph(made)
    x = np.arange(256, dtype="float32")
    (got,), (want,) = run(made, x), run(graph, x)
    np.testing.assert_array_equal(got, want)
    assert got[0] != got[32]  # the first group has half of the rounds


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("E", "2*pid - k + 2", "units of a group would not all come to the barriers"),
        ("E", "2*(pid / 2) - k", "the first group would have no round, and nobody meet"),
        ("sync.sram", "sync.dram", "groups would not all come to the barriers"),
    ],
)
def test_other_joint_loops_stay_whole(old: str, new: str, why: str) -> None:
    text = JOINT.replace(old, new, 1 if old != "E" else -1).replace("E", "2*(pid / 2) - k + 2")
    assert rounds_of(text) == [], why


def test_a_joint_loop_stays_whole_before_more_of_sram() -> None:
    """Which of the places that rounds take in turn was the last one would depend on their number."""
    text = JOINT.replace("E", "2*(pid / 2) - k + 2")
    store = "  move.reg.dram.fp32 y"
    more = "  move.reg.sram.fp32 s[16*pid; (1,16); (16,1)], r[0; (1,16); (16,1)]\n"
    assert rounds_of(text) and not rounds_of(text.replace(store, more + store))
