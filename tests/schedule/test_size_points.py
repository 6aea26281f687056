# SPDX-License-Identifier: Apache-2.0
"""Representative sizes: how users write them, what is refused, and what is taken where nobody says."""

from __future__ import annotations

from typing import Any

import pytest
from uir_tvm.errors import TuneError
from uir_tvm.igraph.space import Size
from uir_tvm.schedule.size_points import LARGE, SMALL, SizePoint, default_points, given_points, merged

SYMBOLS = ("n", "s")


@pytest.mark.parametrize(
    "given",
    ["s=128, n=8:0.3", {"n": 8, "s": 128}, ({"n": 8, "s": "128"}, 0.3), SizePoint({"n": 8, "s": 128}, 0.3)],
)
def test_every_spelling(given: Any) -> None:
    """Text, sizes, a pair or a point are the same, in the order of the model's symbols."""
    (point,) = given_points([given], SYMBOLS)
    assert list(point.sizes.items()) == [("n", 8), ("s", 128)]
    assert point.weight == (1.0 if isinstance(given, dict) else 0.3)
    assert str(point) == "n = 8, s = 128"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "whole numbers"),
        ("n", "whole numbers"),
        ("n=8,s=x", "whole numbers"),
        ("n=8,s=1.5", "whole numbers"),
        ("n=8,s=-1", "0 or more"),
        ("n=8,n=9,s=1", "each symbol once"),
        ("=8,s=1", "each symbol once"),
        ("n=8,s=1:", "a number as weight"),
        ("n=8,s=1:much", "a number as weight"),
        ("n=8,s=1:0", "above 0"),
        ("n=8,s=1:-2", "above 0"),
        ("n=8,s=1:nan", "above 0"),
        ("n=8,s=1:inf", "above 0"),
        ("n=8,s=1,m=2", "leaves no size m open"),
        ("n=8", "s has no number"),
        ({}, "0 or more"),
        (({"n": 8, "s": 1},), "sizes and a weight"),
        (7, "sizes and a weight"),
    ],
)
def test_what_is_refused(given: Any, said: str) -> None:
    """Each says what is needed, where, and how it is written."""
    with pytest.raises(TuneError) as refused:
        given_points([given], SYMBOLS)
    for part in (said, "--sizes", "n=8,s=128:0.3"):
        assert part in str(refused.value)


def test_sizes_that_are_given_twice_are_refused() -> None:
    with pytest.raises(TuneError, match="once"):
        given_points(["n=8,s=1", "s=1,n=8:2"], SYMBOLS)


def test_a_model_without_open_sizes_takes_none() -> None:
    with pytest.raises(TuneError, match="every size of the model is known"):
        given_points(["n=8"], ())


def test_the_default_follows_ranges_and_divisors() -> None:
    """The least, small ones, and each large beside small others; equal ones once, all within the ranges."""
    assert [p.sizes for p in default_points([Size("n", 0, 1 << 31)])] == [
        {"n": 1},
        {"n": SMALL},
        {"n": LARGE},
    ]
    two = [Size("n", 2, 8), Size("s", 0, 100, 12)]
    assert [tuple(p.sizes.values()) for p in default_points(two)] == [(2, 12), (8, 12), (8, 96)]
    assert [p.sizes for p in default_points([Size("n", 3000, 4000)])] == [{"n": 3000}]
    assert all(p.weight == 1 for p in default_points(two))


def test_weights_of_equal_sizes_are_added_and_all_are_one() -> None:
    """As where a kernel has one of the model's sizes only."""
    points = [SizePoint({"n": 1}, 1.0, "n = 1, s = 4"), SizePoint({"n": 8}, 2.0), SizePoint({"n": 1}, 1.0)]
    assert [(p.sizes, p.weight) for p in merged(points)] == [({"n": 1}, 0.5), ({"n": 8}, 0.5)]
    assert merged([]) == ()
