# SPDX-License-Identifier: Apache-2.0
"""Reads of memory that nothing wrote are found in the order of the loop tree, element by element."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IGraph, IPointer, ISlice, Loop, make, var
from uir_tvm.verify import check, initialised

from .graphs import DEVICE, graph

HEAD = """
a = iPointer(dram, fp32, 64, in)
r = iPointer(reg, fp32, 64)
t = iPointer(reg, fp32, 64)
"""

PASS = {
    "write, then read": """
        fill.fp32 r[0; (4,8); (8,1)] [0.0]
        unary.exp.fp32 t[0; (4,8); (8,1)], r[0; (4,8); (8,1)]""",
    "two halves, then the whole": """
        fill.fp32 r[0; (2,8); (8,1)] [0.0]
        fill.fp32 r[16; (2,8); (8,1)] [0.0]
        unary.exp.fp32 t[0; (4,8); (8,1)], r[0; (4,8); (8,1)]""",
    "row by row, then the whole": """
        for k in 4 { fill.fp32 r[8*k; (1,8); (8,1)] [0.0] }
        unary.exp.fp32 t[0; (4,8); (8,1)], r[0; (4,8); (8,1)]""",
    "before the loop": """
        fill.fp32 r[0; (1,8); (8,1)] [0.0]
        for k in 4 { binary.add.fp32 r[0; (1,8); (8,1)], r[0; (1,8); (8,1)], r[0; (1,8); (8,1)] }""",
    "the iteration before": """
        fill.fp32 r[0; (1,8); (8,1)] [0.0]
        for k in 4 { unary.exp.fp32 r[8*k + 8; (1,8); (8,1)], r[8*k; (1,8); (8,1)] }""",
    "the tail that was loaded": """
        move.dram.reg.fp32 r[0; (4,8); (8,1); rows :4 - pid], a[0; (4,8); (8,1); rows :4 - pid]
        unary.exp.fp32 t[0; (4,8); (8,1); rows :4 - pid], r[0; (4,8); (8,1)]""",
    "a padded tail": """
        move.dram.reg.fp32 r[0; (4,8); (8,1)], a[0; (4,8); (8,1); rows :4 - pid] [pad=0.0]
        unary.exp.fp32 t[0; (4,8); (8,1)], r[0; (4,8); (8,1)]""",
    "another view of the same bytes": """
        fill.fp32 r[0; (4,8); (8,1)] [0.0]
        unary.exp.fp32 t[0; (1,32); (32,1)], r[0; (1,32); (32,1)]""",
}

FAIL = {
    "nothing writes": (
        "unary.exp.fp32 t[0; (1,8); (8,1)], r[0; (1,8); (8,1)]",
        "reads 'r', which nothing writes",
        {},
    ),
    "read, then write": (
        "unary.exp.fp32 r[0; (1,8); (8,1)], r[0; (1,8); (8,1)]",
        "no iOp has written before",
        {},
    ),
    "half": (
        "fill.fp32 r[0; (2,8); (8,1)] [0.0]\nunary.exp.fp32 t[0; (4,8); (8,1)], r[0; (4,8); (8,1)]",
        "no iOp has written before",
        {},
    ),
    "the first iteration": (
        "for k in 4 { unary.exp.fp32 r[8*k + 8; (1,8); (8,1)], r[8*k; (1,8); (8,1)] }",
        "no iOp has written before",
        {"k": 0},
    ),
    "a later iteration": (
        """fill.fp32 r[0; (1,8); (8,1)] [0.0]
        for k in 4 {
          unary.exp.fp32 t[0; (1,8); (8,1)], r[8*k; (1,8); (8,1)]
          fill.fp32 r[4*k + 4; (1,8); (8,1)] [0.0]
        }""",
        "no iOp has written before",
        {},
    ),
    "more than the tail": (
        """move.dram.reg.fp32 r[0; (4,8); (8,1); rows :4 - pid], a[0; (4,8); (8,1); rows :4 - pid]
        unary.exp.fp32 t[0; (4,8); (8,1)], r[0; (4,8); (8,1)]""",
        "no iOp has written before",
        {},
    ),
    "an accumulator": (
        """fill.fp32 t[0; (4,4); (4,1)] [0.0]
        contract.fp32 r[0; (4,4); (4,1)], t[0; (4,4); (4,1)], t[0; (4,4); (4,1)] [accumulate=true]""",
        "no iOp has written before",
        {},
    ),
    "a reduction of which only the leader has the result": (
        """s = iPointer(sram, fp32, 8)
        fill.fp32 t[0; {e}] [0.0]
        reduce.add.row.group.fp32 r[0; {e}], t[0; {e}] [buffer=s[0; (1,4); (4,1)], group_size=4]
        unary.exp.fp32 t[0; {e}], r[0; {e}]""".replace("{e}", "(1,1); (1,1)"),
        "no iOp has written before",
        {"element": 0},
    ),
    "sram that no unit fills": (
        """s = iPointer(sram, fp32, 64)
        fill.fp32 s[0; (4,8); (8,1)] [0.0]
        move.sram.reg.fp32 t[0; (1,8); (8,1)], s[32; (1,8); (8,1)]""",
        "no iOp has written before",
        {},
    ),
    "temporary dram": (
        """d = iPointer(dram, fp32, 64)
        move.dram.reg.fp32 t[0; (1,8); (8,1)], d[32; (1,8); (8,1)]""",
        "reads 'd', which nothing writes",
        {},
    ),
}


def faults(body: str):
    return check(graph(HEAD + body, (1, 4)), ("form", "shape", "dtype", "bounds", "uninitialised"))


@pytest.mark.parametrize("name", PASS)
def test_written(name):
    assert not faults(PASS[name])


@pytest.mark.parametrize("name", FAIL)
def test_unwritten(name):
    body, what, witness = FAIL[name]
    (fault,) = faults(body)
    assert fault.rule == "uninitialised"
    assert what in fault.what
    assert witness.items() <= fault.witness.items()
    assert "slice" in fault.where and fault.remedy


def test_the_witness_is_an_element_that_is_not_written():
    (fault,) = faults(FAIL["half"][0])
    assert 16 <= fault.witness["element"] < 32
    (fault,) = faults(FAIL["more than the tail"][0])
    assert fault.witness["element"] >= 8 * (4 - fault.witness["pid"])


@pytest.mark.parametrize("name", ["write, then read", "before the loop", "the tail that was loaded"])
def test_usual_reads_are_proved_by_one_write(name, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the loop tree was replayed, or isl asked")

    monkeypatch.setattr(initialised.replay, "first_unwritten", refuse)
    monkeypatch.setattr(initialised.isl, "bounded", refuse)
    assert not faults(PASS[name])


def test_what_is_not_proved_is_a_fault(monkeypatch):
    def exhausted(question):
        raise initialised.isl.Exhausted

    monkeypatch.setattr(initialised.isl, "bounded", exhausted)
    monkeypatch.setattr(initialised, "CHEAP", 0)
    assert not faults(PASS["two halves, then the whole"])  # the replay is the last resort, too
    monkeypatch.setattr(initialised, "MAX_COST", 0)
    (fault,) = faults(PASS["two halves, then the whole"])
    assert "It is not proved that all of 'r' is written" in fault.what


# --- random programs against a run that marks what is written --------------------------------------

R = IPointer("r", "reg", "fp32", 64, "tmp")
T = IPointer("t", "reg", "fp32", 64, "tmp")
offsets = st.tuples(st.integers(0, 6), st.sampled_from([0, 0, 2, 4]), st.sampled_from([0, 0, 1]))


@st.composite
def programs(draw):
    """Up to five fills and reads of r, before, in and after a loop over k, at offsets of k and pid."""
    body: list = []
    for place in ("before", "inside", "after"):
        iops = []
        for _ in range(draw(st.integers(0, 2))):
            base, step, unit = draw(offsets)
            offset = base + var("pid") * unit + (var("k") * step if place == "inside" else 0)
            piece = ISlice(
                R, offset, (draw(st.integers(1, 3)), draw(st.integers(1, 3))), (draw(st.integers(1, 4)), 1)
            )
            if draw(st.booleans()):
                piece = piece.replace(rows=(None, 3 - var("pid")))
            reading = make.unary("exp", ISlice(T, 0, piece.shape, rows=piece.valid[:2]), piece)
            iops.append(draw(st.sampled_from([reading, make.fill(piece, 0.0), make.fill(piece, 0.0)])))
        body += [Loop("k", 3, iops)] if place == "inside" else iops
    return IGraph("g", DEVICE, 3, 1, [R, T], body)


@settings(max_examples=200, deadline=None)
@given(programs())
def test_random_programs_agree_with_a_run(g):
    run = any(_reads_unwritten(g, pid) for pid in range(3))
    rules = ("form", "shape", "dtype", "bounds", "uninitialised")
    replayed = check(g, rules)
    with mock.patch.object(initialised, "CHEAP", 0):
        by_isl = check(g, rules)
    assert bool(replayed) == bool(by_isl) == run
    assert [f.what for f in replayed] == [f.what for f in by_isl]


def _reads_unwritten(g: IGraph, pid: int) -> bool:
    written: set[int] = set()
    found = False
    for node in g.body:
        for k in range(node.extent) if isinstance(node, Loop) else (0,):
            for iop in node.body if isinstance(node, Loop) else (node,):
                env = {"pid": pid, "k": k}
                if iop.op == "fill":
                    written |= _addresses(iop.target, env)
                else:
                    found |= not _addresses(iop.sources[0], env) <= written
    return found


def _addresses(piece: ISlice, env: dict[str, int]) -> set[int]:
    r0, r1, c0, c1 = piece.valid_box(env)
    base = piece.offset.evaluate(env)
    return {base + i * piece.row_stride + j * piece.col_stride for i in range(r0, r1) for j in range(c0, c1)}
