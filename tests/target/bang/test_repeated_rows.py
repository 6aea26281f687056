# SPDX-License-Identifier: Apache-2.0
"""A row that all rows of a sum or product have is read where it lies, however the tiles lie."""

from __future__ import annotations

import numpy as np
import pytest

from ..on_model import BANG

POINTERS = """
  x = iPointer(dram, fp32, 256, in)
  m = iPointer(dram, fp32, 32, in)
  y = iPointer(dram, fp32, 256, out)
  t = iPointer(reg, fp32, 512)
  r = iPointer(reg, fp32, 32)
"""
ROW = "r[0; (8,{cols}); (0,1){box}]"


def _body(stride: int, cols: int, box: str, name: str, first: bool) -> str:
    tile = f"t[0; (8,{cols}); ({stride},1){box}]"
    row = ROW.format(cols=cols, box=box)
    operands = f"{row}, {tile}" if first else f"{tile}, {row}"
    whole = f"t[0; (8,32); ({stride},1)]"
    return f"""
  move.dram.reg.fp32 {whole}, x[0; (8,32); (32,1)]
  move.dram.reg.fp32 r[0; (1,32); (32,1)], m[0; (1,32); (32,1)]
  binary.{name}.fp32 {tile}, {operands}
  move.reg.dram.fp32 y[0; (8,32); (32,1)], {whole}
"""


@pytest.mark.parametrize(
    ("stride", "cols", "box", "call"),
    [
        (32, 32, "", "__bang_cycle_"),
        (32, 32, "; rows :5", "__bang_cycle_"),
        (48, 32, "; rows 2:5", "__bang_"),
        (32, 20, "; cols 3:17", "__bang_"),
    ],
    ids=["dense", "rows", "gaps", "columns"],
)
@pytest.mark.parametrize("name", ["add", "mul"])
def test_rows_are_repeated(stride: int, cols: int, box: str, call: str, name: str) -> None:
    rng = np.random.default_rng(stride + cols)
    arrays = [rng.standard_normal(256).astype(np.float32), rng.standard_normal(32).astype(np.float32)]
    graph = BANG.parse(POINTERS + _body(stride, cols, box, name, name == "add"))
    kernel = BANG.check(graph, arrays)
    assert f"{call}{name}(" in kernel.source and "NRAM2NRAM" not in kernel.source
