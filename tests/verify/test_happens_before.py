# SPDX-License-Identifier: Apache-2.0
"""The order of instances: the conjunctions list exactly the pairs that no barrier separates."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.happens_before import Order, Pairing, Relation

from .graphs import graph
from .racing import graphs, moments

MEMORY = """
s = iPointer(sram, fp32, 64)
r = iPointer(reg, fp32, 64)
"""
WRITE = "fill.fp32 s[0; (1,8); (8,1)] [0.0]"
READ = "move.sram.reg.fp32 r[0; (1,8); (8,1)], s[0; (1,8); (8,1)]"
SYNC = "sync.sram s[0; (1,64); (64,1)], s[0; (1,64); (64,1)]"


def pairings(body: str) -> list[Pairing]:
    """Of the write and the read of a body, under its syncs, in both directions."""
    program = GraphFacts(graph(MEMORY + body, (1, 4)))
    order = Order(program)
    write, read = program.by_pointer["s"]
    places = [b.place for b in order.barriers]
    return [*order.pairings(write, read, places), *order.pairings(read, write, places)]


def test_a_barrier_between_leaves_nothing():
    assert pairings(f"{WRITE}\n{SYNC}\n{READ}") == []


def test_without_one_they_are_concurrent():
    assert pairings(f"{WRITE}\n{READ}") == [Pairing()]


def test_a_loop_carries_a_read_to_the_next_write():
    """The barrier cuts the iteration at one place; the other is only passed from an iteration to the next."""
    assert pairings(f"for k in 4 {{ {WRITE}\n{SYNC}\n{READ} }}") == [Pairing((), "k", 1)]


def test_a_barrier_in_another_loop_counts():
    assert pairings(f"{WRITE}\nfor k in 2 {{ {SYNC} }}\n{READ}") == []


def test_a_barrier_inside_a_loop_leaves_its_first_and_last_iteration():
    """After the last write of the inner loop comes no barrier; the read's loop has none."""
    assert pairings(f"for i in 4 {{ {SYNC}\n{WRITE} }}\nfor j in 4 {{ {READ} }}") == [
        Pairing((), None, None, (("i", 3),))
    ]


def test_barriers_of_a_group_form_are_between_its_phases():
    one = "[0; (1,1); (1,1)]"
    program = GraphFacts(
        graph(
            MEMORY + f"reduce.add.row.group.fp32 r{one}, r{one} [buffer=s[0; (1,4); (4,1)], group_size=4]",
            (1, 4),
        )
    )
    order = Order(program)
    (write, read) = program.by_pointer["s"]
    (barrier,) = order.barriers
    assert (barrier.size, barrier.position) == (4, 0)
    assert list(order.pairings(write, read, [])) == [Pairing()]
    assert list(order.pairings(write, read, [barrier.place])) == []


def test_kinds_of_pairs_of_units():
    """Of groups of eight with sets of two and four: every kind of pair is there once, and none twice."""
    one = "[0; (1,1); (1,1)]"
    forms = "\n".join(
        f"reduce.add.row.group.fp32 r{one}, r{one} [buffer=s[0; (1,{k}); ({k},1)], group_size={k}]"
        for k in (2, 4)
    )
    program = GraphFacts(graph(MEMORY + forms, (4, 8)))
    order = Order(program)
    kinds = list(order.relations(order.barriers, within_group=False))
    for u, v in product(range(32), range(32)):
        if u != v:
            assert sum(_is_of(kind, u, v) for kind in kinds) == 1
    within = list(order.relations(order.barriers, within_group=True))
    assert within == [k for k in kinds if 8 in k.joined]
    assert [k.conditions() for k in within] == [([2], []), ([4], [2]), ([8], [4])]


def _is_of(kind: Relation, u: int, v: int) -> bool:
    joined = all(u // s == v // s for s in kind.joined)
    return joined and all(u // s != v // s for s in kind.apart)


@pytest.mark.parametrize("scope", ["none", "all"])
@settings(max_examples=150, deadline=None)
@given(g=graphs())
def test_pairings_are_the_pairs_of_moments_without_a_barrier(scope, g):
    """Of any two accesses: expanded, the conjunctions are what a run of the loop tree shows."""
    program = GraphFacts(g)
    order = Order(program)
    barriers = order.barriers if scope == "all" else []
    places = [b.place for b in barriers]
    ran = moments(g)
    at = {p: k for k, p in enumerate(b.position for b in barriers)}
    stops = [(t, 2) for t, (position, _, _) in enumerate(ran) if position in at]
    everything = [a for a in program.accesses if a.slice.pointer.level != "reg"][:6]
    for a, b in product(everything, everything):
        found = set()
        for pairing in order.pairings(a, b, places):
            new = {
                (t, u)
                for t, (p, _, x) in enumerate(ran)
                for u, (q, _, y) in enumerate(ran)
                if (p, q) == (a.position, b.position) and _paired(pairing, x, y)
            }
            assert not new & found, "listed twice"
            found |= new
        expected = {
            (t, u)
            for t, (p, _, _) in enumerate(ran)
            for u, (q, _, _) in enumerate(ran)
            if (p, q) == (a.position, b.position)
            and (t, a.phase) <= (u, b.phase)
            and not any((t, a.phase) < stop < (u, b.phase) for stop in stops)
        }
        assert found == expected


def _paired(pairing: Pairing, x: dict[str, int], y: dict[str, int]) -> bool:
    carried = pairing.carried
    later = carried is None or 1 <= y[carried] - x[carried] <= (pairing.within or 99)
    return (
        all(x[v] == y[v] for v in pairing.equal)
        and later
        and all(x[v] == value for v, value in pairing.first_at)
        and all(y[v] == value for v, value in pairing.second_at)
    )
