# SPDX-License-Identifier: Apache-2.0
"""Modelled times, with rates that are round numbers and with rates that nobody knows."""

from __future__ import annotations

import attrs
import pytest
from uir_tvm.explain.arithmetic import arithmetic
from uir_tvm.explain.roofline import Roofline, roofline
from uir_tvm.explain.traffic import traffic
from uir_tvm.hardware.rates import MemoryRate, Rate, Rates, rates_of
from uir_tvm.igraph import IGraph
from uir_tvm.verify.access import GraphFacts

from . import graphs


def of(graph: IGraph, rates: Rates | None = None, processors: int = 8) -> Roofline:
    """The roofline of a graph."""
    program = GraphFacts(graph)
    rates = rates_of(graph.hardware) if rates is None else rates
    return roofline(traffic(program), arithmetic(program), rates, program.num_parallel, processors)


def times(found: Roofline) -> dict[str, float | None]:
    """Seconds by resource."""
    return {level.resource: level.seconds for level in found.levels}


def test_softmax_is_bound_by_its_arithmetic_here() -> None:
    """16384 bytes at 1 GB/s; 3 additions, a product, 20 steps of exp an element; 10 a row to divide."""
    found = of(graphs.graph(graphs.SOFTMAX))
    steps = 2048 * (3 + 1 + 20) + 64 * 10
    assert times(found) == {"dram": pytest.approx(16384e-9), "arithmetic": pytest.approx(steps * 1e-9)}
    assert found.limit == "arithmetic" and found.modelled_seconds == pytest.approx(steps * 1e-9)
    assert found.share_of_bound == pytest.approx(1.0)
    assert {level.resource: level.share for level in found.levels}["dram"] == pytest.approx(16384 / steps)


def test_needless_traffic_keeps_a_kernel_from_its_roofline() -> None:
    """5120 bytes moved where 3584 would do; 8192 operations of contractions at 2 G/s are less."""
    found = of(graphs.graph(graphs.STAGED))
    assert (found.limit, found.memory) == ("dram", "dram")
    assert found.modelled_seconds == pytest.approx(5120e-9) and found.bound_seconds == pytest.approx(4096e-9)
    assert times(found)["sram"] == pytest.approx((4096 + 2048) / 4e9)


def test_units_that_idle_lengthen_arithmetic() -> None:
    """Eight units on three processors take three rounds, of nine places eight are filled."""
    found, even = (of(graphs.graph(graphs.SOFTMAX), processors=n) for n in (3, 8))
    assert found.balance == pytest.approx(8 / 9) and even.balance == 1
    assert times(found)["arithmetic"] == pytest.approx((times(even)["arithmetic"] or 0) * 9 / 8)
    assert found.bound_seconds == even.bound_seconds


def test_without_figures_there_is_a_reason_and_no_share() -> None:
    found = of(graphs.graph(graphs.SOFTMAX, hardware=graphs.UNKNOWN))
    assert (found.modelled_seconds, found.bound_seconds, found.share_of_bound, found.limit) == (
        None,
        None,
        None,
        "",
    )
    assert "no figure" in found.why_unknown
    assert all(level.share is None and level.amount for level in found.levels)


def test_what_is_not_used_needs_no_figure() -> None:
    """No sram in the kernel: that its rate is unknown does not matter."""
    rates = attrs.evolve(rates_of(graphs.DEVICE), sram=Rate(None, "unknown"))
    assert of(graphs.graph(graphs.SOFTMAX), rates).modelled_seconds is not None
    assert of(graphs.graph(graphs.STAGED), rates).modelled_seconds is None


def test_what_is_moved_again_comes_from_the_cache_that_holds_it() -> None:
    """b, 512 bytes, is moved four times: once from memory with all else, three times from the cache."""
    caches = (MemoryRate("L2", 600, Rate(1e12, "")), MemoryRate("memory", None, Rate(1e9, "")))
    found = of(graphs.graph(graphs.STAGED), attrs.evolve(rates_of(graphs.DEVICE), memory=caches))
    assert times(found)["dram"] == pytest.approx(3584e-9 + 1536e-12)


def test_small_tensors_move_at_the_rate_of_the_cache_that_holds_them() -> None:
    caches = (
        MemoryRate("L2", 10_000, Rate(1e12, "")),
        MemoryRate("L3", 16384, Rate(1e11, "")),
        MemoryRate("memory", None, Rate(1e10, "")),
    )
    rates = attrs.evolve(rates_of(graphs.DEVICE), memory=caches)
    assert of(graphs.graph(graphs.SOFTMAX), rates).memory == "L3"
    assert of(graphs.graph(graphs.STAGED), rates).memory == "L2"
    assert rates.memory_of(16385).name == "memory"
