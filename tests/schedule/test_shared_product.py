# SPDX-License-Identifier: Apache-2.0
"""Which tile a product gets: no larger than it is, groups for every processor, sums that fit registers."""

from __future__ import annotations

import pytest
from uir_tvm import hardware
from uir_tvm.schedules.contraction.shared_product import HELD, PRODUCT_SPACES, choose, space_for, with_joint

H200 = hardware.get("h200", "cuda")


@pytest.mark.parametrize(
    "outer, rows, cols, tile",
    [
        (1, 4096, 4096, (128, 128)),
        (1, 1024, 1024, (64, 64)),  # 128 x 128 would give 64 groups to 132 processors
        (1, 16, 4096, (16, 32)),
        (256, 100, 64, (128, 64)),
        (1, 8, 8, (16, 32)),
    ],
)
def test_the_tile(outer: int, rows: int, cols: int, tile: tuple[int, int]) -> None:
    found = choose(PRODUCT_SPACES["cuda"], H200, outer, rows, cols)
    assert (found.rows, found.cols) == tile


@pytest.mark.parametrize("width", [4, 8])
def test_a_units_part_fits_its_registers(width: int) -> None:
    found = choose(PRODUCT_SPACES["cuda"], H200, 1, 4096, 4096, width)
    assert HELD * found.rows * found.cols // found.units * width <= H200.reg_bytes


def test_every_tile_can_be_printed() -> None:
    """Parts of whole 16 x 8 products, groups that the hardware has."""
    for tile in PRODUCT_SPACES["cuda"].tiles:
        assert tile.rows % (16 * tile.row_units) == 0 and tile.cols % (8 * tile.col_units) == 0
        assert tile.units <= H200.num_units


def test_a_cpu_shares_no_tiles() -> None:
    assert space_for(hardware.get(None, "cpu")) is None


@pytest.mark.parametrize(
    "model, dtype, along, joint",
    [
        ("h200", "float16", False, True),
        ("h200", "bfloat16", True, True),
        ("h200", "int8", True, True),
        ("h200", "int8", False, False),  # bytes must lie along the contracted dimension
        ("h200", "float32", True, False),  # rounded only where the graph allows it
        ("a100", "float16", True, False),  # has no such instruction
    ],
)
def test_units_that_make_products_together_share_all_columns(
    model: str, dtype: str, along: bool, joint: bool
) -> None:
    """Fours of warps with 16 rows each, where the architecture multiplies them together."""
    space = with_joint(PRODUCT_SPACES["cuda"], hardware.get(model, "cuda"), dtype, along)
    found = choose(space, hardware.get(model, "cuda"), 1, 4096, 4096)
    assert (found.rows, found.cols) == (128, 128)
    assert (found.col_units == 1 and found.rows // found.row_units == 16 and found.units % 4 == 0) == joint
