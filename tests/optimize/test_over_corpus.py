# SPDX-License-Identifier: Apache-2.0
"""Over the corpus: all passes together keep every graph valid and every bit of its results."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import PASSES, optimize, simplify
from uir_tvm.verify import verify

from ..corpus import Entry, by_hand, recipes
from .equal import assert_same_bits

BY_HAND = {entry.name: entry for entry in by_hand.entries()}


def check(entry: Entry) -> None:
    result = optimize(entry.graph)
    assert len(result.steps) == len(PASSES)
    assert_same_bits(entry.graph, result.graph)


@pytest.mark.parametrize("name", BY_HAND)
def test_graphs_by_hand(name: str) -> None:
    check(BY_HAND[name])


@pytest.mark.parametrize("machine", recipes.HARDWARE)
def test_graphs_of_recipes(machine: str) -> None:
    """One test per machine: making the graphs is most of the work."""
    for case, of in recipes.pairs():
        if of == machine:
            check(Entry(f"{case} on {of}", None, recipes.graph(case, of), "recipe"))


@pytest.mark.parametrize("name", BY_HAND)
def test_fast_math_keeps_graphs_valid(name: str) -> None:
    verify(simplify.run(BY_HAND[name].graph, fast_math=True))
