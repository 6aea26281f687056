# SPDX-License-Identifier: Apache-2.0
"""Regions as tilings: the digits are those of the elements, and what is no tiling is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from uir_tvm.igraph import IPointer, ISlice, var
from uir_tvm.igraph.affine import Affine
from uir_tvm.verify.region import Region, region_of
from uir_tvm.verify.tiling import Tiling, proves, tiling_of

PID, K = var("pid"), var("k")
OUT = IPointer("o", "dram", "fp32", 999, "out")


def region(
    offset: Affine,
    extents: Mapping[str, int],
    shape: tuple[int, int] = (4, 8),
    stride: tuple[int, int] = (8, 1),
    rows: tuple[Affine | None, Affine | None] = (None, None),
) -> Region:
    return region_of(ISlice(OUT, offset, shape, stride, rows=rows), extents)


TILINGS = {
    "tiles": (region(PID * 32, {"pid": 4}), Tiling(0, ((1, 128),))),
    "from the last": (region(96 - PID * 32, {"pid": 4}), Tiling(0, ((1, 128),))),
    "columns": (region(PID * 8 + 5, {"pid": 4}, stride=(32, 1)), Tiling(5, ((1, 128),))),
    "with gaps": (region(PID * 40, {"pid": 4}), Tiling(0, ((1, 32), (40, 4)))),
    "quotient, remainder and loop": (
        region(PID // 3 * 48 + PID % 3 * 16 + K * 8, {"pid": 6, "k": 2}, (1, 8)),
        Tiling(0, ((1, 96),)),
    ),
    "a remainder of a remainder": (region(PID % 8 % 4 * 32, {"pid": 4}), Tiling(0, ((1, 128),))),
    "a tail": (region(PID * 32, {"pid": 4}, rows=(None, 14 - PID * 4)), Tiling(0, ((1, 112),))),
    "one unit": (region(PID * 32, {"pid": 1}), Tiling(0, ((1, 32),))),
}


@pytest.mark.parametrize("name", TILINGS)
def test_the_digits_of_a_region(name: str) -> None:
    given, tiling = TILINGS[name]
    assert tiling_of(given) == tiling


REFUSED = {
    "columns that overlap by one": region(PID, {"pid": 4}, (1, 2)),
    "rows that overlap by one": region(PID * 24, {"pid": 4}),
    "a wider remainder of a remainder": region(PID % 4 % 8 * 32, {"pid": 8}),
    "a remainder that does not divide": region(PID % 6 % 4 * 32, {"pid": 12}),
    "a quotient that does not divide": region(PID % 12 // 5 * 32, {"pid": 12}),
    "all units the same": region(K * 32, {"pid": 4, "k": 4}),
    "rows that begin later": region(PID * 32, {"pid": 4}, rows=(PID, None)),
    "a tail that leaves gaps": region(PID * 40, {"pid": 4}, rows=(None, 14 - PID * 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_tiling_is_refused(name: str) -> None:
    assert tiling_of(REFUSED[name]) is None


def test_runs_beside_each_other_cover_what_no_two_of_them_share() -> None:
    runs = [Tiling(0, ((1, 4),)), Tiling(4, ((1, 8),)), Tiling(12, ())]
    assert proves(runs, 13, complete=True)
    assert not proves(runs, 14, complete=True) and proves(runs, 14, complete=False)
    assert not proves([*runs, Tiling(3, ())], 13, complete=False)
