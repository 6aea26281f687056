# SPDX-License-Identifier: Apache-2.0
"""Vectors as wide as a schedule asks: `uir.vector` on the loop over units."""

from __future__ import annotations

import re

import numpy as np
import pytest
import uir_tvm
from tvm import tirx
from tvm.s_tir import Schedule
from uir_tvm import hardware
from uir_tvm.errors import ExtractionError
from uir_tvm.igraph import IGraph
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.schedule.annotations import VECTOR, VECTOR_ATTR
from uir_tvm.schedule.hardware_of import model_of_target
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedules import elementwise
from uir_tvm.target import registry
from uir_tvm.target.cuda.lower import lower

from tests.extracted import extracted

EXAMPLE = elementwise.example()


def asked(width: int) -> tirx.PrimFunc:
    """The example with vectors of so many bytes."""
    sch = Schedule(EXAMPLE.func)
    prepare(sch)
    (block,) = sch.get_child_blocks(sch.get_sblock("root"))
    pid, *_ = sch.map_to_units(block, tile=(1, 256))
    sch.annotate(pid, VECTOR, width)
    return sch.mod["main"]


@pytest.mark.parametrize("factor", [0.5, 1, 2, 4])
def test_cpus_compute_with_vectors_as_wide_as_asked(factor: float) -> None:
    """The graph and the code have the width, and the kernel computes the same."""
    target = registry.resolve("uir-cpu").target
    hw = model_of_target(target)
    func = asked(int(hw.vector_bytes * factor))
    graph = extracted(func, hw)
    assert graph.attrs.get(VECTOR_ATTR, hw.vector_bytes) == hw.vector_bytes * factor
    source = str(registry.of_target(target).lower(graph, func).script())
    widths = {lanes for lanes in (2, 4, 8, 16, 32, 64) if f"float32x{lanes}" in source}
    assert max(widths) == int(hw.vector_bytes * factor) // 4
    exe = uir_tvm.compile(func)
    np.testing.assert_allclose(np.asarray(exe(*EXAMPLE.inputs)), EXAMPLE.expected[0], rtol=1e-5, atol=1e-6)


def widths_of(graph: IGraph) -> set[int]:
    """Elements of the accesses of a warp's lanes in the code of a graph; none: each element by itself."""
    body = lower(graph).source.partition("extern")[2]
    return {int(width) for width in re.findall(r"(?:load|store)_vec(?:_stream)?<float, (\d+)>", body)}


@pytest.mark.parametrize(("width", "elements"), [(512, {4}), (256, {2}), (128, set()), (32, set())])
def test_gpus_access_memory_as_wide_as_asked(width: int, elements: set[int]) -> None:
    """The same for a warp: 512 bytes are 16 of each lane."""
    graph = extracted(asked(width), hardware.get("h200", "cuda"))
    assert widths_of(graph) == elements
    (got,) = run_igraph(graph, "uir-cuda", *map(np.asarray, EXAMPLE.inputs), device="model")
    np.testing.assert_allclose(got, np.ravel(EXAMPLE.expected[0]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["ascend", "bang"])
def test_instructions_of_whole_tiles_have_no_width(kind: str) -> None:
    """Nothing is ignored in silence: the error says that the tile is what to choose."""
    with pytest.raises(ExtractionError, match="take whole tiles") as caught:
        extracted(asked(64), hardware.get(hardware.names(kind)[0], kind))
    assert "choose the tile" in str(caught.value)


@pytest.mark.parametrize("width", [-32, 3, 48])
def test_odd_widths_are_refused(width: int) -> None:
    with pytest.raises(ExtractionError, match="power of two"):
        extracted(asked(width), model_of_target(registry.resolve("uir-cpu").target))


@pytest.mark.parametrize(("kind", "most"), [("cuda", 512), ("cpu", 128)])
def test_what_no_target_has_is_refused(kind: str, most: int) -> None:
    """A GPU's lanes have accesses of 16 bytes; a CPU's registers are not that many."""
    hw = hardware.get("h200", "cuda") if kind == "cuda" else hardware.get("avx2-4core", "cpu")
    with pytest.raises(ExtractionError, match=f"{most} bytes on"):
        extracted(asked(2 * most), hw)
