# SPDX-License-Identifier: Apache-2.0
"""Boxes of elements: their sizes, and what two of them share."""

from __future__ import annotations

import itertools

from uir_tvm.igraph.iops_meaning import Box, extent, meet

BOXES = [(r0, r1, c0, c1) for r0, r1, c0, c1 in itertools.product((0, 2), (1, 3), (0, 1), (1, 4))]


def elements(box: Box) -> set[tuple[int, int]]:
    return set(itertools.product(range(*box[:2]), range(*box[2:])))


def test_a_box_has_as_many_rows_and_columns_as_it_has_elements() -> None:
    for box in BOXES:
        rows, cols = extent(box)
        assert rows * cols == len(elements(box)) and rows == len(range(*box[:2]))
    assert extent((2, 1, 0, 3)) == (0, 3) and extent((0, 3, 4, 4)) == (3, 0)


def test_two_boxes_share_the_elements_of_both() -> None:
    for a, b in itertools.product(BOXES, BOXES):
        shared = meet(a, b)
        assert elements(shared) == elements(a) & elements(b)
        assert shared[0] <= shared[1] and shared[2] <= shared[3]
