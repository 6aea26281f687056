# SPDX-License-Identifier: Apache-2.0
"""Index rows are made by vector functions: right for every length, once in a kernel that asks for several."""

from __future__ import annotations

import re

import numpy as np
import pytest

from .kernels import PASSES, check, parse

IOTA = """
y = iPointer(dram, {dtype}, {size}, out)
t = iPointer(reg, {dtype}, {held})
iota.{dtype} t[0; ({rows},{cols}); ({pitch},1)]{attrs}
move.reg.dram.{dtype} y[0; ({rows},{cols}); ({cols},1)], t[0; ({rows},{cols}); ({pitch},1)]
"""


@pytest.mark.parametrize("cols", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 64, 65, 100, 1000])
@pytest.mark.parametrize("attrs", ["", " [base=-5, col_step=3]", " [col_step=-7]"])
def test_every_length(cols: int, attrs: str) -> None:
    """A block under masks, then twice as many at a time: no element too few, and none behind the row."""
    pitch = -(-cols // 8) * 8
    graph = parse(
        IOTA.format(dtype="int32", size=cols, held=pitch, rows=1, cols=cols, pitch=pitch, attrs=attrs)
    )
    source = check(graph, []).source
    assert "CreateVecIndex" not in source
    assert source.count("Adds(") == (cols > 1) + (cols > 2) + (cols > 4) + max(0, (cols - 1).bit_length() - 3)


@pytest.mark.parametrize("dtype", ["int32", "int16", "fp32", "int8"])
def test_rows_and_columns(dtype: str) -> None:
    attrs = " [base=3, row_step=11, col_step=2]"
    graph = parse(IOTA.format(dtype=dtype, size=5 * 9, held=5 * 32, rows=5, cols=9, pitch=32, attrs=attrs))
    check(graph, [])


#: Every second element of rows that lie apart, in a loop: tables of offsets for gathering.
PICKED = """
x = iPointer(dram, fp32, {length}, in)
y = iPointer(dram, fp32, {stored}, out)
t = iPointer(reg, fp32, 64)
s = iPointer(reg, fp32, 64)
for i in {count} {{
    move.dram.reg.fp32 t[0; (1,32); (32,1)], x[64*i; (1,32); (64,2)]
    transpose.fp32 s[0; (8,4); (8,1)], t[0; (4,8); (8,1)]
    move.reg.dram.fp32 y[32*i; (8,4); (4,1)], s[0; (8,4); (8,1)]
}}
"""


def picked(count: int) -> str:
    graph = parse(PICKED.format(length=64 * count, stored=32 * count, count=count))
    return check(graph, [np.arange(64 * count, dtype=np.float32)], PASSES).source


def test_a_loop_has_its_index_row_from_before() -> None:
    """The row is made at the kernel's head; in the loop one function makes a table of it."""
    source = picked(3)
    head, loop = re.split(r"for \(int32_t i\w* = 0", source, maxsplit=1)
    assert "// index row 0 .. " in head and "mask" in head
    assert "mask" not in loop and "Duplicate<int32_t>" not in loop
    assert re.search(r"Muls\(work\w*, index, \d+, \d+\);", loop)


def test_a_row_that_has_no_room_is_made_where_it_is_asked_for() -> None:
    """Tiles leave no place for it: rows are made in the loop, and the kernel stays right."""
    graph = parse(
        """
x = iPointer(dram, fp32, 92000, in)
y = iPointer(dram, fp32, 92000, out)
z = iPointer(dram, int32, 2000, out)
t = iPointer(reg, fp32, 46000)
s = iPointer(reg, int32, 1000)
for i in 2 {
    move.dram.reg.fp32 t[0; (1,46000); (46000,1)], x[46000*i; (1,46000); (46000,1)]
    iota.int32 s[0; (1,1000); (1000,1)] [base=8*i]
    move.reg.dram.fp32 y[46000*i; (1,46000); (46000,1)], t[0; (1,46000); (46000,1)]
    move.reg.dram.int32 z[1000*i; (1,1000); (1000,1)], s[0; (1,1000); (1000,1)]
}
"""
    )
    source = check(graph, [np.arange(92000, dtype=np.float32)]).source
    assert "index row" not in source and "mask" in source
