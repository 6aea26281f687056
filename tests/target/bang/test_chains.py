# SPDX-License-Identifier: Apache-2.0
"""Elementwise iOps that are printed as one program compute what each of them does."""

from __future__ import annotations

import numpy as np

from .kernels import check, parse


def test_a_column_of_elements_that_lie_apart() -> None:
    """Columns are runs of elements only where those of all operands follow each other."""
    graph = parse("""
      x = iPointer(dram, fp32, 16, in)
      y = iPointer(dram, fp32, 8, out)
      s = iPointer(reg, fp32, 16)
      a = iPointer(reg, fp32, 8)
      b = iPointer(reg, fp32, 8)
      move.dram.reg.fp32 s[0; (1,16); (16,1)], x[0; (1,16); (16,1)]
      unary.muls.fp32 a[0; (8,1); (1,1)], s[0; (8,1); (2,1)] [2.0]
      unary.adds.fp32 b[0; (8,1); (1,1)], a[0; (8,1); (1,1)] [1.0]
      move.reg.dram.fp32 y[0; (8,1); (1,1)], b[0; (8,1); (1,1)]
    """)
    check(graph, [np.arange(16, dtype=np.float32)])
