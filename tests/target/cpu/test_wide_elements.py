# SPDX-License-Identifier: Apache-2.0
"""Rows that are moved element by element become elements; what else a graph does leaves it as it is."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph import IGraph
from uir_tvm.target.cpu.wide_elements import wide_elements

from .support import check, parsed


def turned(rows: str = "", step: int = 2, more: str = "", extent: int = 2) -> IGraph:
    """(24, 16, 2) with its first two dimensions exchanged, a tile of 16 rows by 8 at a time."""
    return parsed(
        "x = iPointer(dram, fp32, 768, in)\no = iPointer(dram, fp32, 768, out)\nt = iPointer(reg, fp32, 128)",
        f"""for i in 3 {{ for k in {extent} {{
        move.dram.reg.fp32 t[0; (16,8); (8,1){rows}], x[256*i + k; (16,8); ({step},32){rows}]
        {more}
        move.reg.dram.fp32 o[16*i + k; (16,8); (48,2){rows}], t[0; (16,8); (8,1){rows}]
        }} }}""",
    )


def test_rows_become_elements() -> None:
    graph = wide_elements(turned())
    assert {str(p.dtype) for p in graph.pointers} == {"int64"}
    assert [int(p.size) for p in graph.params] == [384, 384]
    (move, *_), (loop, *_) = next(graph.walk())[0].sources, next(graph.walk())[1]
    assert (str(move.offset), move.stride, str(loop.var)) == ("128*i", (1, 16), "i")
    assert all(len(loops) == 1 for _, loops in graph.walk())


@pytest.mark.parametrize(
    "graph",
    [
        turned(rows="; rows :k + 8"),  # an element of a row is left out
        turned(step=3),  # no whole rows apart
        turned(more="unary.muls.fp32 t[0; (16,8); (8,1)], t[0; (16,8); (8,1)] [2.0]"),
        turned(extent=1),  # rows of one element
    ],
    ids=["bounds", "steps", "arithmetic", "one element"],
)
def test_what_is_no_move_of_rows_stays(graph: IGraph) -> None:
    assert wide_elements(graph) is graph


def test_results_are_those_of_the_graph() -> None:
    check(turned(), [np.arange(768, dtype=np.float32)], rtol=0, atol=0)
    check(turned(rows="; rows :-8*i + 20"), [np.arange(768, dtype=np.float32)], rtol=0, atol=0)
