# SPDX-License-Identifier: Apache-2.0
"""Functions of bools are vector functions of the floats 0 and 1, none of them scalar code."""

from __future__ import annotations

import numpy as np
import pytest

from ..on_model import BANG

BODY = """
  x = iPointer(dram, bool, 333, in)
  y = iPointer(dram, bool, 333, in)
  z = iPointer(dram, bool, 333, out)
  a = iPointer(reg, bool, 333)
  b = iPointer(reg, bool, 333)
  c = iPointer(reg, bool, 333)
  move.dram.reg.bool a[0; (3,111); (111,1)], x[0; (3,111); (111,1)]
  move.dram.reg.bool b[0; (3,111); (111,1)], y[0; (3,111); (111,1)]
  {iop}
  move.reg.dram.bool z[0; (3,111); (111,1)], c[0; (3,111); (111,1)]
"""
TWO = "binary.{}.bool c[0; (3,111); (111,1)], a[0; (3,111); (111,1)], b[0; (3,111); (111,1)]"
ONE = "unary.not.bool c[0; (3,111); (111,1)], a[0; (3,111); (111,1)]"


@pytest.mark.parametrize(
    "iop", [*(TWO.format(name) for name in ("and", "or", "xor")), ONE], ids=lambda iop: iop[:10]
)
def test_they_are_vectors(iop: str) -> None:
    rng = np.random.default_rng(0)
    given = [rng.integers(0, 2, 333).astype(bool) for _ in range(2)]
    kernel = BANG.check(BANG.parse(BODY.format(iop=iop)), given)
    assert "for (" not in kernel.source and "__bang_float2int8_tz" in kernel.source
