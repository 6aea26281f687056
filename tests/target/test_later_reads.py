# SPDX-License-Identifier: Apache-2.0
"""What lies outside of a tile's valid box is kept where a later read sees it, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.device.run_text import run
from uir_tvm.igraph import interpreter
from uir_tvm.verify import verify

from .on_model import BANG

#: Sums of the first rows of two tiles, fewer in each turn, over a column that is full of sevens.
ROWS = """size n = [4, 7]
x = iPointer(dram, fp32, 4096, in)
y = iPointer(dram, fp32, 48, inout)
a = iPointer(reg, fp32, 1024)
s = iPointer(reg, fp32, 16)
fill.fp32 s[0; (1,8); (8,1)] [7.0]
fill.fp32 s[8; (1,8); (8,1)] [7.0]
for k in 3 {{
  move.dram.reg.fp32 a[512*(k % 2); (8,64); (64,1)], x[512*k; (8,64); (64,1)]
  reduce.add.row.unit.fp32 s[8*(k % 2); (8,1); (1,1); rows :n - k], {tile}
  move.reg.dram.fp32 y[16*k; {shape}], s[8*(k % 2); {shape}]
}}
"""
#: What is stored of the column -> whether sums may be written to all of it.
READS = {
    "(8,1); (1,1); rows :n - k": True,
    "(1,8); (8,1); cols :n - k": True,
    "(1,8); (8,1); cols :n - k - 2": True,
    "(8,1); (1,1); rows :n - k + 1": False,
    "(1,8); (8,1); cols :n": False,
    "(1,8); (8,1)": False,
}


@pytest.mark.parametrize("read", READS)
def test_a_tile_is_written_whole_where_ends_only_move_back(read: str) -> None:
    """Rows beyond the box keep their sevens where the store takes them; else the whole tile is added up."""
    tile = "a[512*(k % 2); (8,64); (64,1); rows :n - k]"
    graph = BANG.parse(ROWS.format(shape=read, tile=tile))
    verify(graph)
    kernel = BANG.printed(graph)
    assert ("__bang_bor" not in kernel.source) == READS[read], kernel.source
    x = np.random.default_rng(3).integers(-9, 9, 4096).astype("float32")
    for n in (4, 5, 7):
        ran = run(kernel, [x, np.zeros(48, "float32")], sizes={"n": n}, max_seconds=60).check()
        (wanted,) = interpreter.run(graph, x, np.zeros(48, "float32"), sizes={"n": n})
        np.testing.assert_array_equal(np.asarray(ran.outputs["y"]), np.asarray(wanted).reshape(-1))
