# SPDX-License-Identifier: Apache-2.0
"""Rows of memory that are added up: four distant ones at once, each in the order that it had."""

from __future__ import annotations

import re

import numpy as np
import pytest
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.target.cpu.lower import lower

from .support import HOST, check, execute, parsed, signature

ROUNDS, COLS = 24, 1200


def on(graph: IGraph, mcpu: str = "znver4", last_cache: int = 1 << 16) -> IGraph:
    """The graph for a processor of this name with such a last cache."""
    figures = dict(HOST.figures.items()) | {"l2_bytes": 1 << 15, "l3_bytes": last_cache}
    figures |= {"line_bytes": 64, "mcpu": mcpu, "machine": "x86_64", "mattr": "", "vector_registers": 32}
    return graph.replace(hardware=HardwareModel("small", "cpu", 2, 1, HOST.reg_bytes, 0, 64, figures))


def sums(
    cols: int = COLS,
    rounds: int = ROUNDS,
    rows: int = 1,
    dtype: str = "fp32",
    made: str = "",
    after: str = "",
    step: str = "{rows}*i + {units}*pid",
) -> IGraph:
    """The sums of rows, some in a tile, of two units; ``made`` of a tile, ``after`` a sum."""
    size, tile, one = rounds * rows * cols, f"[0; ({rows},{cols}); ({cols},1)]", f"[0; ({rows},1); (1,1)]"
    words = {"tile": tile, "one": one, "rows": rows, "units": rounds * rows}
    return parsed(
        f"x = iPointer(dram, {dtype}, {2 * size}, in)\n"
        f"o = iPointer(dram, {dtype}, {2 * rounds * rows}, out)\n"
        f"a = iPointer(reg, {dtype}, {rows * cols})\nb = iPointer(reg, {dtype}, {rows * cols})\n"
        f"s = iPointer(reg, {dtype}, {rows})\nt = iPointer(reg, {dtype}, {rows})",
        f"""for i in {rounds} {{
        move.dram.reg.{dtype} a{tile}, x[{rows * cols}*i + {size}*pid; ({rows},{cols}); ({cols},1)]
        {made.format(**words)}
        reduce.add.row.unit.{dtype} s{one}, {"b" if made else "a"}{tile}
        {after.format(**words)}
        move.reg.dram.{dtype} o[{step.format(**words)}; ({rows},1); (1,1)], {"t" if after else "s"}{one}
        }}""",
        2,
    )


def at_once(graph: IGraph) -> int:
    """Rounds of the loop that are done at once."""
    text = str(lower(graph, signature(graph)))
    found = re.search(r"for i(?:, r)? in (?:range|T\.grid)\(T\.int64\((\d+)\)", text)
    assert found is not None
    return int(graph.body[0].extent) // int(found[1])


SCALED = "unary.muls.fp32 b{tile}, a{tile} [0.5]"
DEAR = "unary.exp.fp32 b{tile}, a{tile}"
#: The sum of squares of what is left without the mean, which is a second pass over the row.
TWICE = (
    "broadcast.row.unit.fp32 b{tile}, s{one}\nbinary.sub.fp32 b{tile}, a{tile}, b{tile}\n"
    "reduce.add.row.unit.fp32 t{one}, b{tile}"
)

#: A sum with a result of another round.
BEFORE = "binary.add.fp32 t{one}, s{one}, o[{units}*pid; ({rows},1); (1,1)]"


@pytest.mark.parametrize(
    ("graph", "rounds"),
    [
        (on(sums()), 4),
        (on(sums(made=SCALED)), 4),
        (on(sums(rows=3)), 4),
        (on(sums(dtype="fp16")), 4),
        (on(sums(rounds=21)), 3),
        (on(sums(rounds=23)), 1),
        (on(sums(), mcpu="sapphirerapids"), 1),  # only where it was measured
        (on(sums(), last_cache=1 << 20), 1),  # what a cache holds
        (on(sums(cols=256, rounds=96)), 1),  # eight rows are combined at once
        (on(sums(made=DEAR)), 1),  # memory is not what is waited for
        (on(sums(after=TWICE)), 1),  # four rows would leave the first cache before they are read again
        (on(sums(step="{units}*pid")), 1),  # the last round is what counts
        (on(sums(after=BEFORE)), 1),  # each round needs the one before
    ],
    ids=[
        "rows",
        "scaled",
        "tiles",
        "halves",
        "threes",
        "a prime",
        "another processor",
        "cache",
        "short",
        "exponentials",
        "two passes",
        "one place",
        "a chain",
    ],
)
def test_rounds_at_once(graph: IGraph, rounds: int) -> None:
    assert at_once(graph) == rounds


@pytest.mark.parametrize("cols", [344, 512, COLS, 1025, 2048])
@pytest.mark.parametrize("rows", [1, 2])
def test_sums_are_those_of_the_graph(cols: int, rows: int) -> None:
    """Turns that divide a row, and what is left behind them."""
    graph = on(sums(cols, rows=rows, made=SCALED))
    assert at_once(graph) == 4
    check(graph, [numbers(2 * ROUNDS * rows * cols)], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("made", ["", SCALED])
def test_every_bit_is_the_same(made: str) -> None:
    """As of rows one after another, whose vectors are half a line too."""
    graph, x = sums(rounds=23, made=made), numbers(2 * 24 * COLS)
    together = execute(on(sums(made=made)), [x])[0].reshape(2, 24)
    alone = execute(on(graph), [x.reshape(2, 24, COLS)[:, :23].copy()])[0].reshape(2, 23)
    np.testing.assert_array_equal(together[:, :23], alone)


def numbers(count: int) -> np.ndarray:
    """Of float32."""
    return np.random.default_rng(0).standard_normal(count).astype(np.float32)
