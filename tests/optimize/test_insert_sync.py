# SPDX-License-Identifier: Apache-2.0
"""Syncs are enough, and none of them is needless; their number is the least that trying all gaps finds."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import IGraph, ISlice, Loop, make, print_igraph
from uir_tvm.optimize import insert_sync
from uir_tvm.verify import races

from ..verify.graphs import graph
from ..verify.racing import enumerated, graphs
from ..verify.test_races import ALL, FAIL, LOAD, PASS, READ, STORE, SYNC, WRITE, built


def placed(g: IGraph, keep: bool = False) -> list[tuple[int, str, tuple[str, ...]]]:
    """(position, scope, loops) of the syncs between units that the graph has after the pass."""
    made = insert_sync.run(g, keep=keep)
    assert not races.find(made)
    assert all(n.race is not None and n.lower is None for n in races.sync_needs(made) if not keep)
    return [
        (k, str(iop.attrs["scope"]), tuple(str(n.var) for n in loops))
        for k, (iop, loops) in enumerate(made.walk())
        if iop.op == "sync" and iop.attrs["scope"] != "reg"
    ]


def test_one_between_write_and_read():
    assert placed(built(f"{WRITE}\n{READ}")) == [(2, "sram", ())]


def test_a_loop_needs_one_on_either_way():
    assert placed(built(f"for k in 3 {{ {WRITE}\n{READ} }}")) == [(2, "sram", ("k",)), (4, "sram", ("k",))]


def test_a_double_buffer_needs_one_in_an_iteration():
    bare = PASS["double buffer"].replace(SYNC, "")
    assert placed(built(bare)) == [(2, "sram", ("k",))]


def test_outside_the_loop_where_that_serves():
    """Fills in one loop, reads in another: one barrier between, none in either."""
    body = f"for i in 3 {{ {WRITE} }}\nfor j in 5 {{ {READ} }}"
    assert placed(built(body)) == [(2, "sram", ())]


def test_scope_dram_only_where_groups_meet():
    assert placed(built(f"{STORE}\n{LOAD}")) == [(2, "dram", ())]
    within = LOAD.replace("(pid + 1) % 8", "4*(pid / 4) + (pid + 1) % 4")
    assert placed(built(f"{STORE}\n{within}")) == [(2, "sram", ())]


def test_one_barrier_serves_all_pointers():
    """What must be of scope dram anyway orders the sram too."""
    assert placed(built(f"{WRITE}\n{STORE}\n{READ}\n{LOAD}")) == [(3, "dram", ())]


def test_barriers_of_group_forms_count():
    assert placed(built(PASS["the barrier of a form"])) == []
    assert placed(built(FAIL["one buffer for two forms"][0])) == [(2, "sram", ())]


def test_needless_syncs_go_unless_they_are_to_stay():
    body = f"{SYNC}\n{WRITE}\n{ALL}\n{SYNC}\n{READ}\n{SYNC}"
    assert [s for _, s, _ in placed(built(body))] == ["sram"]
    assert [s for _, s, _ in placed(built(body), keep=True)] == ["sram", "dram", "sram", "sram"]


def test_what_stands_well_stays_where_it_is():
    g = built(f"for k in 3 {{ {SYNC}\n{WRITE}\n{SYNC}\n{READ} }}")
    assert insert_sync.run(g) is g
    assert insert_sync.run(g, keep=True) is g


def test_a_graph_without_shared_memory_is_left_alone():
    g = graph("r = iPointer(reg, fp32, 8)\nfill.fp32 r[0; (1,8); (8,1)] [0.0]")
    assert insert_sync.run(g) is g


def test_syncs_of_pipes_stay():
    pipes = SYNC.replace("sync.sram", "sync.reg")
    made = insert_sync.run(built(f"{WRITE}\n{pipes}\n{READ}"))
    assert print_igraph(made).count("sync.reg") == 1 and print_igraph(made).count("sync.sram") == 1


def test_a_race_within_an_iop_is_refused():
    with pytest.raises(VerifyError, match="give every unit a part") as caught:
        insert_sync.run(built(FAIL["all write one element"][0]))
    assert caught.value.rule == "race"


def test_the_order_of_scatters_stays():
    body = """
        o = iPointer(dram, fp32, 64, inout)
        r = iPointer(reg, fp32, 8)
        x = iPointer(reg, int32, 1)
        {scatter}{sync}
        {scatter}""".replace(
        "{scatter}", "scatter.fp32 o[0; (8,8); (8,1)], r[0; (1,8); (8,1)], x[0; (1,1); (1,1)]"
    )
    ordered = graph(body.replace("{sync}", "\n" + ALL.replace("d[", "o[")), (4, 1))
    free = graph(body.replace("{sync}", ""), (4, 1))
    assert placed(ordered) == [(1, "dram", ())]
    assert placed(free) == []


# --- random graphs ---------------------------------------------------------------------------------


def _solvable(g: IGraph) -> IGraph | None:
    try:
        return insert_sync.run(g)
    except VerifyError as error:
        assert error.rule == "race"
        return None


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_random_graphs_become_free_of_races_and_need_every_sync(g):
    made = _solvable(g)
    if made is None:
        # no barrier helps: two units meet at one moment, or in the phases of one group form
        assert any(a[0] == b[0] and carried is None for _, a, b, carried, _ in enumerated(g))
        return
    assert not enumerated(made)
    for need in races.sync_needs(made):
        assert need.race is not None and need.lower is None
        assert enumerated(_without(made, need.position))


def _without(g: IGraph, position: int) -> IGraph:
    at = [0]

    def kept(body):
        out = []
        for node in body:
            if isinstance(node, Loop):
                out.append(Loop(node.var, node.extent, kept(node.body)))
            else:
                if at[0] != position:
                    out.append(node)
                at[0] += 1
        return out

    return g.replace(body=kept(g.body))


@settings(max_examples=40, deadline=None)
@given(graphs(max_depth=1))
def test_no_fewer_syncs_at_the_top_would_do(g):
    """Of graphs without loops: every smaller set of gaps leaves a race."""
    assume(not any(isinstance(node, Loop) for node in g.body))
    made = _solvable(g)
    assume(made is not None)
    syncs = [iop for iop, _ in made.walk() if iop.op == "sync" and iop.attrs["scope"] != "reg"]
    bare = [iop for iop in g.body if iop.op != "sync" or iop.attrs["scope"] == "reg"]
    whole = ISlice(g.pointers[0], 0, (1, int(g.pointers[0].size)))
    for count in range(len(syncs)):
        for gaps in combinations(range(1, len(bare)), count):
            body = [
                node
                for k, iop in enumerate(bare)
                for node in ([make.sync(whole, whole, "dram")] * (k in gaps) + [iop])
            ]
            assert enumerated(g.replace(body=body))
