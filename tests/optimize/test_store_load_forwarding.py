# SPDX-License-Identifier: Apache-2.0
"""What a unit stores and loads again stays in reg; what another unit may have stored is loaded."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import store_load_forwarding

from .toy import applied, left_alone, mnemonics, toy

POINTERS = """
  s = iPointer({level}, fp32, {size})
  t = iPointer(reg, fp32, 64)
  u = iPointer(reg, fp32, 64)
"""
LOAD = "move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)]"
STORE = "move.reg.dram.fp32 y[64*pid; (1,64); (64,1)], u[0; (1,64); (64,1)]"
PLACE = {"sram": "64*(pid % 2)", "dram": "64*pid"}


def graph(level: str, *lines: str) -> object:
    pointers = POINTERS.format(level=level, size=128 if level == "sram" else 256)
    return toy(pointers + "\n".join(line.replace("HERE", PLACE[level]) for line in lines), (2, 2))


@pytest.mark.parametrize("level", ["sram", "dram"])
def test_store_and_load_go_also_across_a_sync(level: str) -> None:
    made = applied(
        store_load_forwarding,
        graph(
            level,
            LOAD,
            f"move.reg.{level}.fp32 s[HERE; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            f"sync.{level} s[0; (1,64); (64,1)], s[0; (1,64); (64,1)]",
            f"move.{level}.reg.fp32 u[0; (1,64); (64,1)], s[HERE; (1,64); (64,1)]",
            "unary.exp.fp32 u[0; (1,64); (64,1)], u[0; (1,64); (64,1)]",
            STORE,
        ),
    )
    names = ["move.dram.reg.fp32", f"sync.{level}", "unary.exp.fp32", "move.reg.dram.fp32"]
    assert mnemonics(made) == names
    assert [p.name for p in made.pointers] == ["x", "y", "t", "u"]


def test_an_operand_that_is_read_from_memory_comes_from_the_register() -> None:
    made = applied(
        store_load_forwarding,
        graph(
            "sram",
            LOAD,
            "move.reg.sram.fp32 s[HERE; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "unary.exp.fp32 u[0; (1,64); (64,1)], s[HERE; (1,64); (64,1)]",
            STORE,
        ),
    )
    assert "s" not in [p.name for p in made.pointers]


def test_the_elements_in_another_order() -> None:
    """The register is read backwards, as the memory would have been."""
    made = applied(
        store_load_forwarding,
        graph(
            "sram",
            LOAD,
            "move.reg.sram.fp32 s[HERE; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "move.sram.reg.fp32 u[0; (1,64); (64,1)], s[HERE + 63; (1,64); (64,-1)]",
            STORE,
        ),
    )
    assert mnemonics(made) == ["move.dram.reg.fp32", "move.reg.dram.fp32"]


def test_a_store_that_others_read_stays() -> None:
    """The own part comes from the register; the neighbour's still goes through memory."""
    made = applied(
        store_load_forwarding,
        graph(
            "sram",
            LOAD,
            "move.reg.sram.fp32 s[HERE; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "move.sram.reg.fp32 u[0; (1,64); (64,1)], s[HERE; (1,64); (64,1)]",
            "sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)]",
            "binary.add.fp32 u[0; (1,64); (64,1)], u[0; (1,64); (64,1)], "
            "s[64 - 64*(pid % 2); (1,64); (64,1)]",
            STORE,
        ),
    )
    names = mnemonics(made)
    assert "move.sram.reg.fp32" not in names and "move.reg.sram.fp32" in names and "sync.sram" in names


@pytest.mark.parametrize(
    "lines",
    [
        # the register is overwritten before the load
        (
            "move.reg.sram.fp32 s[HERE; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "unary.exp.fp32 t[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "move.sram.reg.fp32 u[0; (1,64); (64,1)], s[HERE; (1,64); (64,1)]",
            "binary.add.fp32 u[0; (1,64); (64,1)], u[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
        ),
        # the neighbour stored it
        (
            "move.reg.sram.fp32 s[HERE; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)]",
            "move.sram.reg.fp32 u[0; (1,64); (64,1)], s[64 - 64*(pid % 2); (1,64); (64,1)]",
        ),
        # the neighbour writes it in between
        (
            "move.reg.sram.fp32 s[HERE; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "unary.exp.fp32 u[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)]",
            "move.reg.sram.fp32 s[64 - 64*(pid % 2); (1,64); (64,1)], u[0; (1,64); (64,1)]",
            "sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)]",
            "move.sram.reg.fp32 u[0; (1,64); (64,1)], s[HERE; (1,64); (64,1)]",
        ),
        # only a part of it was stored, and the rest is pad
        (
            "move.reg.sram.fp32 s[HERE; (1,64); (64,1); cols :40], t[0; (1,64); (64,1)]",
            "move.sram.reg.fp32 u[0; (1,64); (64,1)], s[HERE; (1,64); (64,1); cols :40] [pad=0.0]",
        ),
    ],
    ids=["register_overwritten", "neighbours", "overwritten_by_neighbour", "padded"],
)
def test_it_stays(lines: tuple[str, ...]) -> None:
    left_alone(store_load_forwarding, graph("sram", LOAD, *lines, STORE))


def test_a_value_from_the_iteration_before_is_loaded() -> None:
    """In the loop the load comes first: what it brings was stored an iteration ago."""
    left_alone(
        store_load_forwarding,
        toy(
            """
  s = iPointer(dram, fp32, 256)
  t = iPointer(reg, fp32, 64)
  u = iPointer(reg, fp32, 64)
  fill.fp32 s[64*pid; (1,64); (64,1)] [1.0]
  for k in 3 {
    move.dram.reg.fp32 u[0; (1,64); (64,1)], s[64*pid; (1,64); (64,1)]
    unary.muls.fp32 t[0; (1,64); (64,1)], u[0; (1,64); (64,1)] [2.0]
    move.reg.dram.fp32 s[64*pid; (1,64); (64,1)], t[0; (1,64); (64,1)]
  }
  move.reg.dram.fp32 y[64*pid; (1,64); (64,1)], u[0; (1,64); (64,1)]
""",
            (2, 2),
        ),
    )
