# SPDX-License-Identifier: Apache-2.0
"""Passes over graphs with sizes: what they make is right at all sizes, and computes the same at some."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import parse_igraph
from uir_tvm.igraph.sizes import at
from uir_tvm.optimize import optimize
from uir_tvm.optimize.figures import figures
from uir_tvm.optimize.passes import FIRST, PASSES
from uir_tvm.optimize.split import phases
from uir_tvm.verify import check, equivalent, races

from tests.asked import asked
from tests.corpus import by_hand
from tests.corpus.batched import batched
from tests.faults.sized_graphs import sized_graph
from tests.faults.sized_table import FLAT, PHASES, ROWS

EVERY = [row.name for row in (*FIRST, *PASSES)]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_all_passes_over_random_graphs(seed):
    graph = sized_graph(random.Random(seed), 40)
    made = optimize(graph, EVERY).graph  # verified after every pass
    assert equivalent(graph, made, bits=True)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in by_hand.entries() if asked(entry.name != "histogram", True)],
    ids=lambda entry: entry.name,
)
def test_all_passes_over_the_corpus_for_any_number_of_inputs(entry):
    graph = batched(entry.graph)
    made = optimize(graph)
    assert made.graph.sizes == graph.sizes
    assert equivalent(graph, made.graph, bits=True)


def test_syncs_are_placed_where_some_size_asks_for_them():
    """Of one group a narrower barrier would do; of two it takes one of all units."""
    bare = parse_igraph(PHASES.replace("sync.dram", "sync.sram"))
    (sync,) = [iop for iop, _ in optimize(bare, ["insert_sync"]).graph.walk() if iop.op == "sync"]
    assert sync.attrs["scope"] == "dram"
    assert str(sync.target.col_end) == "n"
    one_group = parse_igraph(PHASES.replace("[8, 4096, 8]", "[8, 8, 8]").replace("4096", "8"))
    (sync,) = [iop for iop, _ in optimize(one_group, ["insert_sync"]).graph.walk() if iop.op == "sync"]
    assert sync.attrs["scope"] == "sram"


def test_a_needless_sync_goes():
    text = PHASES.replace("t[n - 4 - 4*pid", "t[4*pid")
    made = optimize(parse_igraph(text), ["insert_sync"]).graph
    assert not [iop for iop, _ in made.walk() if iop.op == "sync"]


def test_every_sync_that_is_left_is_needed_at_some_size():
    (need,) = races.sync_needs(parse_igraph(PHASES))
    assert need.race is not None and need.race.witness["n"] >= 8


def test_a_mask_that_no_size_needs_goes():
    whole = ROWS.replace("[1, 1000]", "[4, 1000, 4]")
    made = optimize(parse_igraph(whole), ["peel_tails"]).graph
    assert all(piece.row_end is None for iop, _ in made.walk() for piece in iop.slices())
    kept = optimize(parse_igraph(ROWS), ["peel_tails"]).graph
    assert all(piece.row_end is not None for iop, _ in kept.walk() for piece in iop.slices())


def test_alignments_hold_at_all_sizes():
    made = optimize(parse_igraph(FLAT), ["coalesce_moves"]).graph
    assert [iop.attrs.get("align") for iop, _ in made.walk()] == [256, 256]
    fault = parse_igraph(
        PHASES.replace("t[n - 4 - 4*pid; (1,4); (4,1)]", "t[n - 4 - 4*pid; (1,4); (4,1)] [align=32]")
    )
    (found,) = check(fault)
    assert found.rule == "alignment" and found.witness["n"] == 8


def test_parts_between_barriers_keep_their_sizes():
    parts = phases(parse_igraph(PHASES))
    assert [check(part) for part in parts] == [[], []]
    assert [str(part.pointer("t").elements) for part in parts] == ["n", "n"]


def test_figures_are_those_of_the_greatest_size():
    graph = parse_igraph(ROWS)
    assert figures(graph) == figures(at(graph, {"n": 1000}))
