# SPDX-License-Identifier: Apache-2.0
"""Values of a pipelined loop that are loaded or stored get memory of their own, and no others do."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import multibuffer, split_live_ranges
from uir_tvm.verify import verify

from .equal import assert_same_bits
from .pairs import HARDWARE
from .toy import applied, left_alone, toy

REGS = "  t = iPointer(reg, fp32, 16)\n  u = iPointer(reg, fp32, 16)\n"
LOAD = "move.dram.reg.fp32 t[0; (1,16); (16,1){box}], x[16*k + 64*pid; (1,16); (16,1){box}]"
EXP = "unary.exp.fp32 u[0; (1,16); (16,1){box}], t[0; (1,16); (16,1){box}]"
MUL = "binary.mul.fp32 t[0; (1,16); (16,1){box}], u[0; (1,16); (16,1){box}], t[0; (1,16); (16,1){box}]"
STORE = "move.reg.dram.fp32 y[16*k + 64*pid; (1,16); (16,1){box}], t[0; (1,16); (16,1){box}]"
AGAIN = LOAD.replace("x[16*k", "x[-16*k").replace("64*pid;", "64*pid + 48;")


def graph(
    *lines: str, before: str = "", box: str = "", asks: str = " [pipeline=2]", hardware: str = HARDWARE
) -> object:
    body = [line.format(box=box) for line in lines]
    return toy(REGS + "\n".join([before, f"for k in 4{asks} {{", *body, "}"]), (2, 2), hardware)


@pytest.mark.parametrize("box", ["", "; cols :-k - 4*pid + 31"])
def test_two_operands_and_the_result_part(box: str) -> None:
    """Also under a valid box: what a read sees is what the write of the same box made."""
    before = graph(LOAD, EXP, AGAIN, MUL, STORE, box=box)
    made = applied(split_live_ranges, before)
    names = [str(iop.target.pointer.name) for iop, _ in made.walk()]
    assert len({names[0], names[2], names[3]}) == 3 and names[1] == "u"
    staged = multibuffer.run(made)
    verify(staged)
    assert_same_bits(before, staged)
    ahead = [
        iop
        for iop, loops in staged.walk()
        if not loops and iop.op == "move" and iop.target.pointer.level == "reg"
    ]
    assert len(ahead) == 2, "both loads run ahead of their uses"


def test_a_sum_over_the_iterations_stays_one_value() -> None:
    add = "binary.add.fp32 u[0; (1,16); (16,1)], u[0; (1,16); (16,1)], t[0; (1,16); (16,1)]"
    fill = "fill.fp32 u[0; (1,16); (16,1)] [0.0]"
    left_alone(split_live_ranges, graph(LOAD, add, STORE.replace("t[0", "u[0"), before=fill))


def test_a_partial_write_keeps_the_rest_with_it() -> None:
    """The store reads elements of both writes: they are one value."""
    half = "unary.exp.fp32 t[0; (1,8); (8,1)], t[0; (1,8); (8,1)]"
    left_alone(split_live_ranges, graph(LOAD, half, STORE))


def test_only_loops_that_ask_for_stages() -> None:
    left_alone(split_live_ranges, graph(LOAD, EXP, AGAIN, MUL, STORE, asks=""))


def test_not_where_there_is_no_room() -> None:
    small = HARDWARE.replace("reg_bytes = 4096", "reg_bytes = 256")
    assert small != HARDWARE
    left_alone(split_live_ranges, graph(LOAD, EXP, AGAIN, MUL, STORE, hardware=small))
