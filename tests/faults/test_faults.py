# SPDX-License-Identifier: Apache-2.0
"""The table of faults plants what it says, and the replay of races agrees with the verifier."""

from __future__ import annotations

import random

import pytest
from uir_tvm.igraph import IGraph, interpreter, parse_igraph
from uir_tvm.verify import check, races

from tests.corpus import Entry, by_hand

from . import FAULTS, campaign, oracle
from .campaign import Tally
from .equality import INPUTS, Reference, inputs_of
from .judge import EQUIVALENT, judge
from .random_graphs import careless_graph, valid_graph

ENTRIES = {entry.name: entry for entry in by_hand.entries()}
ORIGINALS = {str(entry.graph) for entry in ENTRIES.values()}


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_plants_something_in_the_corpus(kind: str) -> None:
    """Each mutator makes graphs that differ from all originals."""
    made = [
        graph
        for entry in ENTRIES.values()
        for _, graph in campaign.plants(entry.graph, FAULTS[kind], random.Random(0), 2)
    ]
    assert made
    assert not ORIGINALS & {str(graph) for graph in made}


@pytest.mark.parametrize("name", ENTRIES)
def test_replay_finds_no_race_in_the_corpus(name: str) -> None:
    assert oracle.first_conflict(ENTRIES[name].graph) is None


@pytest.mark.parametrize("seed", range(40))
def test_replay_and_verifier_agree_on_random_graphs(seed: int) -> None:
    """With some syncs left out a graph may have races or not: two ways of deciding it agree."""
    graph = careless_graph(random.Random(seed))
    assert bool(races.find(graph, limit=1)) == (oracle.first_conflict(graph) is not None), str(graph)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_of_groups_are_valid(seed: int) -> None:
    """No rule is broken, no race is found by replay, and the interpreter runs it."""
    graph = valid_graph(random.Random(seed))
    assert check(graph) == []
    assert oracle.first_conflict(graph) is None
    interpreter.run(graph, inputs_of(graph, 0, 0))


def test_missing_barrier_is_found_by_replay() -> None:
    """The unit before reads the slot that this unit overwrites in the next iteration."""
    conflict = oracle.first_conflict(_without_barrier())
    assert conflict is not None
    assert conflict.pointer == "s" and abs(conflict.pids[0] - conflict.pids[1]) in (1, 3)
    assert set(conflict.kinds) == {"read", "write"}


def test_two_graphs_of_the_same_bits_are_told_from_others() -> None:
    """Exchanging operands of an addition changes nothing; of a subtraction it does."""
    graph = ENTRIES["neighbours_sram"].graph
    reference = Reference(graph)
    assert reference.difference(graph) == ""
    for _, planted in campaign.plants(graph, FAULTS["wrong-op"], random.Random(0), 4):
        assert reference.difference(planted) != ""
    assert all(reference.result(number) is not None for number in range(len(INPUTS)))


def test_a_dropped_sync_is_judged_a_race() -> None:
    entry = ENTRIES["neighbours_sram"]
    reference = Reference(entry.graph)
    found = {
        judge(reference, graph).by
        for _, graph in campaign.plants(entry.graph, FAULTS["drop-sync"], random.Random(0), 10)
    }
    assert found == {"race"}


@pytest.mark.parametrize("name", ["product_shared_ragged", "grouped_softmax"])
def test_campaign_on_one_graph_misses_nothing(name: str) -> None:
    tally = Tally()
    planted = list(campaign.plant_all(ENTRIES[name], list(FAULTS), 1, 0, tally))
    assert len(planted) == tally.total() > 10
    assert tally.good, [(p.kind, p.what, p.verdict) for p in tally.failures] + tally.alarms
    assert tally.total(EQUIVALENT) < tally.total() / 3


def test_campaign_tells_an_alarm_and_a_missed_fault() -> None:
    """A graph with a race raises an alarm; a verdict of nobody's is a failure."""
    tally = Tally()
    reference = Reference(_without_barrier())
    campaign.unplanted(Entry("racing", None, reference.graph, "hand"), reference, tally)
    assert [name for name, _ in tally.alarms] == ["racing"]
    assert not tally.good


def test_random_graphs_raise_no_alarm() -> None:
    tally = Tally()
    for number, graph in enumerate(campaign.random_graphs(16, 1)):
        campaign.no_alarm(graph, number, tally)
    assert tally.random == 16 and tally.alarms == []


def _without_barrier() -> IGraph:
    return parse_igraph("""
        hardware dev { kind = test num_groups = 1 num_units = 4 reg_bytes = 4096 sram_bytes = 4096
                       vector_bytes = 32 }
        igraph g on dev parallel (1, 4) {
          x = iPointer(dram, fp32, 64, in)
          y = iPointer(dram, fp32, 64, out)
          a = iPointer(reg, fp32, 8)
          s = iPointer(sram, fp32, 32)
          for l in 2 {
            move.dram.reg.fp32 a[0; (1,8); (8,1)], x[8*pid + 32*l; (1,8); (8,1)]
            move.reg.sram.fp32 s[8*pid; (1,8); (8,1)], a[0; (1,8); (8,1)]
            sync.sram s[0; (1,32); (32,1)], s[0; (1,32); (32,1)]
            move.sram.reg.fp32 a[0; (1,8); (8,1)], s[8*((pid + 1) % 4); (1,8); (8,1)]
            move.reg.dram.fp32 y[8*pid + 32*l; (1,8); (8,1)], a[0; (1,8); (8,1)]
          }
        }""")
