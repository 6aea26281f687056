# SPDX-License-Identifier: Apache-2.0
"""What registers hold of memory lasts until something writes that memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from uir_tvm.igraph import IPointer, ISlice, var
from uir_tvm.igraph.affine import Affine, affine
from uir_tvm.optimize.held_memory import _apart

X = IPointer("x", "sram", "fp32", 256)


def piece(offset: Affine) -> ISlice:
    """Two rows of 8 elements, 16 apart: 24 elements from first to last."""
    return ISlice(X, offset, (2, 8), (16, 1))


@pytest.mark.parametrize(
    ("at", "apart"), [(0, True), (16, True), (17, False), (63, False), (64, True), (90, True)]
)
def test_a_write_before_or_behind_a_slice_leaves_it(at: int, apart: bool) -> None:
    write: Any = SimpleNamespace(slice=piece(affine(at)))
    assert _apart(write, piece(affine(40))) is apart


def test_what_differs_by_unit_may_meet_on_another() -> None:
    write: Any = SimpleNamespace(slice=piece(var("pid") * 100 + 100))
    assert not _apart(write, piece(affine(0)))
