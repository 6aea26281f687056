# SPDX-License-Identifier: Apache-2.0
"""Where an output may take the place of an input that dies, and every condition without which it may not."""

from __future__ import annotations

import pytest
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.in_place import in_place
from uir_tvm.verify.live_ranges import lives

from .graphs import graph

POINTERS = """
a = iPointer(reg, fp32, 96)
b = iPointer(reg, fp32, 96)
h = iPointer(reg, fp16, 96)
i = iPointer(reg, int32, 96)
c = iPointer(reg, fp32, 96)
"""
#: Everything is written first, and what comes of it read at the end, so that ranges are as named.
START = "fill.fp32 a[0; (1,96); (96,1)] [1.0]\n"

#: The iOp at position 1 (a dies) -> by how many bytes its target's address exceeds that of a.
CASES = {
    "unary": ("unary.exp.fp32 b[0; (1,32); (32,1)], a[0; (1,32); (32,1)]", "b", 0),
    "a part that lies further on": ("unary.exp.fp32 b[0; (1,32); (32,1)], a[16; (1,32); (32,1)]", "b", 64),
    "into a part that lies further on": (
        "unary.exp.fp32 b[16; (1,32); (32,1)], a[0; (1,32); (32,1)]", "b", -64,
    ),
    "twice the same input": (
        "binary.mul.fp32 b[0; (1,32); (32,1)], a[0; (1,32); (32,1)], a[0; (1,32); (32,1)]", "b", 0,
    ),
    "two parts of the input": (
        "binary.mul.fp32 b[0; (1,32); (32,1)], a[0; (1,32); (32,1)], a[32; (1,32); (32,1)]", "b", None,
    ),
    "the same offset in every unit": (
        "unary.exp.fp32 b[8*pid; (1,8); (8,1)], a[8*pid + 4; (1,8); (8,1)]", "b", 16,
    ),
    "an offset of its own in every unit": (
        "unary.exp.fp32 b[8*pid; (1,8); (8,1)], a[4*pid; (1,8); (8,1)]", "b", None,
    ),
    "other strides": ("move.reg.reg.fp32 b[0; (4,8); (8,1)], a[0; (4,8); (1,4)]", "b", None),
    "other valid rows": (
        "move.reg.reg.fp32 b[0; (4,8); (8,1); rows :2], a[0; (4,8); (8,1); rows :3]", "b", None,
    ),
    "the same valid rows": (
        "move.reg.reg.fp32 b[0; (4,8); (8,1); rows :2], a[0; (4,8); (8,1); rows :2]", "b", 0,
    ),
    "elements that share an address": (
        "unary.exp.fp32 b[0; (4,8); (4,1)], a[0; (4,8); (4,1)]", "b", None,
    ),
    "another width": ("cast.fp32.fp16 h[0; (1,32); (32,1)], a[0; (1,32); (32,1)]", "h", None),
    "another dtype of the same width": (
        "cast.fp32.int32 i[0; (1,32); (32,1)], a[0; (1,32); (32,1)]", "i", 0,
    ),
    "a reduction": ("reduce.add.row.unit.fp32 b[0; (1,1); (1,1)], a[0; (1,32); (32,1)]", "b", None),
    "a transposition": ("transpose.fp32 b[0; (4,8); (8,1)], a[0; (8,4); (4,1)]", "b", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pairs(name):
    iop, target, expected = CASES[name]
    program = GraphFacts(graph(POINTERS + START + iop + "\n"))
    by_name = {x.name: x for x in lives(program, "reg")}
    assert in_place(program, by_name["a"], by_name[target]) == expected


@pytest.mark.parametrize(
    "after",
    [
        "unary.exp.fp32 c[0; (1,32); (32,1)], a[0; (1,32); (32,1)]",
        "unary.exp.fp32 c[0; (1,1); (1,1)], a[95; (1,1); (1,1)]",
    ],
)
def test_an_input_that_is_read_again_keeps_its_place(after):
    body = START + CASES["unary"][0] + "\n" + after + "\n"
    program = GraphFacts(graph(POINTERS + body))
    by_name = {x.name: x for x in lives(program, "reg")}
    assert in_place(program, by_name["a"], by_name["b"]) is None


def test_an_input_that_the_next_iteration_reads_keeps_its_place():
    body = START + "for k in 2 {\n" + CASES["unary"][0] + "\n}\n"
    program = GraphFacts(graph(POINTERS + body))
    by_name = {x.name: x for x in lives(program, "reg")}
    assert in_place(program, by_name["a"], by_name["b"]) is None


#: All units write the same elements.
CONTESTED = "fill.fp32 {name}[0; (1,8); (8,1)] [0.0]"


@pytest.mark.parametrize(
    ("a", "b", "before", "after", "expected"),
    [
        (16, 0, "", "", 64),
        (0, 16, "", "", -64),
        (16, 0, CONTESTED.format(name="a"), "", None),
        (0, 16, "", CONTESTED.format(name="b"), None),
    ],
    ids=["input further on", "output further on", "input contested", "output contested"],
)
def test_what_units_race_for_shares_no_place(a, b, before, after, expected):
    """Also where they race for elements of one pointer that lie before all of the other."""
    body = f"""
    a = iPointer(sram, fp32, 96)
    b = iPointer(sram, fp32, 96)
    r = iPointer(reg, fp32, 8)
    fill.fp32 a[8*pid + {a}; (1,8); (8,1)] [1.0]
    {before}
    unary.exp.fp32 b[8*pid + {b}; (1,8); (8,1)], a[8*pid + {a}; (1,8); (8,1)]
    {after}
    move.sram.reg.fp32 r[0; (1,8); (8,1)], b[8*pid + {b}; (1,8); (8,1)]
    """
    program = GraphFacts(graph(body, (1, 8)))
    by_name = {x.name: x for x in lives(program, "sram")}
    assert in_place(program, by_name["a"], by_name["b"]) == expected
