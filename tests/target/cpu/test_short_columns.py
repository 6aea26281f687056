# SPDX-License-Identifier: Apache-2.0
"""Short windows stay in registers, longer ones are loops, and results are those of the graph."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.target.cpu.lower import lower
from uir_tvm.target.cpu.short_columns import IN_REGISTERS, windows

from ...asked import every_two
from .support import check, parsed, signature

ROWS = 4
COMBINED = {"max": "binary.max", "min": "binary.min", "add": "binary.add", "mul": "binary.mul"}
IDENTITY = {"max": "-inf", "min": "inf", "add": "0.0", "mul": "1.0"}


def _pool(
    high: int = 3,
    wide: int = 3,
    cols: int = 21,
    step: int = 1,
    dtype: str = "fp32",
    op: str = "max",
    loop: str = "",
    reader: str = "",
    exact_rows: bool = False,
) -> IGraph:
    """A pool whose windows hang over all edges by one: two images, one for each of two units.

    ``reader``: another iOp that reads the tile; ``exact_rows``: windows have all their rows.
    """
    pitch, below = step * (cols - 1) + wide - 2, ROWS + high - 1 - (0 if exact_rows else 2)
    first = 0 if exact_rows else pitch
    floats = dtype.startswith(("fp", "bf"))
    least = "0" if dtype.startswith("u") else "-100"
    outside = IDENTITY[op] if floats else {"max": least, "min": "100"}.get(op, IDENTITY[op][0])
    tile, row = f"({high},{cols}); ({cols},1)", f"(1,{cols}); ({cols},1)"
    rows = "" if exact_rows else f"rows -r + 1:-r + {below + 1}; "
    begin, end = f"(-j) / {step} + 1", f"({pitch} - j) / {step} + 1"
    image = f"{pitch}*r + j + {below * pitch}*pid - {first + 1}"
    return parsed(
        f"x = iPointer(dram, {dtype}, {2 * below * pitch}, in)\n"
        f"o = iPointer(dram, {dtype}, {2 * ROWS * cols}, out)\n"
        f"s = iPointer(reg, {dtype}, {cols})\nt = iPointer(reg, {dtype}, {high * cols})\n"
        f"u = iPointer(reg, {dtype}, {cols})\nw = iPointer(reg, {dtype}, {high * cols})",
        f"for r in {ROWS} {{\n"
        f"fill.{dtype} s[0; {row}] [{outside}]\n"
        f"for j in {wide}{loop} {{\n"
        f"move.dram.reg.{dtype} t[0; {tile}], x[{image}; ({high},{cols}); ({pitch},{step}); "
        f"{rows}cols {begin}:{end}] [pad={outside}]\n"
        f"{reader}\n"
        f"reduce.{op}.col.unit.{dtype} u[0; {row}], t[0; {tile}]\n"
        f"{COMBINED[op]}.{dtype} s[0; {row}], s[0; {row}], u[0; {row}]\n"
        "}\n"
        f"move.reg.dram.{dtype} o[{cols}*r + {ROWS * cols}*pid; {row}], s[0; {row}]\n"
        "}",
        2,
    )


def _counts(graph: IGraph) -> Counter[str]:
    return Counter(str(iop.op) for iop, _ in graph.walk())


def _depth(graph: IGraph) -> int:
    return max(len(loops) for _, loops in graph.walk())


def test_a_short_window_is_one_line_of_its_rows() -> None:
    graph = _pool()
    made = windows(graph)
    assert (_depth(graph), _depth(made)) == (2, 1)
    assert _counts(made) == {"fill": 1, "move": 9 + 1, "reduce": 3, "binary": 3}
    assert all(IN_REGISTERS in iop.attrs for iop, _ in made.walk() if iop.op == "reduce")
    assert all(int(iop.target.rows) == 1 for iop, _ in made.walk())


def test_no_row_of_results_is_kept_in_memory() -> None:
    graph = _pool()
    text = str(lower(graph, signature(graph)))
    assert " s = T.alloc_buffer" not in text
    assert " u = T.alloc_buffer" not in text
    assert " t = T.alloc_buffer" not in text


def test_of_a_long_window_rows_stay_in_registers_and_the_loop_stays() -> None:
    made = windows(_pool(7, 7))
    assert _depth(made) == 2
    assert _counts(made) == {"fill": 1, "move": 7 + 1, "reduce": 1, "binary": 1}


def test_a_column_that_is_longer_stays_a_reduction_in_memory() -> None:
    graph = _pool(40, 1)
    assert windows(graph) is graph


def test_a_tile_that_others_read_stays_whole() -> None:
    other = "unary.muls.fp32 w[0; (3,21); (21,1)], t[0; (3,21); (21,1)] [2.0]"
    graph = _pool(reader=other)
    assert windows(graph) is graph


def test_what_is_no_accumulator_stays_a_loop() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 90, in)\no = iPointer(dram, fp32, 90, out)\nt = iPointer(reg, fp32, 30)",
        "for j in 3 {\nmove.dram.reg.fp32 t[0; (1,30); (30,1)], x[30*j; (1,30); (30,1)]\n"
        "unary.muls.fp32 o[30*j; (1,30); (30,1)], t[0; (1,30); (30,1)] [2.0]\n}",
        1,
    )
    assert windows(graph) is graph


@pytest.mark.parametrize(
    ("size", "cols", "step"),
    every_two([(3, 3), (2, 2), (5, 5), (7, 7), (1, 4)], [5, 8, 21, 40], [1, 2, 3]),
    ids=str,
)
def test_results_are_those_of_the_graph(size: tuple[int, int], cols: int, step: int) -> None:
    graph = _pool(*size, cols=cols, step=step)
    x = np.random.default_rng(0).standard_normal(int(graph.params[0].size)).astype(np.float32)
    x[:: max(1, len(x) // 5)] = np.nan
    check(graph, [x])


@pytest.mark.parametrize(
    ("dtype", "op", "exact_rows"),
    every_two(
        ["fp32", "fp16", "bf16", "fp64", "int8", "uint8", "int16", "int32", "int64"],
        list(COMBINED),
        [False, True],
    ),
)
def test_results_of_every_type(dtype: str, op: str, exact_rows: bool) -> None:
    """Of small whole numbers, whose sums and products are exact."""
    graph = _pool(dtype=dtype, op=op, step=2, exact_rows=exact_rows)
    x = np.random.default_rng(1).integers(1, 4, int(graph.params[0].size)).astype(numpy_of(dtype))
    check(graph, [x])
