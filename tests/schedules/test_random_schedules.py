# SPDX-License-Identifier: Apache-2.0
"""Random schedules of random functions compute right where they are accepted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from tvm.s_tir import Schedule
from uir_tvm.errors import ExtractionError
from uir_tvm.igraph import HardwareModel, interpreter
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.row_chain import map_chain

from tests.extracted import extracted

from .check_schedule import Finding, check
from .in_numpy import in_numpy
from .in_te import to_prim_func
from .program import Input, Program, Step, random_inputs
from .strategies import programs

GROUPS = HardwareModel("groups", "test", 2, 2, 1 << 14, 1 << 14, 64, {})  # type: ignore[call-arg]


@seeded(3)
@settings(
    max_examples=6,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(programs(), st.integers(0, 2**16), st.data())
def test_what_is_accepted_computes_right(program: Program, inputs: int, data: st.DataObject) -> None:
    check(program, data.draw, inputs)


def test_a_wrong_result_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: with other results expected, the schedule and the graph are reported."""
    program = Program("float32", (Input((4, 3), "float32"),), (Step("unary", (0,), (4, 3), ("abs",)),), (1,))
    monkeypatch.setattr(
        "tests.schedules.check_schedule.in_numpy", lambda p, arrays: ([-abs(arrays[0]) - 1.0], 1.0)
    )
    with pytest.raises(Finding) as caught:
        # every decision is a number: always the first option, on a device of groups
        check(program, lambda strategy: 0)
    assert "not what NumPy says" in str(caught.value) and "iGraph" in str(caught.value)


def test_staging_what_no_tile_reads_is_refused() -> None:
    """TVM cuts such a buffer to a negative size."""
    steps = (
        Step("permute", (0,), (5, 1), ((1, 0),)),
        Step("binary", (3, 1), (5, 1), ("add",)),
        Step("cast", (2,), (4, 1), ("float32",)),
        Step("concat", (4, 5), (9, 1), (0,)),
        Step("slice", (6,), (1, 1), ((6, 0), (1, 1))),
        Step("unary", (7,), (1, 1), ("abs",)),
    )
    inputs = (Input((1, 5), "float32"), Input((1,), "float32"), Input((4, 1), "float16"))
    sch = Schedule(to_prim_func(Program("float32", inputs, steps, (8,))))
    prepare(sch)
    nest = map_chain(sch, GROUPS, 1, (1, None), num_groups=2)
    for block in ("v2", "v1"):
        sch.move_to_hierarchy(block, block, "reg", nest.lid, hardware=GROUPS)
    sch.move_to_hierarchy("v1", "x0", "sram", nest.lid, hardware=GROUPS)
    with pytest.raises(ExtractionError, match="elements"):
        extracted(sch.mod["main"], GROUPS)


def test_what_is_gathered_on_chip_is_the_units_own() -> None:
    """A piece of sram for each unit, read by indices that are not linear: they count from that piece."""
    steps = (
        Step("reduce", (0,), (4, 1, 1, 6), ("max", (2,), True)),
        Step("binary", (0, 1), (4, 1, 2, 6), ("add",)),
        Step("permute", (2,), (4, 6, 2, 1), ((0, 3, 2, 1),)),
    )
    program = Program("float32", (Input((4, 1, 2, 6), "float32"),), steps, (3,))
    sch = Schedule(to_prim_func(program))
    prepare(sch)
    nest = map_chain(sch, GROUPS, 4, (1, None), num_groups=2)
    sch.move_to_hierarchy("v0", "v0", "sram", nest.lid, hardware=GROUPS)
    graph = extracted(sch.mod["main"], GROUPS)
    assert any(iop.op == "gather" and iop.sources[0].pointer.level == "sram" for iop, _ in graph.walk())
    inputs = random_inputs(program, 0)
    (expected,), _ = in_numpy(program, inputs)
    np.testing.assert_allclose(
        interpreter.run(graph, *inputs)[0].reshape(expected.shape), expected, rtol=1e-6
    )
