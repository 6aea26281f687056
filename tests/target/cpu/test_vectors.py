# SPDX-License-Identifier: Apache-2.0
"""Vectors as wide as a schedule asks: `uir.vector` on the loop over units."""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from tvm import tirx
from tvm.s_tir import Schedule
from uir_tvm.errors import ExtractionError
from uir_tvm.extract import extract
from uir_tvm.schedule.annotations import VECTOR, VECTOR_ATTR
from uir_tvm.schedule.hardware_of import model_of_target
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedules import elementwise
from uir_tvm.target import registry


def asked(sch: Schedule, width: int) -> tirx.PrimFunc:
    """The example with vectors of so many bytes."""
    prepare(sch)
    (block,) = sch.get_child_blocks(sch.get_sblock("root"))
    pid, *_ = sch.map_to_units(block, tile=(1, 256))
    sch.annotate(pid, VECTOR, width)
    return sch.mod["main"]


@pytest.mark.parametrize("factor", [0.5, 1, 2, 4])
def test_vectors_are_as_wide_as_asked(factor: float) -> None:
    """The graph and the code have the width, and the kernel computes the same."""
    target = registry.resolve("uir-cpu").target
    hw = model_of_target(target)
    example = elementwise.example()
    sch = Schedule(example.func)
    func = asked(sch, int(hw.vector_bytes * factor))
    graph = extract(func, hw)
    assert graph.attrs.get(VECTOR_ATTR, hw.vector_bytes) == hw.vector_bytes * factor
    source = str(registry.of_target(target).lower(graph, func).script())
    widths = {lanes for lanes in (2, 4, 8, 16, 32, 64) if f"float32x{lanes}" in source}
    assert max(widths) == int(hw.vector_bytes * factor) // 4
    exe = uir_tvm.compile(func)
    np.testing.assert_allclose(np.asarray(exe(*example.inputs)), example.expected[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [-32, 3, 48])
def test_odd_widths_are_refused(width: int) -> None:
    func = asked(Schedule(elementwise.example().func), width)
    with pytest.raises(ExtractionError, match="power of two"):
        extract(func, model_of_target(registry.resolve("uir-cpu").target))
