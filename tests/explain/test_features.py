# SPDX-License-Identifier: Apache-2.0
"""The rows of numbers of a graph: one for each iOp, of fixed length, finite, and telling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm import hardware
from uir_tvm.explain.features import COLUMNS, NAMES, features
from uir_tvm.igraph import IGraph
from uir_tvm.schedule.driver import apply_default
from uir_tvm.schedules import RECIPES

from tests.extracted import extracted
from tests.tune.graphs import tiled

HARDWARE = (("avx2-4core", "cpu"), ("910b2", "ascend"), ("mlu370-x8", "bang"), ("h200", "cuda"))


def row(graph: IGraph, number: int = 0) -> dict[str, float]:
    """That of one iOp: of `tiled` a load, computation, and a store."""
    return dict(zip(NAMES, features(graph)[number].tolist(), strict=True))


def test_columns_are_described() -> None:
    assert all(text and name.isidentifier() for name, text in COLUMNS.items())


@pytest.mark.parametrize("name, kind", HARDWARE)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.hero.replace(" ", "_"))
def test_every_recipe_on_every_kind(recipe, name: str, kind: str) -> None:
    hw = hardware.get(name, kind)
    graph = extracted(apply_default(recipe.example().func, hw, [recipe]), hw, name="example")
    found = features(graph)
    assert found.shape[0] > 0 and found.shape[1] == len(COLUMNS)
    assert found.dtype == np.float32 and np.isfinite(found).all()
    categories = [at for at, name in enumerate(NAMES) if name.startswith("is_")]
    assert found[:, categories].sum(1).max() == 1, "an iOp is of one category"


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
    one, two = (features(tiled(units=units, trips=trips, rows=n, strided=strided)) for n in (rows, 2 * rows))
    grown = {name: dict(enumerate(two[:, at] - one[:, at])) for at, name in enumerate(NAMES)}
    assert grown["dram_read"][0] == pytest.approx(1, abs=0.03)
    assert grown["dram_written"][2] == pytest.approx(1, abs=0.03)
    for name in ("operations_transcendental", "words", "reg_bytes"):
        assert grown[name][1] == pytest.approx(1, abs=0.03), name
    for name in ("runs", "units", "turns", "cols", "width", "iops"):
        assert not any(grown[name].values()), name


def test_more_trips_are_more_runs() -> None:
    one, four = row(tiled(trips=8)), row(tiled(trips=32))
    assert four["runs"] - one["runs"] == pytest.approx(2, abs=0.2)
    assert four["elements"] == one["elements"] and four["dram_read"] > one["dram_read"]


def test_turns_of_units() -> None:
    """48 vector cores: 49 units take two turns, of which the last is nearly empty."""
    assert row(tiled(units=48))["last_turn"] == 1 and row(tiled(units=24))["busy"] == 0.5
    late = row(tiled(units=49))
    assert late["turns"] > row(tiled(units=48))["turns"] and late["last_turn"] == pytest.approx(1 / 48)


def test_pieces_and_flights() -> None:
    whole, apart = row(tiled(stages=2)), row(tiled(stages=1, strided=True))
    assert whole["piece"] > apart["piece"] and whole["pieces"] < apart["pieces"]
    assert (whole["stages"], apart["stages"]) == (2, 1) and whole["trips"] > apart["trips"] == 0
