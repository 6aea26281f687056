# SPDX-License-Identifier: Apache-2.0
"""A tile that goes from one layout of registers to another keeps its elements, on whatever way it goes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph, IPointer, ISlice, make
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.target.cuda.lower import lower

Layout = tuple[int, ...]


def graph_of(dtype: str, shape: tuple[int, int], given: Layout, wanted: Layout) -> IGraph:
    """Loads a tile in one layout, moves it to registers of another and stores it from there."""
    size = shape[0] * shape[1]
    names = (("x", "dram", "in"), ("y", "dram", "out"), ("a", "reg", "tmp"), ("b", "reg", "tmp"))
    x, y, a, b = (IPointer(name, level, dtype, size, role) for name, level, role in names)
    tiles = [ISlice(p, 0, shape) for p in (x, y, a, b)]
    body = [make.move(tiles[2], tiles[0]), make.move(tiles[3], tiles[2]), make.move(tiles[1], tiles[3])]
    attrs = {"layouts": {"a": list(given), "b": list(wanted)}}
    return IGraph("convert", hardware.get("h200", "cuda"), 1, 1, [x, y, a, b], body, attrs)


def check(dtype: str, shape: tuple[int, int], given: Layout, wanted: Layout) -> str:
    """Run the graph on the host model; the text."""
    graph = graph_of(dtype, shape, given, wanted)
    values = np.arange(shape[0] * shape[1]) % 251
    x = values.astype(numpy_of(dtype))
    (y,) = run_igraph(graph, "uir-cuda", x, device="model")
    np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))
    return str(lower(graph))


@pytest.mark.parametrize(
    ("shape", "given", "wanted", "way"),
    [
        # the lanes change hands, the registers stay
        ((8, 4), (8, 4, 1, 1), (8, 4, 1, 1, 1), "shuffle"),
        # a lane's two neighbours are another lane's two registers
        ((1, 64), (1, 32, 1, 2), (1, 32, 1, 1), "shuffle"),
        ((16, 16), (8, 4, 1, 2), (16, 2, 1, 2), "shuffle"),
        # a column of rows is wanted from rows: every lane has parts of all
        ((32, 32), (1, 32, 1, 1), (32, 1, 1, 1), "tile["),
        ((16, 64), (4, 8, 1, 8), (8, 4, 2, 1), "load_vec"),
        # one element of each side that all lanes hold
        ((1, 40), (32, 1, 1, 1), (1, 32, 1, 1), ""),
        # the last block of one layout reaches further than the other's array
        ((1, 40), (2, 16, 1, 1), (1, 32, 1, 1), "min("),
        ((33, 3), (32, 1, 1, 1), (8, 4, 1, 1), ""),
    ],
)
def test_ways(shape: tuple[int, int], given: Layout, wanted: Layout, way: str) -> None:
    """By shuffles where one or two bring a register, else through the warp's scratch."""
    assert way in check("fp32", shape, given, wanted)


@pytest.mark.parametrize("dtype", ["fp64", "fp16", "bf16", "fp8e5m2", "int8", "uint16", "int64", "bool"])
def test_dtypes(dtype: str) -> None:
    """Shuffles move words, of which narrower values are a part."""
    assert "shuffle(" in check(dtype, (2, 48), (2, 16, 1, 2), (1, 32, 1, 2))


@pytest.mark.parametrize("seed", range(8))
def test_random_layouts(seed: int) -> None:
    """Any two layouts, of shapes that no block divides."""
    rng = random.Random(seed)

    def layout() -> Layout:
        lanes_r = 2 ** rng.randrange(6)
        return (lanes_r, 32 // lanes_r, 2 ** rng.randrange(3), 2 ** rng.randrange(4), rng.randrange(2))

    shape = (rng.choice([1, 2, 5, 16, 24]), rng.choice([1, 3, 16, 31, 64]))
    check(rng.choice(["fp32", "fp16", "int8"]), shape, layout(), layout())


def test_what_is_no_layout_is_refused() -> None:
    """Lanes are 32."""
    with pytest.raises(CodegenError, match="asks for none"):
        lower(graph_of("fp32", (8, 8), (3, 8, 1, 1), (1, 32, 1, 1)))
