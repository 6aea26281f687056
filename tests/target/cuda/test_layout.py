# SPDX-License-Identifier: Apache-2.0
"""Lane layouts: every element of a slice has exactly its owners, and no two elements share a register."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import tvm_ffi

LANES = 32
SHAPES = [(1, 1), (1, 384), (1, 50), (37, 1), (4, 128), (16, 16), (3, 24), (170, 7), (64, 64)]
LAYOUTS = [
    (lanes_r, LANES // lanes_r, vec_r, vec_c, by_columns)
    for lanes_r in (1, 2, 8, 32)
    for vec_r, vec_c in ((1, 1), (1, 4), (2, 1), (1, 16))
    for by_columns in (False, True)
]


def owners(layout: tuple, shape: tuple[int, int]) -> list[list[tuple[int, int]]]:
    """Of every element, row by row: pairs (lane, register)."""
    found = tvm_ffi.get_global_func("uir.codegen.cuda.owners")(*layout, *shape)
    return [[(int(o[k]), int(o[k + 1])) for k in range(0, len(o), 2)] for o in found]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elements_have_their_owners(shape: tuple[int, int]) -> None:
    """A side of length 1 is in all lanes along it, any other element in one; registers are not shared."""
    rows, cols = shape
    for layout in LAYOUTS:
        lanes_r, lanes_c = layout[:2]
        copies = (lanes_r if rows == 1 else 1) * (lanes_c if cols == 1 else 1)
        found = owners(layout, shape)
        assert len(found) == rows * cols
        assert all(len(element) == copies for element in found), (layout, shape)
        taken = Counter(itertools.chain.from_iterable(found))
        assert max(taken.values()) == 1, (layout, shape)
        assert all(0 <= lane < LANES for lane, _ in taken)


def test_registers_of_a_lane_are_dense() -> None:
    """A slice that its blocks divide leaves no register of any lane without an element."""
    for layout in LAYOUTS:
        lanes_r, lanes_c, vec_r, vec_c, _ = layout
        shape = (2 * lanes_r * vec_r, 3 * lanes_c * vec_c)
        taken = set(itertools.chain.from_iterable(owners(layout, shape)))
        assert taken == set(itertools.product(range(LANES), range(6 * vec_r * vec_c)))


def test_accumulator_fragment() -> None:
    """lanes (8, 4), vec (1, 2) is where mma.m16n8 has its accumulators (PTX ISA, "Matrix Fragments")."""
    found = owners((8, 4, 1, 2, False), (16, 8))
    for i, j in itertools.product(range(16), range(8)):
        lane = (i % 8) * 4 + j // 2
        register = 2 * (i // 8) + j % 2
        assert found[i * 8 + j] == [(lane, register)]


def test_vectors_are_neighbours() -> None:
    """vec_c columns of a row lie in as many registers of one lane, as a wide move needs them."""
    found = owners((4, 8, 1, 4, False), (8, 64))
    for i, j in itertools.product(range(8), range(0, 64, 4)):
        (lane, first) = found[i * 64 + j][0]
        assert [found[i * 64 + j + k][0] for k in range(4)] == [(lane, first + k) for k in range(4)]
