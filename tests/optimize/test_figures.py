# SPDX-License-Identifier: Apache-2.0
"""The figures that a pass is judged by, counted by hand."""

from __future__ import annotations

from uir_tvm.optimize.figures import figures, fits

from .toy import toy


def test_iops_bytes_syncs_and_peak() -> None:
    """Four units, three iterations: valid elements only, every time they are moved."""
    graph = toy(
        """
  t = iPointer(reg, fp32, 32)
  s = iPointer(sram, fp32, 64)
  for k in 3 {
    move.dram.reg.fp32 t[0; (1,16); (16,1); cols :4*k + 4], x[64*pid + 16*k; (1,16); (16,1); cols :4*k + 4]
    move.reg.sram.fp32 s[16*(pid % 2); (1,16); (16,1); cols :4*k + 4], t[0; (1,16); (16,1); cols :4*k + 4]
    sync.sram s[0; (1,64); (64,1)], s[0; (1,64); (64,1)]
  }
  fill.fp32 t[0; (1,32); (32,1)] [1.0]
  move.reg.dram.fp32 y[64*pid; (1,32); (32,1)], t[0; (1,32); (32,1)]
  move.reg.dram.fp32 y[64*pid + 32; (1,32); (32,1)], t[0; (1,32); (32,1)]
""",
        (2, 2),
    )
    found = figures(graph)
    assert found.iops == 3 * 3 + 3 and found.syncs == 3
    assert found.bytes == 4 * (4 * (4 + 8 + 12) + 4 * 64)
    assert (found.reg, found.sram) == (128, 256) and found.peak == 384 and fits(graph)
    assert found.difference(found) == "the same figures"
