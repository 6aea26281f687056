# SPDX-License-Identifier: Apache-2.0
"""Every pass does to its example what it says, keeps it valid and its values to the bit, and is then done."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IGraph, parse_igraph, print_igraph
from uir_tvm.optimize import PASSES, optimize
from uir_tvm.verify import ALL, verify

from .equal import assert_same_bits

NAMES = [row.name for row in PASSES]
BY_NAME = {row.name: row for row in PASSES}

#: Passes whose example is at fault before them, and the rules that it breaks: they are there to mend it.
MENDS = {"insert_sync": ("race",)}

#: Passes that find something to do in what they made, and why that is meant.
NOT_IDEMPOTENT: dict[str, str] = {}


def example(name: str, which: str) -> IGraph:
    return parse_igraph(getattr(BY_NAME[name].load(), which))


@pytest.mark.parametrize("name", NAMES)
def test_before_becomes_after(name: str) -> None:
    made = BY_NAME[name].run(example(name, "BEFORE"))
    assert print_igraph(made) == print_igraph(example(name, "AFTER"))


@pytest.mark.parametrize("name", NAMES)
def test_both_are_valid_and_equal(name: str) -> None:
    before, after = example(name, "BEFORE"), example(name, "AFTER")
    verify(before, [rule for rule in ALL if rule not in MENDS.get(name, ())])
    verify(after)
    for seed in range(3):
        assert_same_bits(before, after, seed=seed)


@pytest.mark.parametrize("name", NAMES)
def test_there_is_nothing_left_to_do(name: str) -> None:
    after = example(name, "AFTER")
    again = BY_NAME[name].run(after)
    assert (again is not after) == (name in NOT_IDEMPOTENT), print_igraph(again)


@pytest.mark.parametrize("name", NAMES)
def test_documentation_says_before_and_after_and_why_it_stands_where_it_does(name: str) -> None:
    text = BY_NAME[name].load().__doc__ or ""
    assert "Before" in text and "After" in text
    assert BY_NAME[name].reason


@pytest.mark.parametrize("name", NAMES)
def test_all_passes_together_take_every_example(name: str) -> None:
    """Also what the other passes make of it is valid and has the same values."""
    before = example(name, "AFTER" if name in MENDS else "BEFORE")
    result = optimize(before)
    assert [step.name for step in result.steps] == NAMES and not result.faults
    assert_same_bits(before, result.graph)
