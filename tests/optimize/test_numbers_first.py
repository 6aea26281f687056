# SPDX-License-Identifier: Apache-2.0
"""What memory, loops or units decide stays where it is; equal numbers become one."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IGraph
from uir_tvm.optimize import numbers_first

from .toy import applied, left_alone, mnemonics, toy

POINTERS = """  t = iPointer(reg, fp32, 16)
  w = iPointer(reg, fp32, 16)
  f = iPointer(reg, fp32, 1)
  g = iPointer(reg, fp32, 1)
"""
LOAD = "move.dram.reg.fp32 t[0; (1,16); (16,1)], x[16*k; (1,16); (16,1)]"
WIDE = "broadcast.row.unit.fp32 w[0; (1,16); (16,1)], {}[0; (1,1); (1,1)]"
MUL = "binary.mul.fp32 t[0; (1,16); (16,1)], t[0; (1,16); (16,1)], w[0; (1,16); (16,1)]"
STORE = "move.reg.dram.fp32 y[16*k; (1,16); (16,1)], t[0; (1,16); (16,1)]"
NUMBER = "iota.fp32 {}[0; (1,1); (1,1)] [base=3]"


def graph(*lines: str) -> IGraph:
    """A loop that loads a tile, multiplies it with what some lines leave in w, and stores it."""
    return toy("\n".join([POINTERS + "for k in 16 {", LOAD, *lines, MUL, STORE, "}"]))


def test_out_of_a_loop_with_all_that_follows_from_it() -> None:
    root = "unary.sqrt.fp32 g[0; (1,1); (1,1)], f[0; (1,1); (1,1)]"
    made = applied(numbers_first, graph(NUMBER.format("f"), root, WIDE.format("g")))
    assert mnemonics(made)[:2] == ["iota.fp32", "unary.sqrt.fp32"] and len(made.body) == 3


def test_equal_ones_are_one() -> None:
    both = "binary.add.fp32 t[0; (1,1); (16,1)], t[0; (1,1); (16,1)], g[0; (1,1); (1,1)]"
    made = applied(numbers_first, graph(NUMBER.format("f"), WIDE.format("f"), NUMBER.format("g"), both))
    assert mnemonics(made).count("iota.fp32") == 1 and "g" not in {str(p.name) for p in made.pointers}


def test_different_ones_stay_two() -> None:
    both = "binary.add.fp32 t[0; (1,1); (16,1)], t[0; (1,1); (16,1)], g[0; (1,1); (1,1)]"
    other = "iota.fp32 g[0; (1,1); (1,1)] [base=4]"
    made = applied(numbers_first, graph(NUMBER.format("f"), WIDE.format("f"), other, both))
    assert mnemonics(made)[:2] == ["iota.fp32", "iota.fp32"]


def test_behind_loads_that_stand_first() -> None:
    """They are on their way while the number is computed."""
    lines = [LOAD, NUMBER.format("f"), WIDE.format("f"), MUL, STORE]
    body = [line.replace("16*k", "0") for line in lines]
    rest = "move.reg.dram.fp32 y[16; (1,240); (240,1)], v[0; (1,240); (240,1)]"
    fill = "fill.fp32 v[0; (1,240); (240,1)] [1.0]"
    before = toy("\n".join([POINTERS + "  v = iPointer(reg, fp32, 240)", body[0], fill, rest, *body[1:]]))
    made = applied(numbers_first, before)
    assert mnemonics(made)[:3] == ["move.dram.reg.fp32", "iota.fp32", "fill.fp32"]


@pytest.mark.parametrize(
    "lines",
    [
        ["iota.fp32 f[0; (1,1); (1,1)] [base=k]"],
        ["iota.fp32 f[0; (1,1); (1,1)] [base=pid]"],
        ["reduce.add.row.unit.fp32 f[0; (1,1); (1,1)], t[0; (1,16); (16,1)]"],
        [NUMBER.format("f"), "fill.fp32 f[0; (1,1); (1,1)] [2.0]"],
    ],
    ids=["of a loop", "of a unit", "of memory", "written again"],
)
def test_left_alone(lines: list[str]) -> None:
    left_alone(numbers_first, graph(*lines, WIDE.format("f")))
