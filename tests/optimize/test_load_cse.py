# SPDX-License-Identifier: Apache-2.0
"""Equal loads become one; not where the memory, or the register, may have changed between them."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import load_cse

from .toy import applied, left_alone, mnemonics, toy

POINTERS = """
  t = iPointer(reg, fp32, 64)
  u = iPointer(reg, fp32, 64)
  v = iPointer(reg, fp32, 64)
"""
LOAD_T = "move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)]"
LOAD_U = "move.dram.reg.fp32 u[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)]"
ADD = "binary.add.fp32 v[0; (1,64); (64,1)], t[0; (1,64); (64,1)], u[0; (1,64); (64,1)]"
STORE = "move.reg.dram.fp32 y[64*pid; (1,64); (64,1)], v[0; (1,64); (64,1)]"


def graph(*lines: str, pointers: str = "") -> object:
    return toy(POINTERS + pointers + "\n".join(lines), (2, 2))


def test_a_piece_of_what_was_loaded() -> None:
    made = applied(
        load_cse,
        graph(
            LOAD_T,
            "unary.exp.fp32 v[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "move.dram.reg.fp32 u[0; (1,16); (16,1)], x[64*pid + 32; (1,16); (16,1)]",
            "binary.add.fp32 v[0; (1,16); (16,1)], v[0; (1,16); (16,1)], u[0; (1,16); (16,1)]",
            STORE,
        ),
    )
    assert mnemonics(made).count("move.dram.reg.fp32") == 1


def test_a_load_in_a_loop_below() -> None:
    made = applied(
        load_cse,
        graph(
            LOAD_T,
            "unary.exp.fp32 v[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "for k in 3 {",
            LOAD_U,
            "binary.add.fp32 v[0; (1,64); (64,1)], v[0; (1,64); (64,1)], u[0; (1,64); (64,1)]",
            "}",
            STORE,
        ),
    )
    assert mnemonics(made).count("move.dram.reg.fp32") == 1


def test_a_reader_that_comes_too_late_gets_a_copy() -> None:
    """t is overwritten before u is read: the load becomes a copy within reg."""
    made = applied(
        load_cse,
        graph(LOAD_T, LOAD_U, "unary.exp.fp32 t[0; (1,64); (64,1)], t[0; (1,64); (64,1)]", ADD, STORE),
    )
    assert mnemonics(made)[:2] == ["move.dram.reg.fp32", "move.reg.reg.fp32"]


def test_a_load_into_the_register_that_has_it() -> None:
    made = applied(load_cse, graph(LOAD_T, LOAD_T, LOAD_U, ADD, STORE))
    assert mnemonics(made).count("move.dram.reg.fp32") == 1


OTHER = "iPointer(dram, fp32, 256)"


@pytest.mark.parametrize(
    "lines",
    [
        # the register does not hold it any more
        (LOAD_T, "unary.exp.fp32 t[0; (1,64); (64,1)], t[0; (1,64); (64,1)]", LOAD_U, ADD, STORE),
        # another slice
        (LOAD_T, LOAD_U.replace("x[64*pid", "x[192 - 64*pid"), ADD, STORE),
        # other padding
        (
            "move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1); cols :40] [pad=0.0]",
            "move.dram.reg.fp32 u[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1); cols :40] [pad=1.0]",
            ADD,
            STORE,
        ),
        # from a loop that is over, at a place that depends on its variable
        (
            "for k in 2 {",
            "move.dram.reg.fp32 t[0; (1,32); (32,1)], x[64*pid + 32*k; (1,32); (32,1)]",
            "unary.exp.fp32 v[32*k; (1,32); (32,1)], t[0; (1,32); (32,1)]",
            "}",
            "move.dram.reg.fp32 u[0; (1,32); (32,1)], x[64*pid + 32; (1,32); (32,1)]",
            "binary.add.fp32 v[0; (1,32); (32,1)], v[0; (1,32); (32,1)], u[0; (1,32); (32,1)]",
            STORE,
        ),
        # the first load does not always come before
        (
            "for k in 2 {",
            "move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)]",
            "unary.exp.fp32 v[0; (1,64); (64,1)], t[0; (1,64); (64,1)]",
            "unary.exp.fp32 t[0; (1,64); (64,1)], v[0; (1,64); (64,1)]",
            "}",
            STORE,
        ),
    ],
    ids=["overwritten", "elsewhere", "padded", "loop_over", "every_iteration"],
)
def test_it_stays(lines: tuple[str, ...]) -> None:
    left_alone(load_cse, graph(*lines))


def test_memory_that_somebody_writes_in_between() -> None:
    """The same pointer is written between the loads, at whatever place."""
    left_alone(
        load_cse,
        toy(
            """
  m = iPointer(dram, fp32, 256)
  t = iPointer(reg, fp32, 64)
  u = iPointer(reg, fp32, 64)
  move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)]
  move.reg.dram.fp32 m[64*pid; (1,64); (64,1)], t[0; (1,64); (64,1)]
  unary.exp.fp32 t[0; (1,64); (64,1)], t[0; (1,64); (64,1)]
  move.dram.reg.fp32 u[0; (1,64); (64,1)], m[64*pid; (1,64); (64,1)]
  move.reg.dram.fp32 m[64*pid; (1,64); (64,1)], t[0; (1,64); (64,1)]
  move.dram.reg.fp32 t[0; (1,64); (64,1)], m[64*pid; (1,64); (64,1)]
  binary.add.fp32 t[0; (1,64); (64,1)], t[0; (1,64); (64,1)], u[0; (1,64); (64,1)]
  move.reg.dram.fp32 y[64*pid; (1,64); (64,1)], t[0; (1,64); (64,1)]
""",
            (2, 2),
        ),
    )
