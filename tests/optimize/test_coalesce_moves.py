# SPDX-License-Identifier: Apache-2.0
"""Wide moves: the same elements by fewer and longer moves, with alignments that are true."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import HardwareModel, IGraph, interpreter, parse_igraph, print_igraph
from uir_tvm.igraph.nodes import Loop
from uir_tvm.optimize import coalesce_moves
from uir_tvm.verify import verify

from ..igraph.strategies import random_inputs

HARDWARE = HardwareModel("host", "cpu", 8, 1, 2**20, 0, 64, {})


def graph(lines: str, n: int = 256, parallel: int = 2, reg: int = 512) -> IGraph:
    """A graph of moves between ``x``, ``r`` and ``y``; the registers begin as zeros."""
    made = parse_igraph(
        f"""igraph g on host parallel ({parallel}, 1) {{
          x = iPointer(dram, fp32, {n}, in)
          y = iPointer(dram, fp32, {n}, inout)
          r = iPointer(reg, fp32, {reg})
          fill.fp32 r[0; (1,{reg}); ({reg},1)] [0.0]
          {lines}
        }}""",
        HARDWARE,
    )
    verify(made)
    return made


def equal(before: IGraph, after: IGraph) -> None:
    verify(after)
    given_ = random_inputs(before, 5)
    for old, new in zip(interpreter.run(before, *given_), interpreter.run(after, *given_), strict=True):
        assert old.tobytes() == new.tobytes()


def moves(g: IGraph) -> list[str]:
    return [line.strip() for line in print_igraph(g).splitlines() if "move." in line]


STORE = "move.reg.dram.fp32 y[128*pid; (1,128); (128,1)], r[0; (1,128); (128,1)]"

#: What becomes of moves: name -> (lines, the moves after, without the store of row 128*pid).
CASES = {
    "rows that follow each other": (
        "move.dram.reg.fp32 r[0; (4,16); (16,1)], x[64*pid; (4,16); (16,1)]",
        ["move.dram.reg.fp32 r[0; (1,64); (64,1)], x[64*pid; (1,64); (64,1)] [align=256]"],
    ),
    "bounds on rows": (
        "move.dram.reg.fp32 r[0; (4,16); (16,1); rows :5 - 3*pid],"
        " x[64*pid; (4,16); (16,1); rows 0:5 - 3*pid]",
        [
            "move.dram.reg.fp32 r[0; (1,64); (64,1); cols :-48*pid + 80],"
            " x[64*pid; (1,64); (64,1); cols 0:-48*pid + 80] [align=256]"
        ],
    ),
    "bounds on columns stay": (
        "move.dram.reg.fp32 r[0; (4,16); (16,1); cols :15], x[64*pid; (4,16); (16,1); cols :15]",
        ["move.dram.reg.fp32 r[0; (4,16); (16,1); cols :15], x[64*pid; (4,16); (16,1); cols :15] [align=64]"],
    ),
    "a gap on one side stays": (
        "move.dram.reg.fp32 r[0; (4,16); (16,1)], x[64*pid; (4,16); (32,1)]",
        ["move.dram.reg.fp32 r[0; (4,16); (16,1)], x[64*pid; (4,16); (32,1)] [align=64]"],
    ),
    "a column is turned into a row": (
        "move.dram.reg.fp32 r[0; (16,4); (1,16)], x[64*pid; (16,4); (1,32)]",
        ["move.dram.reg.fp32 r[0; (4,16); (16,1)], x[64*pid; (4,16); (32,1)] [align=64]"],
    ),
    "a transposing move stays": (
        "move.dram.reg.fp32 r[0; (16,4); (4,1)], x[64*pid; (16,4); (1,16)]",
        ["move.dram.reg.fp32 r[0; (16,4); (4,1)], x[64*pid; (16,4); (1,16)]"],
    ),
    "neighbours, the later one first in memory": (
        """move.dram.reg.fp32 r[16; (1,16); (16,1)], x[32*pid + 16; (1,16); (16,1)]
           move.dram.reg.fp32 r[0; (1,16); (16,1)], x[32*pid; (1,16); (16,1)]""",
        ["move.dram.reg.fp32 r[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1)] [align=128]"],
    ),
    "side by side": (
        """move.dram.reg.fp32 r[0; (4,8); (16,1)], x[16*pid; (4,8); (32,1)]
           move.dram.reg.fp32 r[8; (4,8); (16,1)], x[16*pid + 8; (4,8); (32,1)]""",
        ["move.dram.reg.fp32 r[0; (4,16); (16,1)], x[16*pid; (4,16); (32,1)] [align=64]"],
    ),
    "one above the other": (
        """move.dram.reg.fp32 r[0; (2,8); (16,1)], x[16*pid; (2,8); (32,1)]
           move.dram.reg.fp32 r[32; (2,8); (16,1)], x[16*pid + 64; (2,8); (32,1)]""",
        ["move.dram.reg.fp32 r[0; (4,8); (16,1)], x[16*pid; (4,8); (32,1)] [align=64]"],
    ),
    "what stands between does not touch them": (
        """move.dram.reg.fp32 r[0; (1,16); (16,1)], x[0; (1,16); (16,1)]
           unary.exp.fp32 r[0; (1,16); (16,1)], r[0; (1,16); (16,1)]
           move.dram.reg.fp32 r[16; (1,16); (16,1)], x[16; (1,16); (16,1)]""",
        ["move.dram.reg.fp32 r[0; (1,32); (32,1)], x[0; (1,32); (32,1)] [align=512]"],
    ),
    "what stands between reads the second's target": (
        """move.dram.reg.fp32 r[0; (1,16); (16,1)], x[0; (1,16); (16,1)]
           unary.exp.fp32 r[64; (1,16); (16,1)], r[16; (1,16); (16,1)]
           move.dram.reg.fp32 r[16; (1,16); (16,1)], x[16; (1,16); (16,1)]""",
        [
            "move.dram.reg.fp32 r[0; (1,16); (16,1)], x[0; (1,16); (16,1)] [align=512]",
            "move.dram.reg.fp32 r[16; (1,16); (16,1)], x[16; (1,16); (16,1)] [align=64]",
        ],
    ),
    "other pads stay apart": (
        """move.dram.reg.fp32 r[0; (1,16); (16,1)], x[0; (1,16); (16,1)] [pad=0.0]
           move.dram.reg.fp32 r[16; (1,16); (16,1)], x[16; (1,16); (16,1)] [pad=1.0]""",
        [
            "move.dram.reg.fp32 r[0; (1,16); (16,1)], x[0; (1,16); (16,1)] [align=512, pad=0.0]",
            "move.dram.reg.fp32 r[16; (1,16); (16,1)], x[16; (1,16); (16,1)] [align=64, pad=1.0]",
        ],
    ),
    "a loop of moves": (
        "for k in 4 { move.dram.reg.fp32 r[16*k; (1,16); (16,1)], x[16*pid + 32*k; (1,16); (16,1)] }",
        ["move.dram.reg.fp32 r[0; (4,16); (16,1)], x[16*pid; (4,16); (32,1)] [align=64]"],
    ),
    "a loop that writes one place again and again": (
        "for k in 4 { move.dram.reg.fp32 r[0; (1,16); (16,1)], x[16*k; (1,16); (16,1)] }",
        ["move.dram.reg.fp32 r[0; (1,16); (16,1)], x[16*k; (1,16); (16,1)] [align=64]"],
    ),
    "odd offsets": (
        "move.dram.reg.fp32 r[0; (1,16); (16,1)], x[18*pid + 6; (1,16); (16,1)]",
        ["move.dram.reg.fp32 r[0; (1,16); (16,1)], x[18*pid + 6; (1,16); (16,1)] [align=8]"],
    ),
    "no alignment but that of an element": (
        "move.dram.reg.fp32 r[0; (1,16); (16,1)], x[pid; (1,16); (16,1)]",
        ["move.dram.reg.fp32 r[0; (1,16); (16,1)], x[pid; (1,16); (16,1)]"],
    ),
    "floor and mod": (
        "move.dram.reg.fp32 r[0; (1,16); (16,1)], x[16*(pid/2) + 32*(pid % 2); (1,16); (16,1)]",
        [
            "move.dram.reg.fp32 r[0; (1,16); (16,1)],"
            " x[16*((pid / 2)) + 32*((pid % 2)); (1,16); (16,1)] [align=128]"
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_moves(name):
    lines, expected = CASES[name]
    before = graph(f"{lines}\n{STORE}")
    after = coalesce_moves.run(before)
    wanted = graph("\n".join([*_in_loop(name, expected), f"{STORE} [align=512]"]))
    assert moves(after) == moves(wanted)
    equal(before, after)
    assert coalesce_moves.run(after) is after


def _in_loop(name: str, lines: list[str]) -> list[str]:
    return ["for k in 4 {", *lines, "}"] if any("*k" in line for line in lines) else lines


def test_a_sync_keeps_moves_apart():
    before = graph(
        f"""move.dram.reg.fp32 r[0; (1,16); (16,1)], x[0; (1,16); (16,1)]
        sync.dram y[0; (1,256); (256,1)], y[0; (1,256); (256,1)]
        move.dram.reg.fp32 r[16; (1,16); (16,1)], x[16; (1,16); (16,1)]
        {STORE}"""
    )
    assert len(moves(coalesce_moves.run(before))) == 3


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_random_moves_keep_values(data):
    """Moves of random tiles into random places of a register, in and out of a loop, then all of it stored."""
    draw = data.draw
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        rows, cols = draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 4)))
        t = draw(st.sampled_from((f"({cols},1)", f"(1,{rows})", "(8,1)")))
        s = draw(st.sampled_from((f"({cols},1)", f"(1,{rows})", "(8,1)")))
        at, of = 4 * draw(st.integers(0, 6)), 4 * draw(st.integers(0, 6))
        step = draw(st.sampled_from((0, 4, 8)))
        bound = draw(st.sampled_from(("", "", "; rows :2 - pid", "; rows 1:")))
        line = (
            f"move.dram.reg.fp32 r[{at} + {step}*k; ({rows},{cols}); {t}{bound}],"
            f" x[{of} + {step}*k + 8*pid; ({rows},{cols}); {s}{bound}]"
        )
        lines.append(f"for k in 2 {{ {line} }}" if draw(st.booleans()) else line.replace(f"{step}*k", "0"))
    names = iter(f"k{n}" for n in range(9))
    body = "\n".join(
        line.replace("for k ", f"for {n} ").replace("*k", f"*{n}")
        for line, n in zip(lines, names, strict=False)
    )
    before = graph(f"{body}\n{STORE}")
    after = coalesce_moves.run(before)
    equal(before, after)
    assert len(moves(after)) <= len(moves(before))
    assert coalesce_moves.run(after) is after
    assert sum(isinstance(n, Loop) for n in after.body) <= sum(isinstance(n, Loop) for n in before.body)
