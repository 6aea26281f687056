# SPDX-License-Identifier: Apache-2.0
"""The figures by which kernels are tiled are those of memories and vectors: powers of two, whole words."""

from __future__ import annotations

import pytest
from uir_tvm import hardware
from uir_tvm.schedule.tile_facts import TILE_SPACES, TileSpace, busy_units, even_tile, spread_rows
from uir_tvm.target.cuda.tiles import ATTENTION as CUDA_ATTENTION

KINDS = ("cpu", "cuda", "ascend", "bang")


def is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


@pytest.fixture(params=KINDS)
def space(request: pytest.FixtureRequest) -> TileSpace:
    return TILE_SPACES[request.param]


def test_tiles_are_powers_of_two(space: TileSpace) -> None:
    assert is_power(space.flat_tile) and is_power(space.least_columns) and is_power(space.value_bytes)
    assert space.least_tile == 0 or is_power(space.least_tile)
    assert space.row_values == 0 or is_power(space.row_values)


def test_units_share_rows_in_sets_that_double(space: TileSpace) -> None:
    assert space.sets[0] == 1 and list(space.sets) == sorted(set(space.sets))
    assert all(map(is_power, space.sets))


def test_a_transposed_tile_has_whole_lines_of_every_width(space: TileSpace) -> None:
    assert set(space.transposed) == {1, 2, 4, 8}
    for width, sides in space.transposed.items():
        assert all(is_power(side) and side * width >= 16 for side in sides)


def test_what_functions_work_in_is_whole_words(space: TileSpace) -> None:
    """Scratch of functions holds fp32 values."""
    assert space.work_bytes % 4 == 0


@pytest.mark.parametrize(
    ("name", "kind"), [("avx512-2core", "cpu"), ("910b2", "ascend"), ("mlu370-x8", "bang")]
)
def test_a_long_run_is_cut_into_as_many_tiles_for_a_unit_as_its_kind_wants(name: str, kind: str) -> None:
    """Of a prime number of elements, which no tile divides; more only where one may be no larger."""
    hw, elements = hardware.get(name, kind), 10_000_019
    wanted = busy_units(hw) * TILE_SPACES[kind].tiles_per_unit
    tile = even_tile(hw, elements, elements, 4)
    assert wanted - busy_units(hw) < -(-elements // tile) <= wanted
    assert even_tile(hw, elements, 4096, 4) <= 4096


def test_rows_of_attention_are_those_of_a_tensor_core() -> None:
    assert CUDA_ATTENTION.rows == CUDA_ATTENTION.least_rows == 16


@pytest.mark.parametrize(
    ("r", "row", "rows", "worth", "least", "wanted"),
    [
        (16, 1024, 1024, 0.85, 8, 8),  # 64 tiles are two turns of 48 cores, of 16 rows; 128 are three of 8
        (10, 1000, 1000, 0.85, 5, 8),
        (16, 2048, 2048, 0.85, 8, 16),  # six turns of 8 rows are three of 16
        (16, 1024, 1024, 0.75, 8, 16),  # what is left is not little enough
        (16, 1024, 1024, 0.85, 16, 16),
    ],
)
def test_fewer_rows_where_the_busiest_unit_has_less_to_do(
    r: int, row: int, rows: int, worth: float, least: int, wanted: int
) -> None:
    assert spread_rows(r, row, rows, 48, worth, least) == wanted
