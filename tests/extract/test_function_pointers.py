# SPDX-License-Identifier: Apache-2.0
"""The part of a dimension that a staged buffer keeps."""

from __future__ import annotations

import pytest
from uir_tvm.extract.function_pointers import _join
from uir_tvm.igraph.affine import Affine, affine, var

Span = tuple[Affine, int, int]
PID = var("pid")


@pytest.mark.parametrize(
    ("spans", "kept"),
    [
        ([(PID * 4, 0, 1), (PID * 4, 2, 3)], (PID * 4, 4)),
        ([(PID * 4, -1, 1)], (PID * 4 - 1, 3)),
        # one access that is not affine may be anywhere
        ([(PID * 4, 0, 1), None], (affine(0), 16)),
        ([None], (affine(0), 16)),
        ([(PID * 4, 0, 1), (PID * 2, 0, 1)], (affine(0), 16)),
        # no further than the dimension
        ([(affine(3), -5, 20)], (affine(0), 16)),
        ([(PID, 0, 16)], (affine(0), 16)),
        ([(PID, 0, 15)], (PID, 16)),
    ],
)
def test_the_hull_of_what_starts_alike(spans: list[Span | None], kept: tuple[Affine, int]) -> None:
    assert _join(spans, 16) == kept
