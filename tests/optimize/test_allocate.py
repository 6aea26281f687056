# SPDX-License-Identifier: Apache-2.0
"""Addresses: nothing alive is overwritten, the peak lies between what is alive and the sum, values stay."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import HardwareModel, IGraph, interpreter, parse_igraph, print_igraph
from uir_tvm.igraph.bound import bind
from uir_tvm.igraph.dtypes import bytes_of
from uir_tvm.igraph.nodes import from_json
from uir_tvm.optimize import allocate, insert_sync
from uir_tvm.verify import verify

from ..corpus import by_hand
from ..igraph.strategies import random_inputs, runnable_igraphs
from .aliased import _trace, run_aliased
from .equal import bits
from .random_chip import register_graphs
from .random_shared import shared_graphs

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def check(graph: IGraph, seed: int) -> IGraph:
    """Allocate, verify, and compare a run in the shared bytes with one that shares none."""
    placed = allocate.run(graph)
    verify(placed)
    inputs = random_inputs(graph, seed)
    plain = interpreter.run(graph, *inputs)
    for old, new in zip(plain, run_aliased(placed, inputs, seed), strict=True):
        np.testing.assert_array_equal(bits(old.reshape(-1)), bits(new))
    return placed


def live_bytes(graph: IGraph) -> int:
    """The most bytes of registers of one unit whose value is read later, by plain replay of one unit."""
    written: dict[tuple[str, int], int] = {}
    spans: list[tuple[int, int, int]] = []
    last: dict[tuple[str, int], int] = {}

    def elements(piece, env):
        rows, cols = piece.shape
        base = piece.offset(env)
        return [base + i * piece.strides[0] + j * piece.strides[1] for i in range(rows) for j in range(cols)]

    def close(key):
        if key in last:
            spans.append((written[key], last.pop(key), widths[key[0]]))

    widths = {str(p.name): bytes_of(p.dtype) for p in graph.pointers}
    time = 0
    for time, (iop, env) in enumerate(_trace(bind(graph.body), {"pid": 0})):
        for piece in iop.sources:
            for e in elements(piece, env) if piece.level == "reg" else ():
                last[piece.name, e] = time
        for e in elements(iop.target, env) if iop.target.level == "reg" else ():
            close((iop.target.name, e))
            written[iop.target.name, e] = time
    for key in list(last):
        close(key)
    # alive between the write and the last read; at the iOp that reads last, the output may take its place
    return max((sum(w for a, b, w in spans if a < t <= b) for t in range(time + 1)), default=0)


@settings(max_examples=50, deadline=None, suppress_health_check=SLOW)
@given(register_graphs(), st.integers(0, 2**16))
def test_random_registers(graph: IGraph, seed: int) -> None:
    placed = check(graph, seed)
    align = allocate.Interference.of(allocate.facts_of(graph), "reg").align
    peak = placed.attrs["peak"]["reg"]
    sizes = [int(p.size) * bytes_of(p.dtype) for p in graph.pointers if p.level == "reg"]
    assert live_bytes(graph) <= peak <= sum(-(-size // align) * align for size in sizes)
    assert allocate.run(placed) is placed


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(runnable_igraphs(), st.integers(0, 2**16))
def test_random_operators(graph: IGraph, seed: int) -> None:
    placed = check(graph, seed)
    assert str(parse_igraph(print_igraph(placed))) == str(placed)
    assert from_json(placed.to_json()) == placed


@settings(max_examples=30, deadline=None, suppress_health_check=SLOW)
@given(shared_graphs(), st.integers(0, 2**16))
def test_random_exchanges(graph: IGraph, seed: int) -> None:
    """Units that run apart between the fewest barriers there can be do not meet in shared bytes."""
    try:
        ordered = insert_sync.run(graph)
    except VerifyError:
        assume(False)  # a race within one iOp, which no barrier orders
    check(ordered, seed)


def test_graphs_with_sram_barriers_and_group_forms() -> None:
    """Units run apart between barriers: what shares bytes is ordered, whichever is first."""
    count = 0
    for entry in by_hand.entries():
        if any(p.level == "sram" for p in entry.graph.pointers):
            count += 1
            check(entry.graph, count)
    assert count >= 3


GROUP = HardwareModel("dev", "test", 1, 4, 4096, 4096, 32, {})


def two_stages(barriers: bool) -> IGraph:
    """Two tiles in sram one after the other, each read by the neighbour of its writer."""
    sync = "sync.sram a[0; (1,32); (32,1)], a[0; (1,32); (32,1)]\n" if barriers else ""
    return parse_igraph(
        f"""igraph g on dev parallel (1, 4) {{
        x = iPointer(dram, fp32, 32, in)
        y = iPointer(dram, fp32, 64, out)
        a = iPointer(sram, fp32, 32)
        b = iPointer(sram, fp32, 32)
        t = iPointer(reg, fp32, 8)
        move.dram.sram.fp32 a[8*pid; (1,8); (8,1)], x[8*pid; (1,8); (8,1)]
        sync.sram a[0; (1,32); (32,1)], a[0; (1,32); (32,1)]
        move.sram.dram.fp32 y[8*pid; (1,8); (8,1)], a[8*((pid + 1) % 4); (1,8); (8,1)]
        {sync}move.dram.reg.fp32 t[0; (1,8); (8,1)], x[8*pid; (1,8); (8,1)]
        move.reg.sram.fp32 b[8*pid; (1,8); (8,1)], t[0; (1,8); (8,1)]
        sync.sram b[0; (1,32); (32,1)], b[0; (1,32); (32,1)]
        move.sram.dram.fp32 y[8*pid + 32; (1,8); (8,1)], b[8*((pid + 1) % 4); (1,8); (8,1)]
        }}""",
        GROUP,
    )


def test_sram_is_shared_only_across_a_barrier() -> None:
    """Without one, a fast unit would write the second tile over what a slow one still reads."""
    apart, together = check(two_stages(False), 0), check(two_stages(True), 0)
    assert dict(apart.attrs["addresses"].items()) == {"a": 0, "b": 128, "t": 0}
    assert dict(together.attrs["addresses"].items()) == {"a": 0, "b": 0, "t": 0}


def test_a_loop_needs_a_barrier_on_the_way_back() -> None:
    """Between the tiles there is one, but the next iteration's first tile meets the last one's second."""

    def text(back: str) -> str:
        return f"""igraph g on dev parallel (1, 4) {{
        x = iPointer(dram, fp32, 96, in)
        y = iPointer(dram, fp32, 192, out)
        a = iPointer(sram, fp32, 32)
        b = iPointer(sram, fp32, 32)
        for k in 3 {{
          move.dram.sram.fp32 a[8*pid; (1,8); (8,1)], x[8*pid + 32*k; (1,8); (8,1)]
          sync.sram a[0; (1,32); (32,1)], a[0; (1,32); (32,1)]
          move.sram.dram.fp32 y[8*pid + 64*k; (1,8); (8,1)], a[8*((pid + 1) % 4); (1,8); (8,1)]
          sync.sram a[0; (1,32); (32,1)], a[0; (1,32); (32,1)]
          move.dram.sram.fp32 b[8*pid; (1,8); (8,1)], x[8*pid + 32*k; (1,8); (8,1)]
          sync.sram b[0; (1,32); (32,1)], b[0; (1,32); (32,1)]
          move.sram.dram.fp32 y[8*pid + 64*k + 32; (1,8); (8,1)], b[8*((pid + 1) % 4); (1,8); (8,1)]
          {back}
        }}
        }}"""

    barrier = "sync.sram b[0; (1,32); (32,1)], b[0; (1,32); (32,1)]"
    assert check(parse_igraph(text(""), GROUP), 0).attrs["peak"]["sram"] == 256
    assert check(parse_igraph(text(barrier), GROUP), 0).attrs["peak"]["sram"] == 128


def test_sram_output_takes_the_place_of_its_input_only_where_units_keep_to_their_own() -> None:
    def text(source: str) -> str:
        return f"""igraph g on dev parallel (1, 4) {{
        x = iPointer(dram, fp32, 32, in)
        y = iPointer(dram, fp32, 32, out)
        a = iPointer(sram, fp32, 32)
        b = iPointer(sram, fp32, 32)
        move.dram.sram.fp32 a[8*pid; (1,8); (8,1)], x[8*pid; (1,8); (8,1)]
        sync.sram a[0; (1,32); (32,1)], a[0; (1,32); (32,1)]
        unary.abs.fp32 b[8*pid; (1,8); (8,1)], a[{source}; (1,8); (8,1)]
        sync.sram b[0; (1,32); (32,1)], b[0; (1,32); (32,1)]
        move.sram.dram.fp32 y[8*pid; (1,8); (8,1)], b[8*((pid + 1) % 4); (1,8); (8,1)]
        }}"""

    assert check(parse_igraph(text("8*pid"), GROUP), 0).attrs["peak"]["sram"] == 128
    assert check(parse_igraph(text("8*((pid + 1) % 4)"), GROUP), 0).attrs["peak"]["sram"] == 256


def test_forget_drops_what_a_change_makes_stale() -> None:
    graph = two_stages(True)
    assert allocate.forget(graph) is graph
    assert allocate.forget(allocate.run(graph)) == graph


def test_what_leads_into_a_loop_is_loaded_apart() -> None:
    """The first tile lies in no constant's place, so that it waits for no use of it; else it may."""
    text = """hardware toy {
  kind = toy
  num_groups = 1
  num_units = 1
  reg_bytes = 65536
  sram_bytes = 0
  vector_bytes = 64
}
igraph toy on toy parallel (1, 1) {
  x = iPointer(dram, fp32, 4096, in)
  g = iPointer(dram, fp32, 16, in)
  y = iPointer(dram, fp32, 4096, out)
  a = iPointer(reg, fp32, 16)
  b = iPointer(reg, fp32, 1024)
  t = iPointer(reg, fp32, 1024)
  move.dram.reg.fp32 a[0; (1,16); (16,1)], g[0; (1,16); (16,1)]
  broadcast.col.unit.fp32 b[0; (64,16); (16,1)], a[0; (1,16); (16,1)]
  move.dram.reg.fp32 t[0; (64,16); (16,1)], x[0; (64,16); (16,1)]
  for k in 4 [ATTRIBUTE] {
    binary.mul.fp32 t[0; (64,16); (16,1)], t[0; (64,16); (16,1)], b[0; (64,16); (16,1)]
    move.reg.dram.fp32 y[1024*k; (64,16); (16,1)], t[0; (64,16); (16,1)]
  }
}
"""
    for attribute, apart in (("stages=2", True), ("unroll=1", False)):
        placed = check(parse_igraph(text.replace("ATTRIBUTE", attribute)), 0)
        at = {str(name): int(address) for name, address in placed.attrs["addresses"].items()}
        begin, end = min(at["a"], at["t"]), max(at["a"], at["t"])
        assert (end - begin >= (64 if begin == at["a"] else 4096)) == apart, at
