# SPDX-License-Identifier: Apache-2.0
"""A bound that is always all of a side or nothing is one condition, around functions on whole tiles."""

from __future__ import annotations

import numpy as np
import pytest

from ..on_model import BANG

POINTERS = """
  x = iPointer(dram, fp32, 256, in)
  y = iPointer(dram, fp32, 256, out)
  t = iPointer(reg, fp32, 256)
"""


def _body(box: str) -> str:
    tile = f"t[0; (8,32); (32,1); {box}]"
    return f"""
  move.dram.reg.fp32 t[0; (8,32); (32,1)], x[0; (8,32); (32,1)]
  for k in 4 {{
    binary.mul.fp32 {tile}, {tile}, {tile}
  }}
  move.reg.dram.fp32 y[0; (8,32); (32,1)], t[0; (8,32); (32,1)]
"""


@pytest.mark.parametrize(
    ("box", "condition", "by_rows"),
    [
        ("cols :96 - 64*k", "if (-2 * k + 3 > 0)", False),
        ("rows :16 - 8*k", "if (-k + 2 > 0)", False),
        # 16 of 32 columns are there in one round
        ("cols :80 - 64*k", "", True),
        # what begins behind the first is no whole side
        ("cols 32*k:96 - 64*k", "", True),
        ("rows :8 - 8*k; cols :96 - 64*k", "if (-k + 1 > 0 && -2 * k + 3 > 0)", False),
    ],
    ids=["columns", "rows", "half", "begin", "both"],
)
def test_all_or_nothing_is_one_condition(box: str, condition: str, by_rows: bool) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, 256).astype(np.float32)
    source = BANG.check(BANG.parse(POINTERS + _body(box)), [x]).source
    assert ("for (int32_t r" in source) == by_rows
    assert ("__bang_mul(t, t, t, 256)" in source or "__bang_square(t, t, 256)" in source) != by_rows
    assert condition in source
