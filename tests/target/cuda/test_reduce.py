# SPDX-License-Identifier: Apache-2.0
"""Reductions and broadcasts: within a lane, over lanes, and over the warps of a set."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.igraph import IGraph, IPointer, ISlice, interpreter, make, var
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.target.cuda.lower import lower

from .run_tile import Piece, run

#: Sums of some hundred terms near one, in another order: half an ULP of fp32 for every level of a tree.
TREE = 1e-6
LAYOUTS = {
    "a row for each lane": [32, 1, 1, 1],
    "a row over all lanes": [1, 32, 1, 2],
    "blocks": [8, 4, 2, 1],
    "lanes by columns": [4, 8, 1, 2, 1],
}


def reduced(
    values: np.ndarray, name: str, axis: str, layout: list[int], **box: tuple[int | None, int | None]
) -> tuple[np.ndarray, np.ndarray, str]:
    """A reduce of one tile in a layout."""
    rows, cols = values.shape
    shape = (rows, 1) if axis == "row" else (1, cols)
    target = Piece(np.zeros(shape, values.dtype))
    return run(
        target,
        [Piece(values, **box)],
        lambda t, s: make.reduce(name, t, s, axis),
        layouts={"s0": layout},
    )


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_sum_in_every_layout(layout: list[int], axis: str) -> None:
    """Of a tile that no layout divides, within a box that cuts it on all sides."""
    values = np.random.default_rng(0).uniform(0.5, 1.5, (11, 37)).astype(np.float32)
    box = {"cols": (3, 30)} if axis == "row" else {"rows": (2, 9)}
    got, wanted, _ = reduced(values, "add", axis, layout, **box)
    np.testing.assert_allclose(got, wanted, rtol=TREE)


@pytest.mark.parametrize("dtype", ["fp64", "fp16", "bf16", "fp8e4m3", "int8", "int64", "uint16", "uint64"])
def test_every_dtype(dtype: str) -> None:
    """Small integers wrap as NumPy's do; narrow floats are summed in fp32 and rounded once."""
    values = np.random.default_rng(1).integers(0, 8, (3, 40)).astype(numpy_of(dtype))
    if dtype in ("int8", "uint16"):
        values = (values * np.array(31).astype(values.dtype)).astype(values.dtype)
    got, wanted, _ = reduced(values, "add", "row", LAYOUTS["a row over all lanes"])
    np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "fp64"])
def test_nan_stays(name: str, dtype: str) -> None:
    """One NaN makes its row NaN wherever it lies; infinities and both zeros are numbers."""
    values = np.random.default_rng(2).uniform(-2, 2, (6, 33)).astype(numpy_of(dtype))
    values[0, 32], values[1, 0], values[2, 7] = np.nan, np.nan, np.inf
    values[3, 5], values[4, :] = -np.inf, -0.0
    got, wanted, _ = reduced(values, name, "row", LAYOUTS["blocks"])
    np.testing.assert_array_equal(got, wanted)
    assert np.isnan(got[:2]).all() and not np.isnan(got[2:]).any()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("add", "fp32"), ("mul", "fp16"), ("max", "fp32"), ("min", "int8"), ("max", "uint8"), ("max", "bool")],
)
def test_nothing_gives_the_identity(name: str, dtype: str) -> None:
    """An empty box, whatever the registers hold."""
    values = np.full((4, 16), 1).astype(numpy_of(dtype))
    got, wanted, _ = reduced(values, name, "row", LAYOUTS["a row over all lanes"], cols=(5, 5))
    np.testing.assert_array_equal(got, wanted)


def test_lanes_meet_only_where_a_row_is_spread() -> None:
    """A row that one lane holds takes no shuffle; over eight lanes it takes three."""
    values = np.ones((32, 8), np.float32)
    assert "__shfl_xor_sync" not in reduced(values, "add", "row", [32, 1, 1, 4])[2]
    assert reduced(values, "add", "row", [4, 8, 1, 1])[2].count("__shfl_xor_sync") == 3
    assert reduced(values, "add", "col", [4, 8, 1, 1])[2].count("__shfl_xor_sync") == 2


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("layout", [LAYOUTS["blocks"], LAYOUTS["lanes by columns"]])
def test_broadcast(layout: list[int], axis: str) -> None:
    """What every lane of a row (column) needs, it has."""
    shape = (11, 1) if axis == "row" else (1, 37)
    values = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    target = Piece(np.zeros((11, 37), np.float32))
    got, wanted, text = run(
        target, [Piece(values)], lambda t, s: make.broadcast(t, s, axis), layouts={"t": layout}
    )
    np.testing.assert_array_equal(got, wanted)
    assert "shuffle" not in text.split("// broadcast")[1].split("//")[0]


def grouped(
    units: int, size: int, axis: str, dtype: str = "fp32", *, scratch: bool = False
) -> tuple[IGraph, np.ndarray]:
    """Every element minus its set's sum; the units of a block hold parts of different lengths."""
    rows, cols, groups = (3, 20, 2) if axis == "row" else (20, 3, 2)
    count, short = rows * cols, (1, cols) if axis == "col" else (rows, 1)
    total = units * groups * count
    names = (("x", "dram", total, "in"), ("y", "dram", total, "out"), ("a", "reg", count, "tmp"))
    x, y, a = (IPointer(name, level, dtype, n, role) for name, level, n, role in names)
    kept = short[0] * short[1]
    # a slice at an offset that only the run knows keeps a pointer out of registers
    part = IPointer("part", "reg", dtype, kept * (units if scratch else 1), "tmp")
    wide = IPointer("wide", "reg", dtype, count, "tmp")
    shared = IPointer("shared", "sram", dtype, units * kept, "tmp")
    other = IPointer("other", "sram", dtype, (units // size) * kept, "tmp")
    pid = var("pid")
    own = pid % units // size
    # the last unit of a block has less of the folded side: its tail counts as nothing
    tail = {"cols" if axis == "row" else "rows": (None, 20 + 3 * units - 3 - 3 * (pid % units) - 2)}
    sums = ISlice(part, kept * (pid % units) if scratch else 0, short)
    tiles = {p.name: ISlice(p, 0, (rows, cols)) for p in (a, wide)}
    at = ISlice(x, count * pid, (rows, cols)), ISlice(y, count * pid, (rows, cols))
    body = [
        make.move(tiles["a"], at[0]),
        make.reduce(
            "add",
            sums,
            tiles["a"].replace(**tail),
            axis,
            "group",
            ISlice(shared, size * kept * own, (size, kept)),
            size,
        ),
        make.broadcast(tiles["wide"], sums, axis, "group", ISlice(other, kept * own, (1, kept)), size),
        make.binary("sub", tiles["a"], tiles["a"], tiles["wide"]),
        make.move(at[1], tiles["a"]),
    ]
    pointers = [x, y, a, part, wide, shared, other]
    graph = IGraph("grouped", hardware.get("h200", "cuda"), groups, units, pointers, body)
    values = np.random.default_rng(3).integers(0, 8, total).astype(numpy_of(dtype))
    return graph, values


@pytest.mark.parametrize(
    ("units", "size", "barrier"),
    [(4, 4, "__syncthreads()"), (8, 2, "named_barrier(1 + unit / 2, 64)"), (4, 1, "")],
)
@pytest.mark.parametrize("axis", ["row", "col"])
def test_sets_of_warps(units: int, size: int, barrier: str, axis: str) -> None:
    """Whole numbers sum exactly; the model reports a race or a warp that meets nobody."""
    graph, values = grouped(units, size, axis)
    (got,) = run_igraph(graph, "uir-cuda", values, device="model")
    (wanted,) = interpreter.run(graph, values)
    np.testing.assert_array_equal(got, wanted)
    text = str(lower(graph))
    assert barrier in text
    # a set of one warp has nobody to wait for
    assert (size == 1) == ("slots" not in text)


def test_sums_in_scratch() -> None:
    """A target in memory is the first warp's alone to write, and to read when it is broadcast."""
    graph, values = grouped(4, 2, "row", scratch=True)
    (got,) = run_igraph(graph, "uir-cuda", values, device="model")
    np.testing.assert_array_equal(got, interpreter.run(graph, values)[0])
    assert "scratch_at" in str(lower(graph))


def test_more_sets_than_barriers() -> None:
    """Seventeen sets of one block meet all together, since hardware has barriers for fifteen."""
    graph, values = grouped(32, 2, "row", "int32")
    (got,) = run_igraph(graph, "uir-cuda", values, device="model")
    np.testing.assert_array_equal(got, interpreter.run(graph, values)[0])
    assert "named_barrier" not in str(lower(graph))
