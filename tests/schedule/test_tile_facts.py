# SPDX-License-Identifier: Apache-2.0
"""Even tiles: as many for every unit, whole transfers, no masks where that costs nothing."""

from __future__ import annotations

import math

import pytest
from uir_tvm import hardware
from uir_tvm.schedule.tile_facts import MASK_COST, busy_units, even_tile

HW = hardware.get("910b2", "ascend")
LINE = HW.figures["line_bytes"] // 4
UNITS = busy_units(HW)


def longest(elements: int, tile: int) -> int:
    return math.ceil(math.ceil(elements / tile) / UNITS) * tile


@pytest.mark.parametrize(
    "elements", [1, 31, 1000, 50_000, 777_000, 1 << 20, 1 << 24, 12_345_678, 3 * 4096 * 4096]
)
@pytest.mark.parametrize("limit", [512, 5120, 7680])
def test_tiles_are_even_and_fit(elements: int, limit: int) -> None:
    """The unit that has most has little more than its share, but for what lines round up."""
    tile = even_tile(HW, elements, limit, 4)
    assert 1 <= tile <= min(limit, elements)
    assert tile % LINE == 0 or tile == elements
    share = math.ceil(elements / UNITS)
    assert (
        longest(elements, tile) <= max(share * MASK_COST + math.ceil(share / tile) * LINE, LINE)
        or tile == elements
    )


def test_a_tile_that_divides_is_taken_where_it_costs_little() -> None:
    assert (1 << 24) % even_tile(HW, 1 << 24, 5120, 4) == 0
    assert 777_000 % even_tile(HW, 777_000, 5120, 4) != 0, "no multiple of a line divides it"


def test_few_elements_keep_whole_transfers() -> None:
    """Half a megabyte on 48 units: one transfer each, no four small ones."""
    elements = 48 * 4096
    assert even_tile(HW, elements, 7680, 4) == 4096
