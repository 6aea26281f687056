# SPDX-License-Identifier: Apache-2.0
"""Graphs cut at barriers of all units: the parts, one after the other, compute what the whole computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import uir_tvm
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import HardwareModel, IGraph, interpreter, parse_igraph
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.optimize import optimize
from uir_tvm.optimize.split import phases, still_splits
from uir_tvm.verify import verify

from tests.corpus import by_hand

from .pairs import text

BEFORE, AFTER = text("split", "before"), text("split", "after")


HOST = HardwareModel("host", "cpu", 4, 4, 1 << 16, 1 << 16, 32)  # type: ignore[call-arg]


def body_of(graph: IGraph) -> str:
    """The text of a graph without its hardware."""
    return str(graph).split("\n\n", 1)[1].strip()


def test_before_and_after() -> None:
    found = phases(parse_igraph(BEFORE, HOST))
    assert "\n".join(body_of(g) for g in found) == AFTER.strip()
    for graph in found:
        verify(graph)


def run_parts(parts: list[IGraph], inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Memory by name after all parts."""
    memory = dict(inputs)
    for part in parts:
        for pointer in part.params:
            memory.setdefault(str(pointer.name), np.zeros(pointer.size, numpy_of(pointer.dtype)))
        given = {str(p.name): memory[str(p.name)] for p in part.params if p.role != "out"}
        results = interpreter.run(part, given)
        written = [p for p in part.params if p.role != "in"]
        memory.update({str(p.name): r.reshape(-1) for p, r in zip(written, results, strict=True)})
    return memory


@pytest.mark.parametrize("name, count", [("column_sum_two_phases", 2), ("share_of_total", 3)])
def test_the_parts_compute_what_the_whole_does(name: str, count: int) -> None:
    graph, case = by_hand.graph(name), by_hand.BY_HAND[name]
    parts = phases(graph)
    assert [p.name for p in parts] == [f"{name}_{k + 1}of{count}" for k in range(count)]
    for part in parts:
        verify(part)
        assert not any(iop.op == "sync" and iop.attrs["scope"] == "dram" for iop, _ in part.walk())
    inputs = case.inputs(graph)
    (whole,) = interpreter.run(graph, *[a.reshape(-1) for a in inputs])
    names = [str(p.name) for p in graph.params if p.role != "out"]
    memory = run_parts(parts, {n: a.reshape(-1) for n, a in zip(names, inputs, strict=True)})
    np.testing.assert_array_equal(memory["y"], whole)


def test_the_product_runs_the_phases_and_says_so() -> None:
    """Compiled for the CPU: one kernel of three parallel loops; the report names it."""
    graph, case = by_hand.graph("share_of_total"), by_hand.BY_HAND["share_of_total"]
    exe = uir_tvm.compile(graph)
    inputs = case.inputs(graph)
    np.testing.assert_allclose(exe(*inputs), case.expected(inputs), rtol=1e-5, atol=1e-6)
    (row,) = exe.report()["kernels_split"]
    assert row["note"] == "split into 3 phases at sync.dram"


def test_passes_keep_the_places_where_a_kernel_ends() -> None:
    """A pass that would keep a computed value in reg across the barrier is left out, and says why."""
    before = IGraph("g", HOST, 4, 1, [], [])
    assert still_splits(before, None) is None
    head = BEFORE[: BEFORE.index("  move.dram")]
    text = f"""{head}  fill.fp32 s[0; (1,1); (1,1)] [1.0]
        move.reg.dram.fp32 part[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]
        sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
        move.dram.reg.fp32 t[0; (1,1); (1,1)], part[pid; (1,1); (1,1)]
        move.reg.dram.fp32 y[pid; (1,1); (1,1)], t[0; (1,1); (1,1)]
    }}"""
    graph = parse_igraph(text, HOST)
    check = still_splits(graph, None)
    assert check is not None
    check(graph)
    made = optimize(graph, ("store_load_forwarding",), check=check, keep_going=True)
    assert made.graph.same_as(graph) and "sync.dram" in made.steps[0].fault


def test_a_graph_without_barriers_is_left_alone() -> None:
    graph = by_hand.graph("product_shared")
    assert phases(graph)[0].same_as(graph)


def test_barriers_at_the_ends_split_nothing() -> None:
    text = BEFORE.replace("  sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]\n", "")
    sync = "  sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]\n"
    at = text.index("  move.dram")
    (graph,) = phases(parse_igraph(text[:at] + sync + text[at:].replace("\n}", f"\n{sync}}}"), HOST))
    assert str(graph) == str(parse_igraph(text, HOST))


REFUSED: dict[str, tuple[str, str, str]] = {
    "a barrier in a loop": (
        "for k in 2 {\n  sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]\n}",
        "inside the loop over k",
        "sync.dram",
    ),
    "a register that is read after it": (
        """move.dram.reg.fp32 t[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1)]
        unary.exp.fp32 t[0; (1,32); (32,1)], t[0; (1,32); (32,1)]
        sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
        move.reg.dram.fp32 y[pid; (1,1); (1,1)], t[3; (1,1); (1,1)]""",
        "read after it",
        "t[3; (1,1); (1,1)] in move.reg.dram.fp32 y",
    ),
    "a register of which a part is written again": (
        """fill.fp32 t[0; (1,32); (32,1)] [2.0]
        sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
        fill.fp32 t[0; (1,3); (3,1)] [1.0]
        reduce.add.row.unit.fp32 s[0; (1,1); (1,1)], t[0; (1,4); (4,1)]
        move.reg.dram.fp32 y[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]""",
        "read after it",
        "t[0; (1,4); (4,1)]",
    ),
    "a load of what changed since": (
        """move.dram.reg.fp32 s[0; (1,1); (1,1)], x[32*pid; (1,1); (1,1)]
        move.reg.dram.fp32 part[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]
        move.dram.reg.fp32 t[0; (1,1); (1,1)], part[pid; (1,1); (1,1)]
        sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
        fill.fp32 part[pid; (1,1); (1,1)] [0.0]
        move.reg.dram.fp32 y[pid; (1,1); (1,1)], t[0; (1,1); (1,1)]""",
        "read after it",
        "t[0; (1,1); (1,1)] in move.reg.dram.fp32 y",
    ),
    "sram that is read after it": (
        """move.dram.sram.fp32 h[pid % 4; (1,1); (1,1)], x[32*pid; (1,1); (1,1)]
        sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
        move.sram.reg.fp32 s[0; (1,1); (1,1)], h[(pid + 1) % 4; (1,1); (1,1)]
        move.reg.dram.fp32 y[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]""",
        "read after it",
        "h[",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_survive_is_refused(name: str) -> None:
    """The message names the slice, and what to do."""
    body, what, where = REFUSED[name]
    head = BEFORE[: BEFORE.index("  move.dram")].replace("(4, 1)", "(1, 4)")
    graph: Any = parse_igraph(f"{head}  h = iPointer(sram, fp32, 4)\n{body}\n}}", HOST)
    with pytest.raises(CodegenError) as caught:
        phases(graph)
    assert what in caught.value.what and where in caught.value.where and caught.value.remedy


def test_what_dram_still_has_is_loaded_again() -> None:
    """A register that was loaded before the barrier and is read after it: the load stands in both parts."""
    head = BEFORE[: BEFORE.index("  move.dram")]
    body = """move.dram.reg.fp32 t[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1)]
        reduce.add.row.unit.fp32 s[0; (1,1); (1,1)], t[0; (1,32); (32,1)]
        move.reg.dram.fp32 part[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]
        sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
        move.dram.reg.fp32 s[0; (1,1); (1,1)], part[3 - pid; (1,1); (1,1)]
        binary.add.fp32 s[0; (1,1); (1,1)], s[0; (1,1); (1,1)], t[31; (1,1); (1,1)]
        move.reg.dram.fp32 y[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]"""
    graph = parse_igraph(f"{head}{body}\n}}", HOST)
    parts = phases(graph)
    assert [sum(s.pointer.name == "x" for i, _ in p.walk() for s in i.sources) for p in parts] == [1, 1]
    for part in parts:
        verify(part)
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    (whole,) = interpreter.run(graph, x)
    np.testing.assert_array_equal(run_parts(parts, {"x": x})["y"], whole)


def test_sram_that_is_written_again_need_not_survive() -> None:
    head = BEFORE[: BEFORE.index("  move.dram")].replace("(4, 1)", "(1, 4)")
    exchange = """move.dram.sram.fp32 h[pid % 4; (1,1); (1,1)], x[32*pid; (1,1); (1,1)]
        sync.sram h[0; (1,4); (4,1)], h[0; (1,4); (4,1)]
        move.sram.reg.fp32 s[0; (1,1); (1,1)], h[(pid + 1) % 4; (1,1); (1,1)]
        move.reg.dram.fp32 part[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]"""
    barrier = "sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]"
    again = exchange.replace("part[pid", "y[pid").replace("x[32*pid", "part[pid")
    graph = parse_igraph(f"{head}  h = iPointer(sram, fp32, 4)\n{exchange}\n{barrier}\n{again}\n}}", HOST)
    first, second = phases(graph)
    assert first.pointer("part").role == "inout" and second.pointer("part").role == "in"
    verify(second)
