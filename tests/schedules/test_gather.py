# SPDX-License-Identifier: Apache-2.0
"""Elements that are fetched one by one take longer than rows, so that fewer of them are shared by threads."""

from __future__ import annotations

import pytest
from tvm import te, tirx
from uir_tvm.hardware import get
from uir_tvm.schedule import apply_default

from tests.extracted import extracted


def _gathered(rows: int, by_element: bool) -> tirx.PrimFunc:
    """Places of single elements in each row, or of whole rows."""
    x = te.placeholder((rows, 1000), "float32", "x")
    at = te.placeholder((rows, 64) if by_element else (rows,), "int64", "at")
    made = te.compute((rows, 64), lambda i, j: x[i, at[i, j]] if by_element else x[at[i], j], "out")
    return te.create_prim_func([x, at, made])


@pytest.mark.parametrize(
    ("rows", "by_element", "units"), [(32, True, 1), (64, True, 2), (64, False, 1), (2048, False, 2)]
)
def test_threads(rows: int, by_element: bool, units: int) -> None:
    """4,096 elements take two threads, whole rows of as many do not."""
    hardware = get("avx512-2core")
    graph = extracted(apply_default(_gathered(rows, by_element), hardware), hardware)
    assert graph.num_parallel == units
