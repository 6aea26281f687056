# SPDX-License-Identifier: Apache-2.0
"""Random graphs through every pass: verified after each, and the same bits at the end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tvm import tirx
from uir_tvm.errors import UirError
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.optimize import PASSES, optimize
from uir_tvm.schedule import apply_default
from uir_tvm.schedule.hardware_of import model_of_target
from uir_tvm.schedules import fallback
from uir_tvm.target.registry import TARGETS

from tests.asked import asked
from tests.extracted import extracted

from ..igraph.strategies import runnable_igraphs
from ..schedules.in_te import to_prim_func
from ..schedules.program import Program, describe, random_inputs
from ..schedules.strategies import programs
from .equal import assert_same_bits

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
CORNERS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38, 1.0, -1.5], np.float32)


def corner_inputs(graph: IGraph, seed: int) -> list[np.ndarray]:
    """fp32 inputs with a zero, an infinity, a NaN or a denormal in every third place."""
    rng = np.random.default_rng(seed)
    out = []
    for p in graph.params:
        if p.role != "out":
            plain = rng.standard_normal(p.size).astype("float32")
            out.append(np.where(rng.random(p.size) < 1 / 3, rng.choice(CORNERS, p.size), plain))
    return out


@settings(max_examples=asked(30, 200), deadline=None, suppress_health_check=SLOW)
@given(runnable_igraphs(), st.integers(0, 2**16))
def test_random_graphs_stay_equal(graph: IGraph, seed: int) -> None:
    result = optimize(graph)
    assert_same_bits(graph, result.graph, seed=seed)
    assert_same_bits(graph, result.graph, corner_inputs(graph, seed))


@pytest.mark.parametrize("name", [row.name for row in PASSES])
def test_every_pass_by_itself(name: str) -> None:
    """No pass relies on those before it, and a second time it finds nothing new in these graphs."""

    @settings(max_examples=asked(12, 100), deadline=None, suppress_health_check=SLOW)
    @given(runnable_igraphs(), st.integers(0, 2**16))
    def check(graph: IGraph, seed: int) -> None:
        once = optimize(graph, [name]).graph
        assert_same_bits(graph, once, seed=seed)
        assert optimize(once, [name]).graph is once

    check()


def by_default(func: tirx.PrimFunc, hardware: HardwareModel) -> IGraph:
    """By the default recipe, or by the one that asks for less where that makes what is refused."""
    try:
        return extracted(apply_default(func, hardware), hardware)
    except UirError:
        return extracted(apply_default(func, hardware, (fallback.RECIPE,)), hardware)


@settings(max_examples=asked(20, 100), deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(programs(), st.integers(0, 2**16))
def test_extracted_programs_stay_equal(program: Program, seed: int) -> None:
    """What extraction makes of random functions, as uir-cpu schedules them."""
    hardware = model_of_target(TARGETS["uir-cpu"].target())
    func = to_prim_func(program).with_attr("global_symbol", "main")
    graph = by_default(func, hardware)
    result = optimize(graph)
    text = "\n".join(describe(program))
    arrays = [a.reshape(-1) for a in random_inputs(program, seed)]
    try:
        assert_same_bits(graph, result.graph, arrays)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{text}\n{result}") from error
