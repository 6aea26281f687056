# SPDX-License-Identifier: Apache-2.0
"""Every rule of form refuses a graph that breaks it alone, in words that name the culprit."""

from __future__ import annotations

import pytest
from uir_tvm import hardware
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, Loop, affine, make, var
from uir_tvm.verify import check

from .graphs import DEVICE, clean, graph

A = IPointer("a", "dram", "fp32", 8, "in")
OUT = IPointer("o", "dram", "fp32", 8, "out")
R = IPointer("r", "reg", "fp32", 8, "tmp")
S = IPointer("s", "sram", "fp32", 8, "tmp")


def row(pointer: IPointer, offset=0, **ranges) -> ISlice:
    return ISlice(pointer, offset, (1, 8), **ranges)


LOAD, STORE = make.move(row(R), row(A)), make.move(row(OUT), row(R))


def build(body=(LOAD, STORE), pointers=(A, OUT, R), groups=1, units=1, model=DEVICE) -> IGraph:
    return IGraph("g", model, groups, units, pointers, body)


def odd(name="p", level="reg", dtype="fp32", size=8, role="tmp") -> IGraph:
    """The sound graph with one more pointer."""
    extra = IPointer(name, level, dtype, size, role)
    return build(pointers=(extra, A, OUT, R) if role != "tmp" else (A, OUT, R, extra))


UNBOUND = make.move(row(R), row(A, var("k") * 0 + var("k")))

CASES = {
    "no groups": (build(groups=0), "num_groups = 0", "at least 1"),
    "same name": (odd("a"), "2 pointers are named 'a'", "rename all but one"),
    "parameter after memory": (build(pointers=(A, R, OUT)), "'o' is listed after 'r'", "move 'o' before 'r'"),
    "level": (odd(level="l2"), "the level 'l2'", "one of reg, sram, dram"),
    "role": (odd(role="const", level="dram"), "the role 'const'", "one of in, out, inout, tmp"),
    "dtype": (odd(dtype="fp7"), "the dtype 'fp7'", "fp64, fp32"),
    "empty pointer": (odd(size=0), "'p' has 0 elements", "at least 1"),
    "parameter on chip": (odd(role="in"), "The parameter 'p' lies in reg", "dram, or the role tmp"),
    "sram where none is": (
        build(pointers=(A, OUT, R, S), model=hardware.get("x86-64-v2")),
        "'s' lies in sram, which x86-64-v2 has not",
        "keep it in reg",
    ),
    "group too large": (build(pointers=(A, OUT, R, S), units=9), "9 units share 's'", "at most 8 units"),
    "loop named pid": (build([Loop("pid", 2, [LOAD]), STORE]), "named 'pid'", "rename the loop variable"),
    "loop variable twice": (
        build([Loop("k", 2, [LOAD]), Loop("k", 2, [STORE])]),
        "Two loops have the variable 'k'",
        "a name of its own",
    ),
    "end of a loop by its own variable": (
        build([LOAD, Loop("k", 2, [LOAD], {"rounds": var("k") + 1}), STORE]),
        "'k' ends after k + 1 rounds",
        "say the rounds by these",
    ),
    "empty loop": (build([LOAD, Loop("k", 0, [LOAD]), STORE]), "'k' runs 0 times", "drop the loop"),
    "unbound variable": (build([UNBOUND, STORE]), "'k' is neither pid nor", "a loop over 'k'"),
    "variable of a loop that ended": (
        build([Loop("k", 1, [LOAD]), make.move(row(OUT), row(R, var("k")))]),
        "'k' is neither pid nor",
        "one of pid",
    ),
    "unbound variable in a range": (
        build([LOAD, make.move(row(OUT), row(R, cols=(None, var("n"))))]),
        "'n' is neither pid nor",
        "replace the variable",
    ),
    "unbound variable in an attribute": (
        build([make.iota(row(R), base=var("m")), STORE]),
        "'m' is neither pid nor",
        "base = m",
    ),
    "unlisted pointer": (
        build(pointers=(A, OUT)),
        "'r' of a slice is not among",
        "list it in IGraph.pointers",
    ),
    "another pointer of that name": (
        build(pointers=(A, OUT, IPointer("r", "reg", "fp32", 16, "tmp"))),
        "'r' of a slice differs",
        "that very pointer",
    ),
    "empty slice": (
        build([IOp("fill", "", "fp32", [ISlice(R, 0, (0, 8))], [], {"value": 0}), LOAD, STORE]),
        "the shape (0, 8)",
        "at least one row",
    ),
    "write to an input": (
        build([LOAD, make.move(row(A), row(R)), STORE]),
        "writes 'a', an input",
        "role inout",
    ),
    "unknown iOp": (
        build([IOp("warp", "", "fp32", [row(R)], [row(A)], {}), STORE]),
        "'warp' is no iOp",
        "warp",
    ),
    "wrong number of operands": (
        build([IOp("binary", "add", "fp32", [row(R)], [row(A)], {}), STORE]),
        "binary takes 2 source(s), not 1",
        "binary.add.fp32",
    ),
    "sync of two pointers": (
        build([LOAD, IOp("sync", "", "fp32", [row(R)], [row(A)], {"scope": "reg"}), STORE]),
        "sync names two pointers, 'r' and 'a'",
        "slices of one pointer",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fault_of_form(name):
    """The broken graph has faults of form alone; one of them names the culprit and what to do."""
    g, what, hint = CASES[name]
    faults = check(g)
    assert {f.rule for f in faults} == {"form"}
    fault = next((f for f in faults if what in f.what), None)
    assert fault is not None, "\n".join(map(str, faults))
    assert hint in str(fault)


def test_the_graph_that_the_cases_break_is_sound():
    clean(build())


BUFFER = "s[0; (1,8); (8,1)]"
GROUP_REDUCE = """
a = iPointer(dram, fp32, 8, in)
o = iPointer(dram, fp32, 1, inout)
r = iPointer(reg, fp32, 1)
t = iPointer(reg, fp32, 1)
s = iPointer({level}, fp32, 8)
move.dram.reg.fp32 r[0; (1,1); (1,1)], a[pid; (1,1); (1,1)]
reduce.add.row.group.fp32 t[0; (1,1); (1,1)], r[0; (1,1); (1,1)] [buffer={s}, group_size={size}]
"""


def test_a_group_form_of_a_divisor_of_the_group_passes():
    own = "s[4*(pid / 4); (1,4); (4,1)]"  # a part for each set
    clean(graph(GROUP_REDUCE.format(s=own, level="sram", size=4), (1, 8)))


def test_a_group_form_needs_a_divisor_of_the_group():
    (fault,) = check(graph(GROUP_REDUCE.format(s=BUFFER, level="sram", size=3), (1, 8)))
    assert fault.rule == "form"
    assert "reduce shares among 3 units, which do not divide a group of 8" in fault.what
    assert fault.remedy == "choose one of 1, 2, 4, 8"


def test_a_group_form_needs_sram():
    (fault,) = check(graph(GROUP_REDUCE.format(s=BUFFER, level="reg", size=4), (1, 8)))
    assert (fault.rule, fault.what) == ("form", "The buffer 's' lies in reg.")


def test_a_constant_expression_needs_no_variable():
    clean(build([LOAD, make.move(row(OUT, affine(0)), row(R))]))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"for k in 4 {{ fill.fp32 r[{2**60}*k; (1,8); (8,1)] [0.0] }}", "address or a bound of the target"),
        (f"fill.fp32 r[0; (1,8); ({2**59},{2**59})] [0.0]", "address or a bound of the target"),
        (f"fill.fp32 r[0; (1,8); (8,1); cols :{2**61 + 1} - pid] [0.0]", "address or a bound of the target"),
        (
            f"for k in {2**40} {{ for l in {2**40} {{ fill.fp32 r[0; (1,8); (8,1)] [0.0] }} }}",
            "points of pid",
        ),
        (f"fill.fp32 r[({2**61}*pid) % 3; (1,8); (8,1)] [0.0]", "address or a bound of the target"),
    ],
)
def test_numbers_that_64_bits_may_not_hold_are_refused(body: str, said: str) -> None:
    """Other rules compute addresses of many points at once, with 64 bits that wrap."""
    faults = check(graph("r = iPointer(reg, fp32, 8)\n" + body))
    assert {fault.rule for fault in faults} == {"form"}
    assert all(said in fault.what for fault in faults)
