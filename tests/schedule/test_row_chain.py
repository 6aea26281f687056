# SPDX-License-Identifier: Apache-2.0
"""What recipes of rows count on: the work of a function, and the rows of a tile."""

from __future__ import annotations

import pytest
from tvm import te
from tvm.s_tir import Schedule
from uir_tvm import hardware
from uir_tvm.schedule.blocks import EXPENSIVE_WORK, leaf_blocks, total_work
from uir_tvm.schedule.row_chain import chunk_elements, groups_for, rows_per_tile, tile_elements

from . import functions

CPU = hardware.get("avx512-2core")


def test_work_is_elements_by_operations() -> None:
    """A sum, and an exponential of it, of 60 x 100 elements each."""
    blocks = leaf_blocks(Schedule(functions.elementwise()))
    assert total_work(blocks) == 6000 * (1 + 1) + 6000 * (1 + EXPENSIVE_WORK)


@pytest.mark.parametrize(("terms", "groups"), [(1, 1), (80, CPU.num_groups)])
def test_few_elements_wake_groups_where_each_is_much_work(terms: int, groups: int) -> None:
    x = te.placeholder((10, 100), name="x")

    def product(i: te.Var, j: te.Var) -> te.tensor.TensorSlice:
        value = x[i, j]
        for _ in range(terms):
            value = value * x[i, j]
        return value

    func = te.create_prim_func([x, te.compute((10, 100), product, name="y")])
    assert groups_for(CPU, leaf_blocks(Schedule(func))) == groups


def test_a_number_for_a_row_takes_no_room_in_a_chunk() -> None:
    """A row sum reads one tensor that has columns: a chunk of it alone fills half of the first cache."""
    blocks = leaf_blocks(Schedule(functions.row_sum(rows=60, cols=128)))
    assert chunk_elements(CPU, blocks, 60) == int(CPU.figures["tile_bytes"]) // 4
    assert tile_elements(CPU, blocks) < chunk_elements(CPU, blocks, 60)


@pytest.mark.parametrize("elements", [1, 7, 64, 100, 1000])
@pytest.mark.parametrize(("row", "cols"), [(12, 8), (7, 16), (1, 5), (36, 1)])
def test_rows_of_a_tile_divide_all_rows(elements: int, row: int, cols: int) -> None:
    fitting = [r for r in range(1, row + 1) if row % r == 0 and r * cols <= elements]
    assert rows_per_tile(elements, row, cols) == max(fitting, default=1)
