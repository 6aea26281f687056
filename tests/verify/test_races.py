# SPDX-License-Identifier: Apache-2.0
"""Races are found exactly: what a look at every pair of instances finds, and nothing else."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from uir_tvm.verify import check, coverage, isl, meeting, ownership, races
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.decide import Decision

from .graphs import clean, graph, only
from .racing import enumerated, graphs

RULES = ("form", "shape", "dtype", "bounds", "race", "uninitialised")
HEAD = """
s = iPointer(sram, fp32, 64)
d = iPointer(dram, fp32, 64)
r = iPointer(reg, fp32, 64)
fill.fp32 r[0; (1,64); (64,1)] [0.0]
"""
#: A unit of four writes its eighth of s, and reads that of its neighbour.
WRITE = "move.reg.sram.fp32 s[8*(pid % 4); (1,8); (8,1)], r[0; (1,8); (8,1)]"
READ = "move.sram.reg.fp32 r[0; (1,8); (8,1)], s[8*((pid + 1) % 4); (1,8); (8,1)]"
SYNC = "sync.sram s[0; (1,64); (64,1)], s[0; (1,64); (64,1)]"
#: The same through dram, where every unit reads what its neighbour wrote.
STORE = "move.reg.dram.fp32 d[8*pid; (1,8); (8,1)], r[0; (1,8); (8,1)]"
LOAD = "move.dram.reg.fp32 r[0; (1,8); (8,1)], d[8*((pid + 1) % 8); (1,8); (8,1)]"
ALL = "sync.dram d[0; (1,64); (64,1)], d[0; (1,64); (64,1)]"
FIRST = "fill.fp32 d[8*pid; (1,8); (8,1)] [0.0]"


def double(index: str) -> str:
    """A loop that fills one half of s while it reads the other: ``index`` is the half that is read."""
    write = "move.reg.sram.fp32 s[32*((k + 1) % 2) + 8*(pid % 4); (1,8); (8,1)], r[0; (1,8); (8,1)]"
    read = f"move.sram.reg.fp32 r[0; (1,8); (8,1)], s[32*({index} % 2) + 8*((pid + 1) % 4); (1,8); (8,1)]"
    return f"{WRITE}\n{SYNC}\nfor k in 4 {{ {read}\n{write}\n{SYNC} }}"


def form(op: str, buffer: str = "s[0; (1,4); (4,1)]", size: int = 4) -> str:
    return f"{op}.row.group.fp32 r[0; (1,1); (1,1)], r[0; (1,1); (1,1)] [buffer={buffer}, group_size={size}]"


def built(body: str, parallel: tuple[int, int] = (2, 4)):
    return graph(HEAD + body, parallel)


PASS = {
    "write, sync, read": f"{WRITE}\n{SYNC}\n{READ}",
    "both ways in a loop": f"for k in 3 {{ {WRITE}\n{SYNC}\n{READ}\n{SYNC} }}",
    "a wider scope": f"{WRITE}\n{ALL}\n{READ}",
    "each its own": f"{WRITE}\nmove.sram.reg.fp32 r[0; (1,8); (8,1)], s[8*(pid % 4); (1,8); (8,1)]",
    "double buffer": double("k"),
    "dram and a sync of all": f"{STORE}\n{ALL}\n{LOAD}",
    "dram within a group": f"{STORE}\nsync.sram d[0; (1,64); (64,1)], d[0; (1,64); (64,1)]\n"
    + LOAD.replace("(pid + 1) % 8", "4*(pid / 4) + (pid + 1) % 4"),
    "a sync inside an inner loop": f"{WRITE}\nfor k in 2 {{ {SYNC} }}\n{READ}",
    "forms with buffers of their own": form("reduce.add") + "\n" + form("broadcast", "s[4; (1,4); (4,1)]"),
    "forms with a sync between": f"{form('reduce.add')}\n{SYNC}\n{form('broadcast')}",
    "the barrier of a form": f"{WRITE}\n{form('reduce.add', 's[32; (1,4); (4,1)]')}\n{READ}",
    "sets with buffers of their own": form("reduce.add", "s[2*((pid % 4) / 2); (1,2); (2,1)]", 2),
}

#: body -> the words of the fault, and a part of its witness
FAIL = {
    "no sync": (f"{WRITE}\n{READ}", "no sync.sram between", {}),
    "the sync before": (f"{SYNC}\n{WRITE}\n{READ}", "no sync.sram between", {}),
    "across iterations": (
        f"for k in 3 {{ {WRITE}\n{SYNC}\n{READ} }}",
        "in a later iteration of 'k', with no sync.sram between",
        {},
    ),
    "a scope too small": (f"{WRITE}\n{SYNC.replace('sync.sram', 'sync.reg')}\n{READ}", "no sync.sram", {}),
    "across groups": (f"{STORE}\n{SYNC}\n{LOAD}", "no sync.dram between", {"pid": 0, "pid'": 7}),
    "double buffer, one off": (double("(k + 1)"), "with no sync.sram between", {}),
    "a buffer used again": (
        f"for k in 2 {{ {form('reduce.add')} }}",
        "reads it and reduce.add.row.group.fp32 writes it, in a later iteration of 'k'",
        {"pid": 0, "k": 0, "k'": 1},
    ),
    "one buffer for two forms": (
        f"{form('broadcast')}\n{form('reduce.add')}",
        "broadcast.row.group.fp32 reads it and reduce.add.row.group.fp32 writes it",
        {},
    ),
    "one buffer for two sets": (form("reduce.add", "s[0; (1,4); (4,1)]", 2), "race in element", {}),
    "the barrier of a part": (
        f"{WRITE}\n{form('reduce.add', 's[32 + 2*((pid % 4) / 2); (1,2); (2,1)]', 2)}\n{READ}",
        "no sync.sram between",
        {},
    ),
    "all write one element": ("fill.fp32 s[0; (1,1); (1,1)] [1.0]", "give every unit a part", {}),
}


@pytest.mark.parametrize("name", PASS)
def test_ordered(name):
    clean(built(PASS[name]), RULES)


@pytest.mark.parametrize("name", FAIL)
def test_racing(name):
    body, words, witness = FAIL[name]
    faults = check(built(body), (*RULES[:4], "race"))
    assert {f.rule for f in faults} == {"race"}
    told = f"{faults[0].what} {faults[0].remedy}"
    assert words in told
    assert witness.items() <= faults[0].witness.items()
    assert faults[0].where.count("slice") == 2 and faults[0].need


def test_the_witness_shows_both_sides():
    """The unit that reads is the neighbour of the one that writes, and the element is of its part."""
    (race,) = races.find(built(FAIL["across iterations"][0]))
    w = race.witness
    assert (race.carried, race.scope, race.first.kind, race.second.kind) == ("k", "sram", "read", "write")
    assert w["k'"] == w["k"] + 1
    assert w["pid"] // 4 == w["pid'"] // 4 and (w["pid"] + 1) % 4 == w["pid'"] % 4
    assert w["element"] // 8 == w["pid'"] % 4


def test_one_unit_to_a_group_needs_no_sync():
    clean(built(f"{WRITE}\n{READ.replace('pid + 1', 'pid')}", (4, 1)), RULES)


def test_two_writes_of_a_result_are_told_once():
    """By the rule of coverage, which refuses them whatever stands between."""
    body = (
        "o = iPointer(dram, fp32, 8, out)\nr = iPointer(reg, fp32, 8)\nfill.fp32 r[0; (1,8); (8,1)] [0.0]\n"
    )
    g = graph(body + "move.reg.dram.fp32 o[0; (1,8); (8,1)], r[0; (1,8); (8,1)]", (2, 1))
    only(g, "coverage")
    (race,) = races.find(g)
    assert race.scope == "dram" and race.first is race.second


def test_a_scatter_races_with_what_is_no_scatter():
    """Where scatters meet, the data decides; a store of another unit may be what a scatter overwrites."""
    head = """
        o = iPointer(dram, fp32, 64, inout)
        i = iPointer(dram, int32, 8, in)
        r = iPointer(reg, fp32, 8)
        x = iPointer(reg, int32, 1)
        fill.fp32 r[0; (1,8); (8,1)] [0.0]
        move.dram.reg.int32 x[0; (1,1); (1,1)], i[pid; (1,1); (1,1)]
        """
    scatter = "scatter.fp32 o[0; (8,8); (8,1)], r[0; (1,8); (8,1)], x[0; (1,1); (1,1)]\n"
    store = "move.reg.dram.fp32 o[8*pid; (1,8); (8,1)], r[0; (1,8); (8,1)]\n"
    clean(graph(head + scatter + scatter, (4, 1)))
    only(graph(head + store + scatter, (4, 1)), "race")
    clean(graph(head + store + ALL.replace("d[", "o[") + "\n" + scatter, (4, 1)))


def test_reads_before_the_write_of_another_unit_are_uninitialised():
    """Every element is written by some unit, and nothing races: but the read comes first."""
    (fault,) = check(built(f"{READ}\n{SYNC}\n{WRITE}"), RULES)
    assert (fault.rule, "no iOp has written before" in fault.what) == ("uninitialised", True)


def test_usual_results_are_settled_without_pairs():
    """Units that write parts of their own, and read shared inputs: no two accesses are compared."""
    g = graph(
        """
        a = iPointer(dram, fp32, 64, in)
        o = iPointer(dram, fp32, 64, inout)
        r = iPointer(reg, fp32, 16)
        move.dram.reg.fp32 r[0; (1,16); (16,1)], a[0; (1,16); (16,1)]
        move.dram.reg.fp32 r[0; (1,16); (16,1)], o[16*pid; (1,16); (16,1)]
        move.reg.dram.fp32 o[16*pid; (1,16); (16,1)], r[0; (1,16); (16,1)]""",
        (4, 1),
    )
    with mock.patch.object(races, "meet", side_effect=AssertionError("asked")):
        clean(g)


def test_what_is_not_proved_is_a_fault():
    """Where every method gives up, the graph is refused; and the sync that settles it is one."""

    with mock.patch.object(races, "meet", return_value=Decision(None, None)):
        (fault,) = check(built(f"{WRITE}\n{READ.replace('8*((pid + 1) % 4)', '32 - 32')}"), RULES)[:1]
        assert "It is not proved that no two units race in 's'" in fault.what
        (race, *_) = races.find(built(f"{WRITE}\n{READ}"))
        assert not race.proved and not race.witness


# --- needs -----------------------------------------------------------------------------------------


def test_every_sync_is_explained_by_the_race_that_it_prevents():
    body = f"{SYNC}\nfor k in 3 {{ {WRITE}\n{SYNC}\n{READ}\n{ALL} }}"
    first, between, last = races.sync_needs(built(body))
    assert first.race is None
    assert between.race is not None and between.race.carried is None and between.lower is None
    assert last.race is not None and last.race.carried == "k"
    assert last.lower == "sram"
    assert [n.position for n in (first, between, last)] == [1, 3, 5]


def test_a_scope_that_is_needed_says_why():
    (need,) = races.sync_needs(built(f"{STORE}\n{ALL}\n{LOAD}"))
    assert need.race is not None and need.lower is None
    assert need.race.scope == "dram"  # what would open with sync.sram in its place


def test_syncs_between_scatters_are_kept():
    """The data decides whether they meet, so that what orders them is needed."""
    body = """
        o = iPointer(dram, fp32, 64, inout)
        r = iPointer(reg, fp32, 8)
        x = iPointer(reg, int32, 1)
        {scatter}
        sync.dram o[0; (1,64); (64,1)], o[0; (1,64); (64,1)]
        {scatter}""".replace(
        "{scatter}", "scatter.fp32 o[0; (8,8); (8,1)], r[0; (1,8); (8,1)], x[0; (1,1); (1,1)]"
    )
    (need,) = races.sync_needs(graph(body, (4, 1)))
    assert need.race is not None


# --- random graphs ---------------------------------------------------------------------------------


def _found(g) -> set[tuple[object, ...]]:
    return {
        (
            str(r.pointer.name),
            (r.first.position, r.first.operand, r.first.kind),
            (r.second.position, r.second.operand, r.second.kind),
            r.carried,
            r.scope,
        )
        for r in races.find(g)
    }


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_random_graphs_agree_with_every_pair_of_instances(g):
    assert _found(g) == enumerated(g)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_isl_finds_the_same(g):
    with (
        mock.patch.object(meeting, "FEW_POINTS", 0),
        mock.patch.object(ownership, "FEW_POINTS", 0),
        mock.patch.object(coverage, "tiled", return_value=False),
    ):
        assert _found(g) == enumerated(g)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_witnesses_are_instances_that_meet(g):
    """Each side touches the element; the units and the order are as the race says."""
    for race in races.find(g):
        w = race.witness
        sides = []
        for access, mark in ((race.first, ""), (race.second, "'")):
            env = {v: w[v + mark] for v in access.region.extents}
            assert all(0 <= env[v] < n for v, n in access.region.extents.items())
            assert env["pid"] % access.region.every == 0
            r0, r1, c0, c1 = access.slice.valid_box(env)
            base = access.slice.offset.evaluate(env)
            strides = access.slice.stride
            assert any(
                base + i * strides[0] + j * strides[1] == w["element"]
                for i in range(r0, r1)
                for j in range(c0, c1)
            )
            sides.append(env)
        x, y = sides
        assert x["pid"] != y["pid"]
        assert (x["pid"] // g.num_units == y["pid"] // g.num_units) == (race.scope == "sram")
        assert race.carried is None or x[race.carried] < y[race.carried]


def test_questions_are_bounded():
    """isl is always asked with a limit of its operations."""
    program = GraphFacts(built(FAIL["no sync"][0]))
    with (
        mock.patch.object(meeting, "FEW_POINTS", 0),
        mock.patch.object(isl, "bounded", wraps=isl.bounded) as asked,
    ):
        assert races.find(program)
    assert asked.called
