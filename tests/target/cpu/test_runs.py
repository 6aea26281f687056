# SPDX-License-Identifier: Apache-2.0
"""Rows that follow each other in memory: nothing is fetched, and sums of large ones read half lines."""

from __future__ import annotations

import re

import numpy as np
import pytest
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.target.cpu.lower import lower

from .support import HOST, check, parsed, signature

ROWS, COLS = 64, 512


def on(graph: IGraph, mcpu: str, last_cache: int = 1 << 30) -> IGraph:
    """The graph for a processor with vectors of a line, two cores and these caches."""
    figures = dict(HOST.figures.items()) | {"l2_bytes": 1 << 16, "l3_bytes": last_cache}
    figures |= {"line_bytes": 64, "mcpu": mcpu, "machine": "x86_64", "mattr": "", "vector_registers": 32}
    return graph.replace(hardware=HardwareModel("small", "cpu", 2, 1, HOST.reg_bytes, 0, 64, figures))


def sums(pitch: int = COLS, made: str = "unary.muls.fp32 e{tile}, a{tile} [0.5]") -> IGraph:
    """The sums of scaled rows, ``pitch`` elements apart, of two units."""
    tile = f"[0; (1,{COLS}); ({COLS},1)]"
    return parsed(
        f"x = iPointer(dram, fp32, {2 * ROWS * pitch}, in)\no = iPointer(dram, fp32, {2 * ROWS}, out)\n"
        f"a = iPointer(reg, fp32, {COLS})\ne = iPointer(reg, fp32, {COLS})",
        f"""for i in {ROWS} {{
        move.dram.reg.fp32 a{tile}, x[{pitch}*i + {ROWS * pitch}*pid; (1,{COLS}); ({COLS},1)]
        {made.format(tile=tile)}
        reduce.add.row.unit.fp32 o[i + {ROWS}*pid; (1,1); (1,1)], e{tile}
        }}""",
        2,
    )


def text(graph: IGraph) -> str:
    """Its TIR."""
    return str(lower(graph, signature(graph)))


DEAR = "unary.exp.fp32 e{tile}, a{tile}"


@pytest.mark.parametrize(
    ("graph", "mcpu", "fetched"),
    [
        (sums(), "znver4", False),
        (sums(), "sapphirerapids", True),  # only where it was measured
        (sums(pitch=COLS + 64), "znver4", True),  # the next row is elsewhere
        (sums(made=DEAR), "znver4", True),  # the processor is not that far ahead
    ],
    ids=["a run", "another processor", "rows apart", "exponentials"],
)
def test_runs_are_not_fetched(graph: IGraph, mcpu: str, fetched: bool) -> None:
    assert ("uir_fetch_read" in text(on(graph, mcpu))) == fetched


@pytest.mark.parametrize(("pitch", "fetched"), [(COLS, False), (COLS + 64, True)])
def test_results_are_fetched_where_they_are_no_run(pitch: int, fetched: bool) -> None:
    here = f"[{pitch}*i + {ROWS * pitch}*pid; (1,{COLS}); ({COLS},1)]"
    size = 2 * ROWS * pitch
    graph = parsed(
        f"x = iPointer(dram, fp32, {size}, in)\no = iPointer(dram, fp32, {size}, inout)",
        f"for i in {ROWS} {{ unary.muls.fp32 o{here}, x{here} [3.0] }}",
        2,
    )
    assert ("uir_fetch_write" in text(on(graph, "znver4"))) == fetched


@pytest.mark.parametrize(
    ("graph", "mcpu", "last_cache", "lanes"),
    [
        (sums(), "znver4", 1 << 16, 8),
        (sums(), "znver4", 1 << 20, 16),  # what a cache holds
        (sums(), "sapphirerapids", 1 << 16, 16),  # takes whole vectors at once
        (sums(pitch=COLS + 64), "znver4", 1 << 16, 16),
        (sums(made=DEAR), "znver4", 1 << 16, 16),
    ],
    ids=["memory", "cache", "another processor", "rows apart", "exponentials"],
)
def test_runs_of_memory_are_read_by_half_lines(graph: IGraph, mcpu: str, last_cache: int, lanes: int) -> None:
    found = text(on(graph, mcpu, last_cache))
    loaded = re.findall(r"x_flat\[T\.Ramp\([^]]*, T\.int64\(1\), (\d+)\)\]", found)
    assert set(map(int, loaded)) == {lanes}


def test_sums_of_half_lines_are_those_of_the_graph() -> None:
    x = np.random.default_rng(0).standard_normal(2 * ROWS * COLS).astype(np.float32)
    check(on(sums(), "znver4", 1 << 16), [x], rtol=1e-5, atol=1e-5)
