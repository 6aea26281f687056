# SPDX-License-Identifier: Apache-2.0
"""Bits of bytes are taken by vectors of words where all of a row is whole pairs, else by scalar code."""

from __future__ import annotations

import numpy as np
import pytest

from ..on_model import BANG

BODY = """
  x = iPointer(dram, uint8, 256, in)
  y = iPointer(dram, uint8, 256, out)
  t = iPointer(reg, uint8, 512)
  move.dram.reg.uint8 t[0; (8,32); ({stride},1)], x[0; (8,32); (32,1)]
  unary.{name}.uint8 t[0; (8,{cols}); ({stride},1){box}], t[0; (8,{cols}); ({stride},1){box}] [{number}]
  move.reg.dram.uint8 y[0; (8,32); (32,1)], t[0; (8,32); ({stride},1)]
"""


@pytest.mark.parametrize(
    ("stride", "cols", "box", "vectors"),
    [
        (32, 32, "", True),
        (32, 32, "; cols :24", True),
        (32, 32, "; cols 2:18", True),
        (32, 32, "; rows 1:5; cols :24", True),
        (48, 32, "; cols :24", True),
        (32, 32, "; cols :23", False),
        (32, 32, "; cols 1:24", False),
        (32, 31, "", False),
    ],
)
@pytest.mark.parametrize(("name", "number"), [("ands", 15), ("shrs", 4)])
def test_bits_of_pairs(stride: int, cols: int, box: str, vectors: bool, name: str, number: int) -> None:
    given = np.random.default_rng(stride + cols).integers(0, 256, 256, np.uint8)
    graph = BANG.parse(BODY.format(stride=stride, cols=cols, box=box, name=name, number=number))
    kernel = BANG.check(graph, [given])
    assert ("__bang_band_scalar" in kernel.source) == vectors
