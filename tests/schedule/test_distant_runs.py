# SPDX-License-Identifier: Apache-2.0
"""What no cache holds is walked in distant runs, each element once; other results are walked as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.relax import op
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from tvm_ffi.structural import structural_equal
from uir_tvm.igraph import HardwareModel, IGraph, interpreter
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.demo import Example, from_relax
from uir_tvm.target.cpu.tiles import TILES
from uir_tvm.tune.spaces import design_spaces
from uir_tvm.verify import verify

from tests.as_programs import run_igraph
from tests.extracted import extracted
from tests.small_cpu import CPU, SMALL


def half(x: Any) -> Any:
    return op.astype(x, "float16")


def example(build: Callable[..., Any], *shapes: tuple[int, ...]) -> Example:
    return from_relax(build, shapes, lambda *_: None)


def graph_of(made: Example, hw: HardwareModel = SMALL) -> IGraph:
    func = made.func.with_attr("global_symbol", "moved")
    return extracted(apply_default(func, hw), hw)


def tile_of(graph: IGraph) -> tuple[int, int]:
    """Rows and columns of the slice that is stored."""
    (stored,) = (iop.target for iop, _ in graph.walk() if iop.target.pointer.role == "out")
    return int(stored.rows), int(stored.cols)


#: Operators of large results, and the columns of a run.
CASES = {
    "a cast": (example(half, (64, 1024)), 128),
    "a flat run": (example(lambda x: op.multiply(x, x), (16, 4, 1024)), 128),
    "three quarters of a run": (example(half, (16, 2016)), 96),
    "a row for all": (example(op.add, (64, 512), (512,)), 128),
    "a column for all": (example(op.add, (64, 512), (64, 1)), 128),
    "a slice": (example(lambda x: op.strided_slice(x, [1], [32], [544]), (64, 1024)), 128),
    "a concatenation": (
        example(lambda x, y: op.concat([x, y], axis=1), (16, 4, 8, 128), (16, 4, 8, 128)),
        128,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_large_results_are_walked_in_runs(name: str) -> None:
    made, columns = CASES[name]
    graph = graph_of(made)
    verify(graph)
    assert tile_of(graph) == (TILES.runs, columns)
    wanted = interpreter.run(graph, *made.inputs)[0]
    np.testing.assert_array_equal(run_igraph(graph, "uir-cpu", *made.inputs)[0], wanted)
    before = graph_of(made, CPU)
    np.testing.assert_array_equal(interpreter.run(before, *made.inputs)[0], wanted)


@pytest.mark.parametrize(
    "made",
    [
        example(half, (60, 1024)),  # units and runs do not divide 60 rows
        example(op.add, (64, 500), (500,)),  # rows that are no lines
        example(op.add, (64, 1024), (64, 1024)),  # two operands open pages enough
        example(op.add, (16, 16), (16,)),  # in the cache
    ],
)
def test_others_are_walked_as_before(made: Example) -> None:
    assert tile_of(graph_of(made)) == tile_of(graph_of(made, CPU))


def test_traces_with_runs_are_stock() -> None:
    made, _ = CASES["a row for all"]
    for space in design_spaces(made.func.with_attr("global_symbol", "moved"), SMALL):
        sch = Schedule(tvm.IRModule({"main": space.begun}), debug_mask="none")
        Trace.apply_json_to_schedule(space.schedule.trace.as_json(), sch)
        assert structural_equal(sch.mod["main"], space.schedule.mod["main"])
