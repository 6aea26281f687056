# SPDX-License-Identifier: Apache-2.0
"""What iOps do, counted on some units: against exact counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm import hardware
from uir_tvm.explain.sampled_counts import counts_of
from uir_tvm.explain.traffic import traffic
from uir_tvm.hardware.machine_model import LOAD, STORE, VECTOR, GraphCounts
from uir_tvm.schedule.driver import apply_default
from uir_tvm.schedules import RECIPES
from uir_tvm.verify.access import GraphFacts

from tests.extracted import extracted
from tests.tune.graphs import tiled


def dram_bytes(counts: GraphCounts) -> float:
    return sum(
        row.runs * float(t.bytes @ counts.weights)
        for row in counts.rows
        for t in row.transfers
        if t.level == "dram"
    )


def test_rows_of_a_tile() -> None:
    counts = counts_of(tiled(units=4, trips=6, rows=4, cols=64, stages=2, strided=True))
    load, compute, store = counts.rows
    assert [row.category for row in counts.rows] == [LOAD, VECTOR, STORE]
    assert (load.runs, load.loop, load.stages, load.trips) == (6, "k", 2, 6)
    (moved,) = load.transfers
    assert (moved.segments, moved.contiguous, moved.pointer) == (4, 256, "a")
    assert compute.kind == "transcendental" and set(compute.elements) == {256}
    assert counts.held["reg"] == 2 * 4 * 64 * 4 and counts.parameters == {
        "a": 4 * 6 * 4 * 128 * 4,
        "b": 49152,
    }
    assert store.transfers[0].write


@settings(deadline=None, max_examples=30)
@given(
    units=st.integers(1, 60),
    trips=st.integers(1, 40),
    rows=st.integers(1, 5),
    short=st.integers(0, 30),
)
def test_guards_are_counted(units: int, trips: int, rows: int, short: int) -> None:
    """Bytes of a matrix whose last tiles, a quarter at most, are cut off: within the sample's error.

    Of a loop 8 iterations are looked at, so that each stands for up to a fifth of what is left.
    """
    whole = units * trips * rows
    short = min(short, whole // 4)
    last = whole - short
    graph = tiled(units=units, trips=trips, rows=rows, last=last)
    exact = traffic(GraphFacts(graph)).dram_bytes
    assert dram_bytes(counts_of(graph)) == pytest.approx(exact, rel=0.02 if short == 0 else 0.35)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.hero.replace(" ", "_"))
def test_bytes_of_kernels(recipe) -> None:
    """Of every recipe's example: what all units move, as counted exactly (data-dependent ones at most)."""
    hw = hardware.get("910b2", "ascend")
    graph = extracted(apply_default(recipe.example().func, hw, [recipe]), hw, name="example")
    found = traffic(GraphFacts(graph))
    assert dram_bytes(counts_of(graph)) == pytest.approx(found.dram_bytes, rel=0.05)
    assert np.isfinite([row.elements for row in counts_of(graph).rows]).all()
