# SPDX-License-Identifier: Apache-2.0
"""``pipeline``: what it annotates, what becomes of it on the iGraph and on the CPU, and when it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import uir_tvm.schedule  # noqa: F401  (attaches the primitives)
from tvm import te
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from tvm.script import tirx as T
from tvm_ffi.structural import structural_equal
from uir_tvm import hardware
from uir_tvm.errors import ScheduleError
from uir_tvm.igraph import Loop, interpreter
from uir_tvm.optimize import multibuffer, optimize
from uir_tvm.verify import verify

from tests.extracted import extracted

from ..target.cpu import support
from . import functions

CPU = hardware.get("avx512-2core")


def product() -> Any:
    """c = a @ b."""
    a, b = te.placeholder((8, 40), name="a"), te.placeholder((40, 16), name="b")
    k = te.reduce_axis((0, 40), name="k")
    return te.create_prim_func(
        [a, b, te.compute((8, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]
    )


def staged_elementwise(stages: int = 2) -> Schedule:
    """Tiles of an elementwise function, each operand through reg."""
    sch = Schedule(functions.elementwise())
    sch.compute_inline(sch.get_sblock("s"))
    block = sch.get_sblock("y")
    loops = sch.map_to_units(block, 2, 1, (4, None), hardware=CPU)
    sch.move_to_hierarchy(block, "x", "reg", at=loops[1], hardware=CPU)
    sch.pipeline(loops[1], stages)
    return sch


def staged_product(stages: int = 3) -> Schedule:
    """A matrix product whose loop over k loads a panel of each operand."""
    sch = Schedule(product())
    block = sch.get_sblock("c")
    i, j, k_loop = sch.get_loops(block)
    pid, rows = sch.split(i, [2, None])
    outer, inner = sch.split(k_loop, [None, 8])
    sch.reorder(pid, outer, rows, j, inner)
    sch.annotate(pid, "uir.parallel", "2,1")
    for name in ("a", "b"):
        sch.move_to_hierarchy(block, name, "reg", at=outer, hardware=CPU)
    sch.pipeline(outer, stages)
    return sch


def row_sum(stages: int = 2) -> Schedule:
    """A loop that loads and adds, and belongs to the one block alone."""
    sch = Schedule(functions.row_sum())
    block = sch.get_sblock("y")
    i, k = sch.get_loops(block)
    pid, rows = sch.split(i, [2, None])
    outer, _ = sch.split(k, [None, 32])
    sch.reorder(pid, outer, rows)
    sch.annotate(pid, "uir.parallel", "2,1")
    sch.pipeline(outer, stages)
    return sch


FUNCTIONS: dict[Callable[[], Schedule], Callable[[], Any]] = {
    staged_elementwise: functions.elementwise,
    staged_product: product,
    row_sum: functions.row_sum,
}


def loops(body: Any) -> list[Loop]:
    return [x for n in body if isinstance(n, Loop) for x in (n, *loops(n.body))]


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_loop_comes_out_in_stages_and_computes_the_same(make: Callable[[], Schedule]) -> None:
    """In the interpreter to the bit, and on the CPU, against the graph without stages."""
    sch = make()
    graph = extracted(sch.mod["main"], CPU)
    asked = [loop for loop in loops(graph.body) if "pipeline" in loop.attrs]
    assert len(asked) == 1
    made = multibuffer.run(graph)
    verify(made)
    assert [loop.attrs["stages"] for loop in loops(made.body) if "stages" in loop.attrs] == [
        asked[0].attrs["pipeline"]
    ]
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(p.size).astype("float32") for p in graph.params if p.role != "out"]
    for old, new in zip(interpreter.run(graph, *inputs), interpreter.run(made, *inputs), strict=True):
        np.testing.assert_array_equal(old, new)
    # sums of some hundred products of normal numbers, reassociated by vectors
    support.check(optimize(graph).graph, inputs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_trace_replays(make: Callable[[], Schedule]) -> None:
    sch = make()
    again = Schedule(FUNCTIONS[make]())
    Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    assert structural_equal(sch.mod, again.mod)


@T.prim_func(s_tir=True)
def constant(b: T.Buffer((64,), "float32")) -> None:
    """Nothing is read."""
    for i in range(64):
        with T.sblock("store"):
            vi = T.axis.spatial(64, i)
            b[vi] = T.float32(1)


@T.prim_func(s_tir=True)
def ordered(a: T.Buffer((64,), "float32"), b: T.Buffer((64,), "float32")) -> None:
    """The author of the block says that its iterations have an order."""
    for i in range(64):
        with T.sblock("scan"):
            vi = T.axis.scan(64, i)
            b[vi] = a[vi]


def refused(func: Any, stages: Any = 2, block: str | None = None) -> Callable[[], None]:
    def run() -> None:
        sch = Schedule(func)
        name = block or sch.get(sch.get_child_blocks(sch.get_sblock("root"))[0]).name_hint
        sch.pipeline(sch.get_loops(sch.get_sblock(name))[0], stages)

    return run


def over_units() -> None:
    sch = Schedule(functions.elementwise())
    sch.pipeline(sch.map_to_units("y", 2, 1, (4, None), hardware=CPU)[0], 2)


REFUSALS: dict[str, tuple[Callable[[], None], str]] = {
    "one stage": (refused(functions.elementwise(), 1), "cannot have 1 stages"),
    "no number": (refused(functions.elementwise(), True), "cannot have True stages"),
    "too few iterations": (refused(functions.elementwise(3, 8), 4), "fewer iterations than stages"),
    "the units": (over_units, "is that over the units"),
    "a recurrence": (refused(functions.recurrence), "carries a dependence"),
    "an order": (refused(ordered), "carries a dependence over loop"),
    "no load": (refused(constant), "moves nothing that could be loaded"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    run, words = REFUSALS[name]
    with pytest.raises(ScheduleError) as caught:
        run()
    assert words in str(caught.value)
    assert caught.value.need and caught.value.remedy
