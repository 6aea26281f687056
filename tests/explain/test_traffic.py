# SPDX-License-Identifier: Apache-2.0
"""Bytes moved: against enumeration on random graphs, and by hand on kernels that one can work out."""

from __future__ import annotations

import pytest
from hypothesis import given
from uir_tvm.explain.traffic import Traffic, touches, traffic
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.dtypes import bytes_of
from uir_tvm.verify.access import GraphFacts

from tests.igraph.strategies import runnable_igraphs

from . import graphs
from .brute import touched


def of(body: str) -> Traffic:
    """The traffic of a kernel of `graphs`."""
    return traffic(GraphFacts(graphs.graph(body)))


def sides(found: Traffic, level: str) -> tuple[int, int]:
    """Bytes read and written of a level."""
    return found.level(level).read_bytes, found.level(level).written_bytes


@given(runnable_igraphs())
def test_random_graphs_move_what_enumeration_says(graph: IGraph) -> None:
    program = GraphFacts(graph)
    counts, which = touched(graph)
    mine: dict[tuple[str, str], int] = {}
    for step in program.steps:
        for touch in touches(step):
            assert touch.elements.exact
            key = (str(touch.pointer.name), touch.kind)
            mine[key] = mine.get(key, 0) + touch.elements.value
    assert {k: n for k, n in mine.items() if n} == {k: n for k, n in counts.items() if n}
    found = traffic(program)
    for pointer in found.pointers:
        width = bytes_of(pointer.dtype)
        assert pointer.read_bytes == width * counts[pointer.pointer, "read"]
        assert pointer.least_read_bytes == width * len(which[pointer.pointer, "read"])
        assert pointer.least_written_bytes == width * len(which[pointer.pointer, "write"])
    assert found.exact and found.dram_bytes >= found.least_bytes


def test_softmax_moves_every_byte_once() -> None:
    found = of(graphs.SOFTMAX)
    assert sides(found, "dram") == (8192, 8192)
    assert (found.least_bytes, found.ratio, found.exact) == (16384, 1.0, True)


def test_a_staged_operand_is_read_by_every_group() -> None:
    """b (512 bytes) goes to the sram of four groups; there each of eight units reads all of it."""
    found = of(graphs.STAGED)
    a, b, c = found.pointers
    assert (a.read_bytes, a.least_read_bytes) == (2048, 2048)
    assert (b.read_bytes, b.least_read_bytes) == (2048, 512)
    assert (c.written_bytes, c.least_written_bytes) == (1024, 1024)
    assert sides(found, "sram") == (8 * 512, 4 * 512)
    assert found.ratio == pytest.approx((2048 + 2048 + 1024) / (2048 + 512 + 1024))


def test_data_decides_what_a_gather_reads() -> None:
    """Ten rows of eight at most; the index and the result are exact."""
    found = of(graphs.GATHER)
    table, index, y = found.pointers
    assert (table.read_bytes, table.least_read_bytes, table.exact) == (320, 320, False)
    assert (index.read_bytes, index.exact) == (40, True)
    assert (y.written_bytes, y.exact) == (320, True)
    assert not found.exact


def test_a_group_passes_partial_results_through_its_buffer() -> None:
    """Eight units write one number each, four leaders read two each; four results leave."""
    found = of(graphs.GROUP)
    assert sides(found, "sram") == (32, 32)
    assert sides(found, "dram") == (256, 16)


def test_scratch_in_dram_need_not_be_there() -> None:
    body = """
    x = iPointer(dram, fp32, 8, in)
    s = iPointer(dram, fp32, 8)
    y = iPointer(dram, fp32, 8, out)
    t = iPointer(reg, fp32, 1)
    move.dram.reg.fp32 t[0; (1,1); (1,1)], x[pid; (1,1); (1,1)]
    move.reg.dram.fp32 s[pid; (1,1); (1,1)], t[0; (1,1); (1,1)]
    move.dram.dram.fp32 y[pid; (1,1); (1,1)], s[pid; (1,1); (1,1)]
    """
    found = of(body)
    assert (found.dram_bytes, found.least_bytes, found.ratio) == (128, 64, 2.0)
