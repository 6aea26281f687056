# SPDX-License-Identifier: Apache-2.0
"""Every pass does to its example what it says, keeps it valid and its values to the bit, and is then done."""

from __future__ import annotations

import os

import pytest
from uir_tvm.igraph import print_igraph
from uir_tvm.optimize import FIRST, PASSES, optimize
from uir_tvm.verify import ALL, verify

from .equal import assert_same_bits
from .pairs import FOLDER, example

BY_NAME = {row.name: row for row in (*FIRST, *PASSES)}
NAMES = list(BY_NAME)

#: Passes whose example is at fault before them, and the rules that it breaks: they are there to mend it.
MENDS = {"insert_sync": ("race",)}

#: Passes that find something to do in what they made, and why that is meant.
NOT_IDEMPOTENT: dict[str, str] = {}


@pytest.mark.parametrize("name", NAMES)
def test_before_becomes_after(name: str) -> None:
    made = BY_NAME[name].run(example(name, "before"))
    if os.environ.get("UIR_UPDATE_GOLDEN"):
        (FOLDER / f"{name}.after.igraph").write_text(print_igraph(made))
    assert print_igraph(made) == print_igraph(example(name, "after"))


@pytest.mark.parametrize("name", NAMES)
def test_both_are_valid_and_equal(name: str) -> None:
    before, after = example(name, "before"), example(name, "after")
    verify(before, [rule for rule in ALL if rule not in MENDS.get(name, ())])
    verify(after)
    for seed in range(3):
        assert_same_bits(before, after, seed=seed)


@pytest.mark.parametrize("name", NAMES)
def test_there_is_nothing_left_to_do(name: str) -> None:
    after = example(name, "after")
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
    before = example(name, "after" if name in MENDS else "before")
    result = optimize(before)
    assert [step.name for step in result.steps] == [row.name for row in PASSES] and not result.faults
    assert_same_bits(before, result.graph)


def test_every_pair_is_of_a_pass() -> None:
    stems = {path.name.split(".")[0] for path in FOLDER.glob("*.igraph")}
    assert stems == {*NAMES, "split"}, "split is no pass: targets call it"
