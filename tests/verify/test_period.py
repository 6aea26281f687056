# SPDX-License-Identifier: Apache-2.0
"""What is the same in every group: the growth that is claimed is the growth at every value."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IPointer, ISlice, affine, var
from uir_tvm.verify.period import in_first_group
from uir_tvm.verify.region import region_of

from ..igraph.strategies import affines

PID = var("pid")
S = IPointer("s", "sram", "fp32", 512, "tmp")


@settings(max_examples=200, deadline=None)
@given(affines(("pid", "k")), st.sampled_from([2, 4, 6, 8]))
def test_growth_holds_at_every_value(e, step):
    grows = e.growth("pid", step)
    found = {
        e.evaluate({"pid": p + step, "k": k}) - e.evaluate({"pid": p, "k": k})
        for p in range(50)
        for k in range(7)
    }
    if grows is not None:
        assert found == {grows}


def test_numbers_of_units_and_groups():
    for e, expected in (
        (affine(5), 0),
        (PID * 3, 24),
        (PID % 8, 0),
        (PID // 8, 1),
        ((PID % 8) // 2, 0),
        ((PID // 2) % 4, 0),
        (PID // 16, None),  # two groups to a step
        (PID % 3, None),
    ):
        assert affine(e).growth("pid", 8) == expected


def test_regions_are_alike_where_they_move_together():
    def regions(*offsets):
        return [region_of(ISlice(S, o, (1, 4)), {"pid": 32, "k": 2}) for o in offsets]

    assert in_first_group(regions(PID % 8, 4 + (PID % 8)), 8)
    moved = in_first_group(regions(PID, PID + 3 * var("k")), 8)
    assert moved is not None and [r.extents for r in moved] == [{"pid": 8, "k": 2}] * 2
    assert in_first_group(regions(PID, PID % 8), 8) is None
    ragged = region_of(ISlice(S, 0, (4, 4), rows=(None, 9 - PID)), {"pid": 32})
    assert in_first_group([ragged], 8) is None  # the last groups have fewer rows
