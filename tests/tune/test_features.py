# SPDX-License-Identifier: Apache-2.0
"""The row of numbers of a graph: of fixed length, finite, and telling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm import hardware
from uir_tvm.igraph import IGraph
from uir_tvm.schedule.driver import apply_default
from uir_tvm.schedules import RECIPES
from uir_tvm.tune.features import COLUMNS, NAMES, features

from tests.extracted import extracted
from tests.tune.graphs import tiled

HARDWARE = (("avx2-4core", "cpu"), ("910b2", "ascend"), ("mlu370-x8", "bang"), ("h200", "cuda"))


def row(graph: IGraph) -> dict[str, float]:
    return dict(zip(NAMES, features(graph).tolist(), strict=True))


def test_columns_are_described() -> None:
    assert all(text and name.isidentifier() for name, text in COLUMNS.items())


@pytest.mark.parametrize("name, kind", HARDWARE)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.hero.replace(" ", "_"))
def test_every_recipe_on_every_kind(recipe, name: str, kind: str) -> None:
    hw = hardware.get(name, kind)
    graph = extracted(apply_default(recipe.example().func, hw, [recipe]), hw, name="example")
    found = features(graph)
    assert found.shape == (len(COLUMNS),) and found.dtype == np.float32 and np.isfinite(found).all()
    assert [n for n in NAMES if n.startswith("is_") and row(graph)[n]] == [f"is_{kind}"]


@settings(deadline=None, max_examples=30)
@given(
    units=st.integers(1, 100),
    trips=st.integers(1, 50),
    rows=st.integers(1, 64),
    cols=st.integers(1, 512),
    stages=st.integers(1, 3),
    last=st.one_of(st.none(), st.integers(1, 1000)),
    strided=st.booleans(),
)
def test_finite(**shape) -> None:
    """Also where guards leave nothing of most tiles."""
    assert np.isfinite(features(tiled(**shape))).all()


@settings(deadline=None, max_examples=30)
@given(units=st.integers(1, 96), trips=st.integers(1, 30), rows=st.integers(1, 32), strided=st.booleans())
def test_twice_the_rows_move_twice_the_bytes(units: int, trips: int, rows: int, strided: bool) -> None:
    """One more in the logarithm, of bytes, operations and memory; what does not change stays."""
    one = row(tiled(units=units, trips=trips, rows=rows, strided=strided))
    two = row(tiled(units=units, trips=trips, rows=2 * rows, strided=strided))
    for name in ("dram_read", "dram_written", "dram_unit", "operations_transcendental", "words", "reg_held"):
        assert two[name] - one[name] == pytest.approx(1, abs=0.03), name
    for name in ("runs_load", "units", "turns", "vector_cols", "width", "hw_reg"):
        assert two[name] == one[name], name


def test_more_trips_are_more_runs() -> None:
    one, four = row(tiled(trips=8)), row(tiled(trips=32))
    assert four["runs_load"] - one["runs_load"] == pytest.approx(2, abs=0.2)
    assert four["load_bytes"] == one["load_bytes"] and four["trips"] > one["trips"]


def test_turns_of_units() -> None:
    """48 vector cores: 49 units take two turns, of which the last is nearly empty."""
    assert row(tiled(units=48))["last_turn"] == 1 and row(tiled(units=24))["busy"] == 0.5
    late = row(tiled(units=49))
    assert late["turns"] > row(tiled(units=48))["turns"] and late["last_turn"] == pytest.approx(1 / 48)


def test_pieces_and_flights() -> None:
    whole, apart = row(tiled(stages=2)), row(tiled(stages=1, strided=True))
    assert whole["load_piece"] > apart["load_piece"] and whole["load_pieces"] < apart["load_pieces"]
    assert (whole["flight_share"], whole["stages"], apart["flight_share"], apart["stages"]) == (1, 2, 0, 1)
