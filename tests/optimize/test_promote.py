# SPDX-License-Identifier: Apache-2.0
"""Memory that one unit or group has to itself comes closer; what others touch, or has no room, stays."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import promote

from .pairs import HARDWARE
from .toy import applied, left_alone, toy

STORES = """
  m = iPointer({level}, fp32, {size})
  t = iPointer(reg, fp32, 16)
  for i in 4 {{
    move.dram.reg.fp32 t[0; (4,4); (4,1)], x[16*i + 64*pid; (4,4); (4,1)]
    unary.exp.fp32 t[0; (4,4); (4,1)], t[0; (4,4); (4,1)]
    move.reg.{level}.fp32 m[{store}], t[0; (4,4); (4,1)]
  }}
"""
LOADS = """
  for j in 4 {{
    move.{level}.reg.fp32 t[0; (4,4); (4,1)], m[{load}]
    unary.adds.fp32 t[0; (4,4); (4,1)], t[0; (4,4); (4,1)] [1.0]
    move.reg.dram.fp32 y[16*j + 64*pid; (4,4); (4,1)], t[0; (4,4); (4,1)]
  }}
"""


def through(
    level: str, store: str, load: str, size: int = 256, sync: str = "", hardware: str = HARDWARE
) -> object:
    """Tiles of 4 x 4 through memory: four a unit, stored in one loop, loaded in another."""
    barrier = f"  sync.{sync} m[0; (1,{size}); ({size},1)], m[0; (1,{size}); ({size},1)]\n" if sync else ""
    text = STORES.format(level=level, size=size, store=store) + barrier + LOADS.format(level=level, load=load)
    return toy(text, (2, 2), hardware)


def memory(graph: object) -> tuple[str, int]:
    """Level and size of what was memory."""
    pointer = graph.pointer("m")  # type: ignore[attr-defined]
    return str(pointer.level), int(pointer.size)


@pytest.mark.parametrize(
    "place",
    [
        "16*I + 64*pid; (4,4); (4,1)",  # a run of elements
        "4*I + 16*pid; (4,4); (64,1)",  # columns of a matrix of 64
        "pid + 16*I; (4,4); (64,4)",  # every fourth element
        "128*(pid / 2) + 4*(pid % 2) + 32*I; (4,4); (8,1)",  # a grid of units
    ],
)
def test_a_part_of_each_unit_becomes_reg(place: str) -> None:
    made = applied(promote, through("dram", place.replace("I", "i"), place.replace("I", "j")))
    assert memory(made) == ("reg", 64)


def test_sram_becomes_reg() -> None:
    place = "16*I + 64*(pid % 2); (4,4); (4,1)"
    made = applied(
        promote, through("sram", place.replace("I", "i"), place.replace("I", "j"), 128, sync="sram")
    )
    assert memory(made) == ("reg", 64)
    assert not any(s.pointer.name == "m" for iop, _ in made.walk() if iop.op == "sync" for s in iop.slices())


def test_what_a_group_shares_becomes_sram() -> None:
    """A unit loads what its neighbour stored."""
    made = applied(
        promote,
        through(
            "dram",
            "16*i + 64*pid; (4,4); (4,1)",
            "16*j + 128*(pid / 2) + 64 - 64*(pid % 2); (4,4); (4,1)",
            sync="dram",
        ),
    )
    assert memory(made) == ("sram", 128)


def test_what_does_not_fit_in_reg_becomes_sram() -> None:
    small = HARDWARE.replace("reg_bytes = 4096", "reg_bytes = 128")
    place = "16*I + 64*pid; (4,4); (4,1)"
    made = applied(promote, through("dram", place.replace("I", "i"), place.replace("I", "j"), hardware=small))
    assert memory(made) == ("sram", 128)


def test_of_a_loop_that_keeps_to_itself_one_iteration_stays() -> None:
    made = applied(
        promote,
        toy(
            """
  m = iPointer(dram, fp32, 256)
  t = iPointer(reg, fp32, 16)
  for i in 4 {
    move.dram.reg.fp32 t[0; (1,16); (16,1)], x[16*i + 64*pid; (1,16); (16,1)]
    move.reg.dram.fp32 m[16*i + 64*pid; (1,4); (16,1)], t[0; (1,4); (16,1)]
    move.reg.dram.fp32 m[16*i + 64*pid; (1,16); (16,1)], t[0; (1,16); (16,1)]
    unary.exp.fp32 t[0; (1,16); (16,1)], t[0; (1,16); (16,1)]
    for j in 2 {
      binary.add.fp32 t[0; (1,16); (16,1)], t[0; (1,16); (16,1)], m[16*i + 64*pid; (1,16); (16,1)]
    }
    move.reg.dram.fp32 y[16*i + 64*pid; (1,16); (16,1)], t[0; (1,16); (16,1)]
  }
""",
            (2, 2),
        ),
    )
    assert memory(made) == ("reg", 16)


@pytest.mark.parametrize(
    "graph",
    [
        # the neighbour in the other group loads it
        lambda: through(
            "dram",
            "16*i + 64*pid; (4,4); (4,1)",
            "16*j + 192 - 64*pid; (4,4); (4,1)",
            sync="dram",
        ),
        # no room anywhere
        lambda: through(
            "dram",
            "16*i + 64*pid; (4,4); (4,1)",
            "16*j + 64*pid; (4,4); (4,1)",
            hardware=HARDWARE.replace("_bytes = 4096", "_bytes = 128"),
        ),
    ],
    ids=["other_group", "no_room"],
)
def test_it_stays(graph: object) -> None:
    left_alone(promote, graph())  # type: ignore[operator]


def test_the_buffer_of_a_group_form_stays() -> None:
    left_alone(
        promote,
        toy(
            """
  s = iPointer(sram, fp32, 2)
  t = iPointer(reg, fp32, 64)
  m = iPointer(reg, fp32, 1)
  move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)]
  fill.fp32 m[0; (1,1); (1,1)] [0.0]
  reduce.add.row.group.fp32 m[0; (1,1); (1,1)], t[0; (1,64); (64,1)] [buffer=s[0; (1,2); (2,1)], group_size=2]
  broadcast.row.unit.fp32 t[0; (1,64); (64,1)], m[0; (1,1); (1,1)]
  move.reg.dram.fp32 y[64*pid; (1,64); (64,1)], t[0; (1,64); (64,1)]
""",
            (2, 2),
        ),
    )
