# SPDX-License-Identifier: Apache-2.0
"""Reckoned seconds: in the right order where the order is plain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm import hardware
from uir_tvm.explain import analytic
from uir_tvm.igraph import HardwareModel

from tests.tune.graphs import tiled

HARDWARE = [
    hardware.get(name, kind)
    for name, kind in (("avx2-4core", "cpu"), ("910b2", "ascend"), ("mlu370-x8", "bang"), ("h200", "cuda"))
]


@pytest.mark.parametrize("hw", HARDWARE, ids=lambda hw: str(hw.kind))
@settings(deadline=None, max_examples=30)
@given(units=st.integers(1, 200), trips=st.integers(1, 40), rows=st.integers(1, 32))
def test_more_work_takes_longer(hw: HardwareModel, units: int, trips: int, rows: int) -> None:
    base = analytic.seconds(tiled(units=units, trips=trips, rows=rows, hw=hw))
    assert 0 < base < 1
    assert analytic.seconds(tiled(units=units, trips=2 * trips, rows=rows, hw=hw)) > base
    assert analytic.seconds(tiled(units=units, trips=trips, rows=rows, steps=3, hw=hw)) >= base


@pytest.mark.parametrize("hw", HARDWARE, ids=lambda hw: str(hw.kind))
def test_dealing_work_out_helps(hw: HardwareModel) -> None:
    """The same rows on all units rather than on one."""
    most = int(hw.num_groups) * int(hw.num_units)
    alone = analytic.seconds(tiled(units=1, trips=most * 4, rows=8, hw=hw))
    assert analytic.seconds(tiled(units=most, trips=4, rows=8, hw=hw)) < alone


def test_short_transfers_cost() -> None:
    """Of the same bytes, on a device whose transfers have a start: fewer and longer ones are faster."""
    short = analytic.seconds(tiled(trips=64, rows=1))
    assert analytic.seconds(tiled(trips=4, rows=16)) < short
    assert analytic.seconds(tiled(trips=64, rows=1, strided=True)) >= short
    assert analytic.seconds(tiled(trips=4, rows=16, strided=True)) > analytic.seconds(tiled(trips=4, rows=16))


def test_iterations_in_flight_hide_transfers() -> None:
    apart = analytic.estimate(tiled(trips=16, rows=16, steps=4))
    beside = analytic.estimate(tiled(trips=16, rows=16, steps=4, stages=2))
    assert beside.seconds < apart.seconds and beside.pipes == apart.pipes
    longest = max(beside.pipes.values())
    assert longest < beside.unit < sum(beside.pipes.values()) + 1e-5


def test_the_slowest_unit_counts() -> None:
    """All of one core's tiles, where guards leave nothing to the others."""
    few = analytic.estimate(tiled(units=48, trips=8, rows=16, last=8 * 16))
    assert few.slowest > 2 * (few.unit - 3e-6)
    assert few.seconds == pytest.approx(analytic.seconds(tiled(units=48, trips=8, rows=16)), rel=0.2)


def test_distance_from_the_roofline() -> None:
    graph = tiled(units=48, trips=16, rows=32, cols=128)
    moved = 2 * 48 * 16 * 32 * 128 * 4
    at_full_rate = moved / 1.6e12
    assert analytic.distance(graph, 2 * at_full_rate) == pytest.approx(0.5, rel=0.01)
    assert analytic.distance(graph, at_full_rate) == pytest.approx(1, rel=0.01)


def test_distance_without_rates() -> None:
    assert analytic.distance(tiled(hw=hardware.get("avx2-4core", "cpu")), 1.0) is None
