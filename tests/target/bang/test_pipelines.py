# SPDX-License-Identifier: Apache-2.0
"""Pipelines whose operands and results go by way of SRAM, on the host model beside the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from .kernels import check, parse

_PASSES = ("insert_sync", "multibuffer", "insert_sync", "allocate")

_FIVE = """
  x = iPointer(dram, {dtype}, {size}, in)
  w = iPointer(dram, {dtype}, {size}, in)
  y = iPointer(dram, {dtype}, {size}, out)
  s = iPointer(sram, {dtype}, 512)
  t = iPointer(reg, {dtype}, 512)
  r = iPointer(reg, {dtype}, 128)
  u = iPointer(reg, {dtype}, 128)
  v = iPointer(sram, {dtype}, 512)
  for k in {extent} [pipeline=2] {{
    move.dram.sram.{dtype} s[128*(pid%4); (1,128); (128,1)], x[{at}; (1,128); (128,1)]
    move.dram.reg.{dtype} r[0; (1,128); (128,1)], w[{at}; (1,128); (128,1)]
    move.sram.reg.{dtype} t[0; (4,128); (128,1)], s[0; (4,128); (128,1)]
    reduce.max.col.unit.{dtype} u[0; (1,128); (128,1)], t[0; (4,128); (128,1)]
    binary.sub.{dtype} u[0; (1,128); (128,1)], u[0; (1,128); (128,1)], r[0; (1,128); (128,1)]
    move.reg.sram.{dtype} v[128*(pid%4); (1,128); (128,1)], u[0; (1,128); (128,1)]
    move.sram.dram.{dtype} y[{at}; (1,128); (128,1)], v[128*(pid%4); (1,128); (128,1)]
  }}
"""


def _text(extent: int, dtype: str) -> str:
    at = f"{512 * extent}*(pid/4) + 512*k + 128*(pid%4)"
    return _FIVE.format(extent=extent, dtype=dtype, size=1024 * extent, at=at)


@pytest.mark.parametrize("extent, dtype", [(1, "fp32"), (2, "fp32"), (3, "fp16"), (4, "fp32"), (11, "fp16")])
def test_any_number_of_iterations(extent: int, dtype: str) -> None:
    """Fewer than the stages, and more: no finding, and the interpreter's values."""
    size = 1024 * extent
    rng = np.random.default_rng(extent)
    width = {"fp32": np.float32, "fp16": np.float16}[dtype]
    arrays = [rng.standard_normal(size).astype(width) for _ in range(2)]
    kernel = check(parse(_text(extent, dtype), 2, 4), arrays, _PASSES)
    loops = kernel.source.split("  for (int32_t k")[1:] if extent > 1 else []
    assert len(loops) == (extent > 4)
    for loop in loops:
        body = loop.split("\n  }\n")[0]
        assert body.count("__sync_cluster();") == 1
        assert all(way in body for way in ("GDRAM2SRAM", "SRAM2NRAM", "NRAM2SRAM", "SRAM2GDRAM"))
