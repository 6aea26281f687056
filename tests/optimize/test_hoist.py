# SPDX-License-Identifier: Apache-2.0
"""What is invariant in a loop runs before it; what somebody changes in the loop does not."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import Loop
from uir_tvm.optimize import hoist

from .pairs import HARDWARE
from .toy import applied, left_alone, mnemonics, toy

REGS = "  t = iPointer(reg, fp32, 16)\n  w = iPointer(reg, fp32, 16)\n"
LOAD = "move.dram.reg.fp32 t[0; (1,16); (16,1)], x[16*k + 64*pid; (1,16); (16,1)]"
WEIGHT = "move.dram.reg.fp32 w[0; (1,16); (16,1)], x[16*pid; (1,16); (16,1)]"
MUL = "binary.mul.fp32 t[0; (1,16); (16,1)], t[0; (1,16); (16,1)], w[0; (1,16); (16,1)]"
STORE = "move.reg.dram.fp32 y[16*k + 64*pid; (1,16); (16,1)], t[0; (1,16); (16,1)]"


def graph(*lines: str, pointers: str = "", hardware: str = HARDWARE) -> object:
    return toy(REGS + pointers + "\n".join(["for k in 4 {", *lines, "}"]), (2, 2), hardware)


@pytest.mark.parametrize(
    "line",
    [
        WEIGHT,
        "fill.fp32 w[0; (1,16); (16,1)] [2.0]",
        "iota.fp32 w[0; (1,16); (16,1)] [base=pid]",
    ],
)
def test_it_runs_before_the_loop(line: str) -> None:
    made = applied(hoist, graph(LOAD, line, MUL, STORE))
    assert mnemonics(made)[0] == line.split()[0] and isinstance(made.body[1], Loop)


def test_what_depends_on_what_was_hoisted_follows() -> None:
    made = applied(
        hoist,
        graph(
            "fill.fp32 v[0; (1,1); (1,1)] [2.0]",
            "broadcast.row.unit.fp32 w[0; (1,16); (16,1)], v[0; (1,1); (1,1)]",
            LOAD,
            MUL,
            STORE,
            pointers="  v = iPointer(reg, fp32, 1)\n",
        ),
    )
    assert mnemonics(made)[:2] == ["fill.fp32", "broadcast.row.unit.fp32"]


def test_out_of_both_loops() -> None:
    tile = "x[16*k + 64*pid"
    made = applied(
        hoist,
        graph("for l in 2 {", LOAD.replace(tile, "x[8*l + 8*k + 56*pid"), WEIGHT, MUL, "}", STORE),
    )
    assert len(made.body) == 2 and made.body[0].sources[0].offset.variables() == ["pid"]


def test_a_register_that_others_use_too() -> None:
    """The hoisted value gets a pointer of its own."""
    made = applied(
        hoist,
        graph(LOAD, WEIGHT, MUL, "unary.exp.fp32 w[0; (1,16); (16,1)], t[0; (1,16); (16,1)]",
              STORE.replace("t[0", "w[0")),
    )  # fmt: skip
    assert [p.name for p in made.pointers][-1] == "w_1"


def test_what_the_loop_goes_on_to_change_is_made_once() -> None:
    """The fill gets a pointer of its own, from which every iteration starts."""
    made = applied(
        hoist,
        graph(
            "fill.fp32 w[0; (1,16); (16,1)] [2.0]",
            LOAD,
            "binary.add.fp32 w[0; (1,16); (16,1)], w[0; (1,16); (16,1)], t[0; (1,16); (16,1)]",
            STORE.replace("t[0", "w[0"),
        ),
    )
    assert mnemonics(made)[0] == "fill.fp32"


TIGHT = HARDWARE.replace("reg_bytes = 4096", "reg_bytes = 128")


@pytest.mark.parametrize(
    "lines, pointers, hardware",
    [
        # depends on the loop
        ((LOAD, WEIGHT.replace("16*pid", "16*k"), MUL, STORE), "", HARDWARE),
        # as does its mask
        ((LOAD, WEIGHT.replace("(16,1)]", "(16,1); cols :16 - k] [pad=0.0]", 2).replace(
            "; cols :16 - k] [pad=0.0]", "]", 1), MUL, STORE), "", HARDWARE),
        # the loop writes what it reads
        ((LOAD, "move.reg.reg.fp32 w[0; (1,16); (16,1)], t[0; (1,16); (16,1)]", MUL, STORE), "", HARDWARE),
        # no room: w would be alive beside t and v
        ((LOAD, LOAD.replace("t[0", "v[0"), MUL.replace("w[0", "v[0"), WEIGHT, MUL, STORE),
         "  v = iPointer(reg, fp32, 16)\n", TIGHT),
    ],
    ids=["offset", "mask", "source", "no_room"],
)  # fmt: skip
def test_it_stays(lines: tuple[str, ...], pointers: str, hardware: str) -> None:
    left_alone(hoist, graph(*lines, pointers=pointers, hardware=hardware))


def test_a_load_that_waits_for_a_barrier_in_the_loop() -> None:
    """Before the loop it would come before the neighbour's store."""
    left_alone(
        hoist,
        toy(
            REGS
            + """
  s = iPointer(sram, fp32, 32)
  move.dram.sram.fp32 s[16*(pid % 2); (1,16); (16,1)], x[16*pid; (1,16); (16,1)]
  for k in 4 {
    sync.sram s[0; (1,32); (32,1)], s[0; (1,32); (32,1)]
    move.sram.reg.fp32 w[0; (1,16); (16,1)], s[16 - 16*(pid % 2); (1,16); (16,1)]
    move.dram.reg.fp32 t[0; (1,16); (16,1)], x[16*k + 64*pid; (1,16); (16,1)]
    binary.mul.fp32 t[0; (1,16); (16,1)], t[0; (1,16); (16,1)], w[0; (1,16); (16,1)]
    move.reg.dram.fp32 y[16*k + 64*pid; (1,16); (16,1)], t[0; (1,16); (16,1)]
  }
""",
            (2, 2),
        ),
    )


def test_a_value_that_is_read_before_it_is_made() -> None:
    """In every iteration but the first the reader sees the fill, in the first the load before the loop."""
    left_alone(
        hoist,
        toy(
            REGS
            + """
  move.dram.reg.fp32 w[0; (1,16); (16,1)], x[16*pid; (1,16); (16,1)]
  for k in 4 {
    unary.exp.fp32 t[0; (1,16); (16,1)], w[0; (1,16); (16,1)]
    move.reg.dram.fp32 y[16*k + 64*pid; (1,16); (16,1)], t[0; (1,16); (16,1)]
    fill.fp32 w[0; (1,16); (16,1)] [1.0]
  }
""",
            (2, 2),
        ),
    )


BOX = "; cols :-k - 4*pid + 31"


def bounded(*lines: str) -> object:
    return graph(*(line.replace("(16,1)", f"(16,1){BOX}") for line in lines))


def test_the_last_iterations_bounds_do_not_hold_an_operand_back() -> None:
    """What bounds say of the tile is no reason to load an operand of all tiles in each of them."""
    made = applied(hoist, bounded(LOAD, WEIGHT.replace("16*pid", "0"), MUL, STORE))
    load = made.body[0]
    assert isinstance(made.body[1], Loop) and load.target.valid == (None,) * 4
    assert any(bound is not None for iop, _ in made.walk() for s in iop.sources for bound in s.valid)


def test_not_past_the_end_of_its_memory() -> None:
    """Where the bounds may be all that keeps a load within its parameter, they stay."""
    left_alone(hoist, bounded(LOAD, WEIGHT, MUL, STORE))
    tail = WEIGHT.replace("x[16*pid", "x[250").replace("(16,1)", "(16,1); cols :-k + 5")
    few = MUL.replace("(16,1)", "(16,1); cols :-k + 5")
    left_alone(hoist, graph(LOAD, tail, few, STORE))


def test_analyses_of_large_graphs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each iOp that is hoisted needs the analyses anew: of a graph beyond the bound, one is."""
    lines = ("fill.fp32 v[0; (1,16); (16,1)] [2.0]", WEIGHT, LOAD, MUL, MUL.replace("w[0", "v[0"), STORE)
    given = graph(*lines, pointers="  v = iPointer(reg, fp32, 16)\n")
    assert len(applied(hoist, given).body) == 3
    monkeypatch.setattr(hoist, "WORK", 1)
    assert len(hoist.run(given).body) == 2
