# SPDX-License-Identifier: Apache-2.0
"""Transposes, gathers and scatters: between registers, scratch, sram and dram, at indices of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph import make
from uir_tvm.igraph.dtypes import numpy_of

from .run_tile import Piece, run


def numbers(rows: int, cols: int, dtype: str = "fp32") -> np.ndarray:
    """Distinct values, as far as the dtype has them."""
    return (np.arange(rows * cols) % 120).astype(numpy_of(dtype)).reshape(rows, cols)


@pytest.mark.parametrize(
    ("source", "target"), [("reg", "reg"), ("sram", "reg"), ("reg", "sram"), (None, "reg"), ("reg", None)]
)
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int8", "fp64"])
def test_transpose_between_levels(source: str | None, target: str | None, dtype: str) -> None:
    """A tile of odd sides within a box; what lies outside of the target's box is not written."""
    s = Piece(numbers(9, 37, dtype), rows=(1, 8), cols=(2, 36), level=source)
    t = Piece(numbers(37, 9, dtype)[:, ::-1].copy(), rows=(2, 36), cols=(1, 8), level=target)
    got, wanted, _ = run(t, [s], make.transpose, keep=target is None)
    np.testing.assert_array_equal(got, wanted)


def test_transpose_that_costs_nothing() -> None:
    """Where the target's layout is the source's with rows called columns, every lane has what it needs."""
    layouts = {"s0": [8, 4, 1, 2], "t": [4, 8, 2, 1, 1]}
    got, wanted, text = run(Piece(numbers(16, 8)), [Piece(numbers(8, 16))], make.transpose, layouts=layouts)
    np.testing.assert_array_equal(got, wanted)
    paragraph = text.split("// transpose")[1].split("// move")[0]
    assert "shuffle" not in paragraph and "tile" not in paragraph


INDEX = np.array([[5], [0], [-1], [6], [7], [2], [2**31 - 1], [-(2**31)], [1], [6]])


@pytest.mark.parametrize("table", [None, "sram", "reg"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_gather_rows(table: str | None, index: str) -> None:
    """Rows outside of the table's valid rows are the pad and read nothing; the model would report a read."""
    s = Piece(numbers(7, 40), rows=(1, 7), level=table)
    i = Piece(INDEX.astype(numpy_of(index)))
    t = Piece(np.zeros((10, 40), np.float32))
    got, wanted, text = run(t, [s, i], lambda t, s, i: make.gather(t, s, i, pad=-2.5))
    np.testing.assert_array_equal(got, wanted)
    assert "load_vec<float, 4>" in text


@pytest.mark.parametrize("dtype", ["fp16", "int8", "bool", "fp8e4m3"])
@pytest.mark.parametrize("index", ["int8", "uint8", "uint64"])
def test_gather_of_any_index(dtype: str, index: str) -> None:
    """Unsigned indices beyond 2**63 are no negative ones."""
    keys = np.array([[0], [2], [3], [1]]).astype(numpy_of(index))
    if index == "uint64":
        keys[3] = 2**64 - 1
    t = Piece(np.zeros((4, 12), numpy_of(dtype)), cols=(1, 11))
    got, wanted, _ = run(t, [Piece(numbers(3, 12, dtype), level=None), Piece(keys)], make.gather)
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def test_gather_elements() -> None:
    """One index for each element, from a table of one column."""
    keys = np.random.default_rng(0).integers(-3, 60, (5, 21)).astype(np.int32)
    s = Piece(numbers(50, 1), level=None)
    got, wanted, _ = run(Piece(np.zeros((5, 21), np.float32)), [s, Piece(keys)], make.gather)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("layout", [[1, 32, 1, 1], [8, 4, 1, 2], [32, 1, 1, 4], [4, 8, 2, 1, 1]])
def test_scatter_rows_of_which_the_last_holds(layout: list[int]) -> None:
    """Equal indices far apart and side by side; indices outside of the table; a box on both sides."""
    keys = np.random.default_rng(1).integers(-2, 9, (24, 1)).astype(np.int32)
    s = Piece(numbers(24, 8), rows=(1, 23))
    t = Piece(np.full((8, 8), -1, np.float32), rows=(0, 7), cols=(0, 6), level=None)
    got, wanted, _ = run(t, [s, Piece(keys)], make.scatter, layouts={"s0": layout}, keep=True)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("shape", [(6, 40), (70, 1), (1, 9)])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int64"])
def test_scatter_elements_of_which_the_last_holds(shape: tuple[int, int], dtype: str) -> None:
    """Many elements for few places, so that lanes of one store and later stores meet."""
    keys = np.random.default_rng(2).integers(-1, 13, shape)
    t = Piece(np.zeros((11, 1), numpy_of(dtype)), level=None)
    got, wanted, _ = run(t, [Piece(numbers(*shape, dtype)), Piece(keys)], make.scatter, keep=True)
    np.testing.assert_array_equal(got, wanted)
