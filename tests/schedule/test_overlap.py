# SPDX-License-Identifier: Apache-2.0
"""Innermost serial loops are pipelined where the hardware's pipes run at the same time, and only those."""

from __future__ import annotations

import pytest
import tvm
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.nodes import Loop
from uir_tvm.pipeline import compile_kernel
from uir_tvm.schedule import apply_default
from uir_tvm.schedule.annotations import PIPELINE
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target import registry
from uir_tvm.target.ascend.tiles import TILES as ASCEND


def scheduled(name: str, kind: str, build: object, *shapes: tuple[int, ...]) -> tvm.tirx.PrimFunc:
    func = from_relax(build, list(shapes), lambda *arrays: arrays[0]).func  # type: ignore[arg-type]
    return apply_default(func, hardware.get(name, kind))


def pipelined(func: tvm.tirx.PrimFunc) -> int:
    """How many loops ask for stages."""
    return func.script().count(PIPELINE)


def test_loops_over_tiles_are_pipelined_on_ascend_alone() -> None:
    def add(x: object, y: object) -> object:
        return op.add(x, y)

    shapes = [(2048, 2048), (2048, 2048)]
    assert pipelined(scheduled("910b2", "ascend", add, *shapes)) == 1
    assert pipelined(scheduled("h200", "cuda", add, *shapes)) == 0
    assert pipelined(scheduled("avx512-2core", "cpu", add, *shapes)) == 0


def test_of_nested_loops_the_inner_ones_are() -> None:
    """A softmax over rows that do not fit: chunks of both passes are loaded ahead, rows are not."""
    func = scheduled("910b2", "ascend", lambda x: op.nn.softmax(x), (96, 131072))
    assert pipelined(func) == 2


def test_one_tile_is_not() -> None:
    assert pipelined(scheduled("910b2", "ascend", lambda x: op.exp(x), (8, 16))) == 0


def loops(body: object) -> list[Loop]:
    found = [node for node in body if isinstance(node, Loop)]  # type: ignore[attr-defined]
    return found + [inner for loop in found for inner in loops(loop.body)]


@pytest.mark.parametrize("shape", [(4096, 4096), (1000, 777)])
def test_the_graph_has_the_stages(shape: tuple[int, int]) -> None:
    func = from_relax(lambda x: op.exp(x), [shape], lambda x: x).func
    graph = compile_kernel(func, registry.get("uir-ascend").target(None, "model"), "exp").optimized
    assert isinstance(graph, IGraph)
    assert [loop.attrs["stages"] for loop in loops(graph.body) if "stages" in loop.attrs] == [ASCEND.stages]
