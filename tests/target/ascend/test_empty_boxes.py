# SPDX-License-Identifier: Apache-2.0
"""Copies of nothing are no instructions: where a box may be empty they stand under a condition, else not."""

from __future__ import annotations

import numpy as np
import pytest

from .kernels import PASSES, check, parse

#: Tiles of 8 rows over `rows` rows: the boxes of the last ones end before they begin.
TILES = """
x = iPointer(dram, fp32, {size}, in)
y = iPointer(dram, fp32, {size}, out)
t = iPointer(reg, fp32, {held})
u = iPointer(reg, fp32, {held})
move.dram.reg.fp32 t{inside}, x{outside}
{work}
move.reg.dram.fp32 y{outside}, u{inside}
"""
#: What happens between load and store.
WORK = {
    "function": "unary.exp.fp32 u{inside}, t{inside}",
    "copy": "move.reg.reg.fp32 u{inside}, t{inside}",
}


def source_of(rows: int, cols: int, work: str, passes: tuple[str, ...]) -> str:
    pitch, box = -(-cols // 8) * 8, f"rows :{rows}-8*pid"
    inside = f"[0; (8,{cols}); ({pitch},1); {box}]"
    outside = f"[{8 * cols}*pid; (8,{cols}); ({cols},1); {box}]"
    line = WORK[work].format(inside=inside)
    body = TILES.format(size=rows * cols, held=8 * pitch, inside=inside, outside=outside, work=line)
    values = np.linspace(-2, 2, rows * cols, dtype=np.float32)
    return check(parse(body, groups=4), [values], passes, rtol=1e-6).source


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("cols", [32, 33])
@pytest.mark.parametrize("passes", [("insert_sync", "allocate"), PASSES], ids=["as written", "all passes"])
def test_tiles_that_may_be_empty(work: str, cols: int, passes: tuple[str, ...]) -> None:
    """11 rows on four cores: the third and the fourth copy nothing."""
    source = source_of(11, cols, work, passes)
    copies = [n for n, line in enumerate(source.splitlines()) if "DataCopy" in line]
    lines = source.splitlines()
    assert copies and all(lines[n - 1].strip() in ("if (rows > 0)", "if (cols > 0)") for n in copies), source


@pytest.mark.parametrize("cols", [32, 33])
def test_tiles_that_are_not_empty_are_copied_without_asking(cols: int) -> None:
    """25 to 32 rows on four cores: the last tile has one at least, which is proved."""
    assert "if (" not in source_of(25, cols, "function", PASSES)
