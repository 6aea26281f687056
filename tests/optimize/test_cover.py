# SPDX-License-Identifier: Apache-2.0
"""The cheapest cover is what trying all choices finds."""

from __future__ import annotations

from itertools import chain, combinations
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.optimize import cover
from uir_tvm.optimize.cover import WeightedSet, cheapest

choices = st.lists(st.builds(WeightedSet, st.integers(1, 9), st.integers(0, 63)), min_size=1, max_size=9)


def best(items: list[WeightedSet], wanted: int) -> int | None:
    every = chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))
    return min((sum(c.weight for c in s) for s in every if _union(s) & wanted == wanted), default=None)


def _union(chosen) -> int:
    out = 0
    for c in chosen:
        out |= c.serves
    return out


@settings(max_examples=300, deadline=None)
@given(choices, st.booleans())
def test_agrees_with_trying_all(items, greedily):
    """Cut short, it may cost more, but serves every demand and holds nothing needless."""
    wanted = 63 & _union(items)
    demands = wanted.bit_length()
    if wanted != (1 << demands) - 1:
        with pytest.raises(ValueError, match="no choice serves demand"):
            cheapest(items, demands)
        return
    with mock.patch.object(cover, "MAX_NODES", 0 if greedily else cover.MAX_NODES):
        found = [items[k] for k in cheapest(items, demands)]
    assert _union(found) & wanted == wanted
    for k in range(len(found)):
        assert _union(found[:k] + found[k + 1 :]) & wanted != wanted
    if not greedily:
        assert sum(c.weight for c in found) == best(items, wanted)


def test_no_demand_costs_nothing():
    assert cheapest([WeightedSet(1, 1)], 0) == []


def test_the_bound_counts_demands_that_no_choice_serves_together() -> None:
    """Two that share no choice, and a third that shares one with the first."""
    items = [WeightedSet(2, 0b001), WeightedSet(3, 0b010), WeightedSet(4, 0b100), WeightedSet(5, 0b101)]
    search = cover._Search(items, range(4), {0b001: [0, 3], 0b010: [1], 0b100: [2, 3]})
    assert [search._bound(missing) for missing in (0, 0b001, 0b011, 0b111, 0b110)] == [0, 2, 5, 5, 7]
