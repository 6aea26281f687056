# SPDX-License-Identifier: Apache-2.0
"""What no output depends on goes, values that are always overwritten included; everything else stays."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import dead

from .toy import applied, left_alone, mnemonics, toy

REGS = "  t = iPointer(reg, fp32, 64)\n  u = iPointer(reg, fp32, 64)\n"
LOAD = "move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)]"
STORE = "move.reg.dram.fp32 y[64*pid; (1,64); (64,1)], t[0; (1,64); (64,1)]"
EXP = "unary.exp.fp32 u[0; (1,64); (64,1)], t[0; (1,64); (64,1)]"


def graph(*lines: str, pointers: str = "") -> object:
    return toy(REGS + pointers + "\n".join(lines), (2, 2))


def test_a_chain_that_leads_nowhere() -> None:
    """The accumulator reads itself, and nobody else reads it."""
    made = applied(
        dead,
        graph(
            LOAD,
            "fill.fp32 u[0; (1,64); (64,1)] [0.0]",
            "for k in 3 {",
            "binary.add.fp32 u[0; (1,64); (64,1)], u[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "}",
            STORE,
        ),
    )
    assert mnemonics(made) == ["move.dram.reg.fp32", "move.reg.dram.fp32"]
    assert [p.name for p in made.pointers] == ["x", "y", "t"]


def test_a_value_that_is_always_overwritten() -> None:
    made = applied(dead, graph("fill.fp32 t[0; (1,64); (64,1)] [0.0]", LOAD, STORE))
    assert "fill.fp32" not in mnemonics(made)


def test_loops_that_hold_nothing_and_pointers_that_nobody_names() -> None:
    made = applied(dead, graph(LOAD, "for k in 3 {", "for l in 2 {", EXP, "}", "}", STORE))
    assert len(made.body) == 2


def test_a_store_that_nobody_loads() -> None:
    """The sync that named its memory orders a parameter instead."""
    made = applied(
        dead,
        graph(
            LOAD,
            "move.reg.sram.fp32 s[64*(pid % 2); (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)]",
            STORE,
            pointers="  s = iPointer(sram, fp32, 128)\n",
        ),
    )
    assert mnemonics(made) == ["move.dram.reg.fp32", "sync.sram", "move.reg.dram.fp32"]


@pytest.mark.parametrize(
    "lines",
    [
        # of what is stored, another part is overwritten
        ("fill.fp32 t[0; (1,64); (64,1)] [0.0]", LOAD.replace("(1,64)", "(1,32)"), STORE),
        # overwritten in the next iteration only
        (
            "fill.fp32 t[0; (1,64); (64,1)] [0.0]",
            "for k in 3 {",
            "unary.adds.fp32 u[0; (1,64); (64,1)], t[0; (1,64); (64,1)] [1.0]",
            "unary.exp.fp32 t[0; (1,64); (64,1)], u[0; (1,64); (64,1)]",
            "}",
            STORE,
        ),
        # stored for a neighbour
        (
            LOAD,
            "move.reg.sram.fp32 s[64*(pid % 2); (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)]",
            "move.sram.reg.fp32 t[0; (1,64); (64,1)], s[64 - 64*(pid % 2); (1,64); (64,1)]",
            STORE,
        ),
        # under a mask that does not cover it
        (
            "fill.fp32 t[0; (1,64); (64,1)] [0.0]",
            "move.dram.reg.fp32 t[0; (1,64); (64,1); cols :40 - 8*pid], x[64*pid; (1,64); (64,1)]",
            STORE,
        ),
    ],
    ids=["other_part", "next_iteration", "neighbour", "masked"],
)
def test_it_stays(lines: tuple[str, ...]) -> None:
    shared = any(" s[" in line for line in lines)
    found = dead.run(graph(*lines, pointers="  s = iPointer(sram, fp32, 128)\n" if shared else ""))
    assert len(mnemonics(found)) == sum(" in " not in line and line != "}" for line in lines)


def test_a_part_that_nobody_reads() -> None:
    """Two parts of one pointer, of which one is read."""
    made = applied(
        dead,
        graph(
            LOAD,
            "unary.exp.fp32 w[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "unary.neg.fp32 w[64; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            STORE.replace("t[0", "w[64"),
            pointers="  w = iPointer(reg, fp32, 128)\n",
        ),
    )
    assert "unary.exp.fp32" not in mnemonics(made)


def test_nothing_to_do() -> None:
    left_alone(dead, toy("  t = iPointer(reg, fp32, 64)\n" + LOAD + "\n" + STORE, (2, 2)))
