# SPDX-License-Identifier: Apache-2.0
"""Graphs with sizes: right ones are proved for all sizes, faults are found with sizes that show them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import interpreter, parse_igraph
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.igraph.sizes import at
from uir_tvm.verify import check, isl

from tests.asked import asked
from tests.corpus import by_hand
from tests.corpus.batched import batched

from .compiled_forms import FORMS
from .coordinate_graphs import coordinate_graph
from .sized_campaign import SizedTally, first_fault, is_empty, plant, plant_in, prove, sizes_of
from .sized_graphs import sized_graph
from .sized_table import FAULTS, GRAPHS, ROWS


@pytest.mark.parametrize("text", GRAPHS)
def test_the_graphs_without_faults_are_right(text: str) -> None:
    assert check(parse_igraph(text)) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_at_the_least_size_that_shows_it(name: str) -> None:
    fault = FAULTS[name]
    found = check(fault.graph)
    assert found[0].rule == fault.rule
    least = fault.sizes(fault.size)
    assert sizes_of(fault.graph, found[0]) == least
    name, value = next(iter(least.items()))
    assert str(found[0]).count(f"{name}={value}") == 1


@pytest.mark.parametrize("name", FAULTS)
def test_the_static_graph_has_the_fault_at_the_witness_and_not_elsewhere(name: str) -> None:
    fault = FAULTS[name]
    static = at(fault.graph, fault.sizes(fault.size))
    assert is_empty(static) or fault.rule in {one.rule for one in check(static)}
    for size in fault.right_at:
        assert check(at(fault.graph, fault.sizes(size))) == []


def test_limits_are_told_for_all_sizes() -> None:
    fault = check(FAULTS["where 64 does not divide n the last tile reaches too far"].graph)[0]
    assert (fault.need, fault.limit) == ("address 63", "size n elements")
    fault = check(FAULTS["the last tile has a row too few"].graph)[0]
    assert fault.need == "all 8*n elements written"


def test_what_is_not_proved_is_refused_by_name(monkeypatch) -> None:
    """Without any effort of isl there is no proof; that a few sizes are right is none."""

    def gives_up(question, max_operations=0):
        raise isl.Exhausted

    monkeypatch.setattr(isl, "bounded", gives_up)
    (fault,) = check(parse_igraph(ROWS))
    assert fault.rule == "coverage" and "not proved" in fault.what
    assert fault.need == "an exact answer, for all n"
    assert fault.limit == f"{isl.MAX_OPERATIONS} operations of isl"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_right_graphs_raise_no_alarm(seed: int) -> None:
    tally = SizedTally()
    prove(seed, tally)
    prove(seed, tally, made=coordinate_graph)
    assert tally.wrong == []


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([sized_graph, coordinate_graph]))
def test_right_graphs_are_right_at_each_size(seed: int, made) -> None:
    """The generator makes what it says: the static verifier and the interpreter take the graphs too."""
    graph = made(random.Random(seed), 12)
    for values in (
        {str(s.name): int(s.low) for s in graph.sizes},
        {str(s.name): int(s.high) for s in graph.sizes},
    ):
        static = at(graph, values)
        if not is_empty(static):
            assert check(static) == []
            given = [p for p in static.params if p.role != "out"]
            interpreter.run(static, *(np.ones(p.size, numpy_of(p.dtype)) for p in given))


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6))
def test_planted_faults_are_found_exactly_where_some_size_shows_them(seed: int) -> None:
    tally = SizedTally()
    plant(seed, tally, most=12)
    plant(seed, tally, most=5, made=coordinate_graph)
    assert tally.wrong == []


@pytest.mark.parametrize("name", asked(list(FORMS)[::3], list(FORMS)))
def test_faults_in_what_the_compiler_makes_are_found_with_sizes_that_show_them(name: str) -> None:
    """Of every form in which sizes occur; the graph itself is right, for all sizes and for each."""
    graph, tally = FORMS[name].graph(), SizedTally()
    assert check(graph) == [] and first_fault(graph) is None
    plant_in(graph, 0, tally, count=asked(1, 3))
    assert tally.wrong == [] and tally.found >= 5


@pytest.mark.parametrize("entry", list(by_hand.entries()), ids=lambda entry: entry.name)
def test_graphs_of_the_corpus_are_right_for_any_number_of_inputs(entry) -> None:
    graph = batched(entry.graph)
    assert check(graph) == []
    assert check(at(graph, {"n": 2})) == []
