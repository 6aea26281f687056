# SPDX-License-Identifier: Apache-2.0
"""Counts against enumeration in plain Python, on random axes and regions."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.explain import counting
from uir_tvm.explain.counting import Count, distinct, elements, volume
from uir_tvm.igraph import Affine, affine, var
from uir_tvm.verify.region import Axis, Region

VARIABLES = ("pid", "i", "j.outer")


@st.composite
def expressions(draw: Any) -> Affine:
    """A sum of two terms: a variable, its quotient or its remainder."""
    total = affine(draw(st.integers(-8, 16)))
    for _ in range(2):
        value, k = var(draw(st.sampled_from(VARIABLES))), draw(st.integers(1, 3))
        total = total + draw(st.integers(-4, 4)) * draw(st.sampled_from((value, value // k, value % k)))
    return total


@st.composite
def axes(draw: Any) -> Axis:
    """A short axis, mostly with bounds."""
    bounds = st.lists(expressions(), max_size=2).map(tuple)
    return Axis(draw(st.integers(0, 5)), draw(st.integers(-7, 7)), draw(bounds), draw(bounds))


@st.composite
def regions(draw: Any) -> Region:
    """A region over a small domain."""
    extents = {v: draw(st.integers(1, 4)) for v in VARIABLES}
    return Region(draw(expressions()), draw(axes()), draw(axes()), extents, draw(st.integers(1, 2)))


def points(extents: dict[str, int]) -> list[dict[str, int]]:
    """Every value of the variables."""
    return [dict(zip(extents, v, strict=True)) for v in itertools.product(*map(range, extents.values()))]


def length(axis: Axis, env: dict[str, int]) -> range:
    """The positions of an axis."""
    low = max([0, *(b.evaluate(env) for b in axis.lower)])
    return range(low, max(low, min([axis.extent, *(b.evaluate(env) for b in axis.upper)])))


@given(regions(), regions())
def test_elements_are_those_of_enumeration(region: Region, other: Region) -> None:
    expected = narrowed = 0
    for env in points(dict(region.extents)):
        if env["pid"] % region.every == 0:
            here = len(length(region.rows, env)) * len(length(region.cols, env))
            expected += here
            narrowed += here * bool(len(length(other.rows, env)) and len(length(other.cols, env)))
    assert elements(region) == Count(expected)
    assert elements(region, where=other) == Count(narrowed)


@given(st.lists(regions(), min_size=1, max_size=3))
def test_distinct_addresses_are_those_of_enumeration(found: list[Region]) -> None:
    """Regions are moved up to begin at address 0, as those of a verified graph do."""
    every = []
    for region in found:
        for env in points(dict(region.extents)):
            if env["pid"] % region.every:
                continue
            base = region.offset.evaluate(env)
            every += [
                (region, base + i * region.rows.stride + j * region.cols.stride)
                for i in length(region.rows, env)
                for j in length(region.cols, env)
            ]
    # positions outside of the valid box have addresses too, which counting must leave out
    low = min((a for _, a in every), default=0)
    size = max((a for _, a in every), default=0) - low + 1
    moved = [attrs.evolve(region, offset=region.offset - low) for region in found]
    assert distinct(moved, size) == Count(len({a for _, a in every}))


def test_independent_axes_are_not_enumerated_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows by pid and columns by a loop: 1000 + 1000 values in place of a million."""
    monkeypatch.setattr(counting, "LIMIT", 1000)
    rows = Axis(8, 1, upper=(affine(7990) - 8 * var("pid"),))
    cols = Axis(8, 1, upper=(affine(7993) - 8 * var("i"),))
    assert volume((rows, cols), {"pid": 1000, "i": 1000, "k": 3}) == Count(3 * 7990 * 7993)


def test_too_much_to_count_is_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LIMIT", 10)
    rows = Axis(8, 1, upper=(affine(85) - 8 * var("pid"),))
    assert volume((rows,), {"pid": 11}) == Count(88, exact=False)
    region = Region(5 * (var("pid") % 3), rows, Axis(1, 1), {"pid": 11})
    assert distinct([region], 18) == Count(18, exact=False)


def test_what_all_units_read_counts_once_as_distinct() -> None:
    region = Region(affine(0), Axis(4, 8), Axis(8, 1), {"pid": 100, "i": 7})
    assert elements(region) == Count(100 * 7 * 32)
    assert distinct([region], 64) == Count(32)
