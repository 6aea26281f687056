# SPDX-License-Identifier: Apache-2.0
"""What the suite takes of a table of names and places leaves out none of either."""

from __future__ import annotations

import itertools

import pytest

from .asked import every_two, in_turn

PLACES = ["cpu", "cuda", "ascend", "bang"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 12])
def test_every_name_meets_a_device_and_every_device_a_name(count: int) -> None:
    names = list(range(count))
    found = in_turn(names, PLACES, every=False)
    assert found == in_turn(names, PLACES, every=False) and len(set(found)) == len(found)
    assert {name for name, place in found if place == "cpu"} == set(names)
    assert {name for name, place in found if place != "cpu"} == set(names)
    assert {place for _, place in found} == set(PLACES)
    assert len(found) == count + max(count, 3)


def test_what_comes_in_the_rhythm_of_the_devices_meets_all_of_them() -> None:
    """Three dtypes of each operator, on three devices: no dtype stays on one."""
    names = list(itertools.product("abcdef", ("fp32", "fp16", "bf16")))
    found = in_turn(names, PLACES, every=False)
    assert {(name[1], place) for name, place in found} == set(
        itertools.product(("fp32", "fp16", "bf16"), PLACES)
    )


def test_pairs_that_there_are_not_give_way_to_others() -> None:
    found = in_turn("ab", PLACES, every=False, may=lambda name, place: (name, place) != ("a", "cuda"))
    assert ("a", "cuda") not in found and {name for name, place in found if place != "cpu"} == {"a", "b"}
    assert {place for _, place in found} == set(PLACES)
    alone = in_turn("ab", PLACES, every=False, always=0, may=lambda name, place: place == "bang")
    assert alone == [("a", "bang"), ("b", "bang")]


def test_the_campaign_takes_all_there_are() -> None:
    assert in_turn("ab", PLACES, every=True) == list(itertools.product("ab", PLACES))


@pytest.mark.parametrize(("names", "ways"), [(2, 2), (5, 2), (7, 3)])
def test_any_two_things_of_three_lists_meet(names: int, ways: int) -> None:
    lists = range(names), PLACES, range(ways)
    found = every_two(*lists, every=False)
    for one, other in itertools.combinations(range(3), 2):
        met = {(triple[one], triple[other]) for triple in found}
        assert met == set(itertools.product(lists[one], lists[other]))
    assert len(found) == names * len(PLACES) < len(every_two(*lists, every=True))
