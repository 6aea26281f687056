# SPDX-License-Identifier: Apache-2.0
"""Short rows that repeat an element are one long row of vectors, and results are those of the graph."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.target.cpu.lower import lower

from .support import check, parsed, signature
from .test_groups import nests_of


def _repeated(rows: int, cols: int, dtype: str = "fp32", *, bounds: str = "", between: str = "") -> IGraph:
    """Elements in twice as many rows of columns as a unit has; ``between`` makes u of t."""
    made = "u" if between else "t"
    return parsed(
        f"x = iPointer(dram, {dtype}, {2 * rows}, in)\no = iPointer(dram, {dtype}, {2 * rows * cols}, out)\n"
        f"t = iPointer(reg, {dtype}, {rows})\nu = iPointer(reg, {dtype}, {rows})\n"
        f"w = iPointer(reg, {dtype}, {rows * cols})",
        f"move.dram.reg.{dtype} t[0; ({rows},1); (1,1){bounds}], x[{rows}*pid; ({rows},1); (1,1){bounds}]\n"
        + (f"{between} u[0; ({rows},1); (1,1){bounds}], t[0; ({rows},1); (1,1){bounds}]\n" if between else "")
        + f"broadcast.row.unit.{dtype} w[0; ({rows},{cols}); ({cols},1){bounds}], "
        f"{made}[0; ({rows},1); (1,1){bounds}]\n"
        f"move.reg.dram.{dtype} o[{rows * cols}*pid; ({rows},{cols}); ({cols},1){bounds}], "
        f"w[0; ({rows},{cols}); ({cols},1){bounds}]",
        units=2,
    )


def _run(graph: IGraph) -> None:
    pointer = graph.params[0]
    rng = np.random.default_rng(5)
    check(graph, [rng.integers(-9, 10, pointer.size).astype(numpy_of(pointer.dtype))])


@pytest.mark.parametrize("cols", [2, 3, 4, 5, 6, 7, 8, 11])
@pytest.mark.parametrize("rows", [3, 28, 37, 130])
def test_one_long_row(rows: int, cols: int) -> None:
    graph = _repeated(rows, cols)
    (nest,) = nests_of(graph)
    assert (nest.rows, nest.groups[0].cols) == (1, rows * cols)
    assert [read.access.times for action in nest.actions for read in action.reads][0] == cols
    assert "Shuffle" in lower(graph, signature(graph)).script() or rows * cols < 16
    _run(graph)


def test_a_vector_of_one_element() -> None:
    _run(_repeated(28, 16))


@pytest.mark.parametrize("dtype", ["fp64", "fp16", "bf16", "int8", "uint8", "int16", "int64"])
@pytest.mark.parametrize("cols", [2, 3])
def test_dtypes(dtype: str, cols: int) -> None:
    _run(_repeated(45, cols, dtype))


@pytest.mark.parametrize("cols", [2, 3])
def test_what_is_made_of_each_element_is_made_once(cols: int) -> None:
    """A row of the elements before the row that repeats them."""
    graph = _repeated(37, cols, between="unary.exp.fp32")
    first, second = nests_of(graph)
    assert [nest.groups[0].cols for nest in (first, second)] == [37, 37 * cols]
    assert all(nest.rows == 1 for nest in (first, second))
    _run(graph)


@pytest.mark.parametrize("cols", [2, 3])
def test_rows_that_end(cols: int) -> None:
    """The second unit has fewer rows."""
    _run(_repeated(37, cols, bounds="; rows :-9*pid + 37"))


def test_long_rows_stay() -> None:
    (nest,) = nests_of(_repeated(5, 32))
    assert (nest.rows, nest.groups[0].cols) == (5, 32)


def test_what_reads_the_row_again_stays() -> None:
    """An element that is made of the repeated ones comes after them."""
    graph = parsed(
        "x = iPointer(dram, fp32, 8, in)\no = iPointer(dram, fp32, 8, out)\n"
        "w = iPointer(reg, fp32, 16)\ns = iPointer(reg, fp32, 8)",
        """broadcast.row.unit.fp32 w[0; (8,2); (2,1)], x[0; (8,1); (1,1)]
        reduce.add.row.unit.fp32 s[0; (8,1); (1,1)], w[0; (8,2); (2,1)]
        move.reg.dram.fp32 o[0; (8,1); (1,1)], s[0; (8,1); (1,1)]""",
    )
    _run(graph)


@pytest.mark.parametrize("first", [0, 1, 3])
@pytest.mark.parametrize(("rows", "cols"), [(250, 2), (251, 2), (131, 4), (170, 3)])
def test_past_the_caches_from_the_first_whole_line(rows: int, cols: int, first: int) -> None:
    """Wherever a unit's row begins; as long as lines begin with an element that did not come before."""
    graph = parsed(
        f"x = iPointer(dram, fp32, {2 * rows}, in)\n"
        f"o = iPointer(dram, fp32, {2 * rows * cols + first}, out)\n"
        f"t = iPointer(reg, fp32, {rows})\nw = iPointer(reg, fp32, {rows * cols})",
        f"move.dram.reg.fp32 t[0; ({rows},1); (1,1)], x[{rows}*pid; ({rows},1); (1,1)]\n"
        f"broadcast.row.unit.fp32 w[0; ({rows},{cols}); ({cols},1)], t[0; ({rows},1); (1,1)]\n"
        f"move.reg.dram.fp32 o[{rows * cols}*pid + {first}; ({rows},{cols}); ({cols},1)], "
        f"w[0; ({rows},{cols}); ({cols},1)] [hint=stream]",
        units=2,
    )
    assert "uir_stream" in lower(graph, signature(graph)).script()
    _run(graph)
