# SPDX-License-Identifier: Apache-2.0
"""Memories of the interpreter: what lies outside of one, and what its elements hold, element by element."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from uir_tvm.igraph import IPointer, ISlice, var
from uir_tvm.igraph.bound import BoundSlice
from uir_tvm.igraph.memory import outside
from uir_tvm.igraph.run_memories import addresses

SIZE = 12


@pytest.mark.parametrize("strides", list(itertools.product((-3, -1, 0, 1, 4), repeat=2)))
def test_the_element_that_is_named_lies_outside(strides: tuple[int, int]) -> None:
    """A witness where there is one, of every direction of rows and columns."""
    down, right = strides
    for start, rows, cols in itertools.product(range(-2, SIZE + 2), (1, 2, 4), (1, 3)):
        address = start + down * np.arange(rows)[:, None] + right * np.arange(cols)
        found = outside((start, (rows, cols), strides), SIZE)
        if ((address >= 0) & (address < SIZE)).all():
            assert found is None
        else:
            assert found is not None
            row, col, at = found
            assert address[row, col] == at and not 0 <= at < SIZE
            # a line that does not move is told by its first element
            assert (row == 0 or down) and (col == 0 or right)


def test_what_has_no_element_lies_nowhere() -> None:
    assert outside((SIZE + 5, (0, 3), (1, 1)), SIZE) is None
    assert outside((SIZE + 5, (3, 0), (1, 1)), SIZE) is None


def test_addresses_are_those_of_the_valid_box() -> None:
    pointer = IPointer("p", "reg", "fp32", 64)
    piece = ISlice(pointer, var("pid") * 4 + 1, (3, 5), (7, 2), rows=(1, 3), cols=(None, var("pid") + 1))
    for pid in (0, 2, 3):
        wanted = [4 * pid + 1 + 7 * row + 2 * col for row in (1, 2) for col in range(pid + 1)]
        assert addresses(BoundSlice(piece), {"pid": pid}).tolist() == wanted
