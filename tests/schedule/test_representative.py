# SPDX-License-Identifier: Apache-2.0
"""Recipes see numbers where dimensions are open."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.s_tir import Schedule
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.schedule.blocks import is_open_loop, leaf_blocks, loop_extent
from uir_tvm.schedule.representative import USUAL, extent_of, is_open, representative, usual_elements

from tests.open_functions import OPEN


@pytest.mark.parametrize(
    ("size", "number"),
    [
        (Size("n", 0, 1 << 31), USUAL),
        (Size("n", 0, 100), 100),
        (Size("n", 0, 100, 8), 96),
        (Size("n", 5000, 6000), 5000),
        (Size("n", 0, 0), 1),
    ],
)
def test_representatives(size: Size, number: int) -> None:
    assert representative(size) == number


def test_extents() -> None:
    func = with_sizes(OPEN["rows"].func(), {"n": Size("n", 0, 300)})
    n = func.params[0].shape[0]
    assert extent_of(n, func) == 300
    assert extent_of((n + 3) // 4, func) == 75
    assert extent_of(7, func) == 7
    assert extent_of(tirx.min(tirx.Var("i", "int64"), n), func) == -1
    assert is_open(n)
    assert not is_open(tirx.IntImm("int64", 3))
    assert usual_elements(func.params[0]) == USUAL * 96


def test_blocks() -> None:
    sch = Schedule(with_sizes(OPEN["rows"].func(), {"n": Size("n", 0, 300)}))
    (block,) = leaf_blocks(sch)
    assert block.extents == (300, 96)
    row, column = sch.get_loops(block.rv)
    assert (loop_extent(sch, row), loop_extent(sch, column)) == (300, 96)
    assert is_open_loop(sch, row)
    assert not is_open_loop(sch, column)
