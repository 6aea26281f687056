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


def test_a_number_repeated_along_a_column_is_a_number_for_its_row() -> None:
    """No copy of it: one function takes the number, another the sum."""
    graph = parse("""
      x = iPointer(dram, fp32, 8, in)
      z = iPointer(dram, fp32, 1, in)
      y = iPointer(dram, fp32, 8, out)
      s = iPointer(reg, fp32, 8)
      r = iPointer(reg, fp32, 1)
      w = iPointer(reg, fp32, 8)
      a = iPointer(reg, fp32, 8)
      b = iPointer(reg, fp32, 8)
      move.dram.reg.fp32 s[0; (1,8); (8,1)], x[0; (1,8); (8,1)]
      move.dram.reg.fp32 r[0; (1,1); (1,1)], z[0; (1,1); (1,1)]
      broadcast.col.unit.fp32 w[0; (8,1); (1,1)], r[0; (1,1); (1,1)]
      binary.mul.fp32 a[0; (8,1); (1,1)], s[0; (8,1); (1,1)], w[0; (8,1); (1,1)]
      unary.adds.fp32 b[0; (8,1); (1,1)], a[0; (8,1); (1,1)] [1.0]
      move.reg.dram.fp32 y[0; (1,8); (8,1)], b[0; (1,8); (8,1)]
    """)
    source = check(graph, [np.arange(8, dtype=np.float32), np.full(1, 3, np.float32)]).source
    assert "NRAM2NRAM" not in source and source.count("__bang_") == 1, source
