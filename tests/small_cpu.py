# SPDX-License-Identifier: Apache-2.0
"""A CPU whose last cache holds next to nothing, so that small operators are ones that no cache holds."""

from __future__ import annotations

from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel

CPU = hardware.get("avx2-4core")
SMALL = HardwareModel(
    "small",
    "cpu",
    4,
    1,
    CPU.reg_bytes,
    0,
    CPU.vector_bytes,
    dict(CPU.figures.items()) | {"l3_bytes": 1 << 14},
)
