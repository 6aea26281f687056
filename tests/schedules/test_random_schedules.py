# SPDX-License-Identifier: Apache-2.0
"""Random schedules of random functions compute right where they are accepted."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from tvm.s_tir import Schedule
from uir_tvm.errors import ExtractionError
from uir_tvm.extract import extract
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.row_chain import map_chain

from .check_schedule import Finding, check
from .strategies import Input, Program, Step, programs, to_prim_func

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
        extract(sch.mod["main"], GROUPS)
