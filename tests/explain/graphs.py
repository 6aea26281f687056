# SPDX-License-Identifier: Apache-2.0
"""Kernels whose figures are worked out by hand, on a device whose rates are round numbers."""

from __future__ import annotations

from uir_tvm.igraph import HardwareModel, IGraph, parse_igraph

#: Four groups of two units; a gigabyte, a giga-operation and two giga-operations of contractions per second.
DEVICE = HardwareModel(
    "dev",
    "test",
    4,
    2,
    4096,
    2048,
    32,
    {
        "dram_bytes_per_second": 10**9,
        "sram_bytes_per_second": 4 * 10**9,
        "operations_per_second": 10**9,
        "flops_per_second": 2 * 10**9,
    },
)
#: The same without a figure.
UNKNOWN = HardwareModel("dev", "test", 4, 2, 4096, 2048, 32, {})

#: Rows of 32, eight per unit: x - max(x), exp, over the sum; every byte of x moved once.
SOFTMAX = """
x = iPointer(dram, fp32, 2048, in)
y = iPointer(dram, fp32, 2048, out)
t = iPointer(reg, fp32, 32)
w = iPointer(reg, fp32, 32)
m = iPointer(reg, fp32, 1)
for r in 8 {
  move.dram.reg.fp32 t[0; (1,32); (32,1)], x[256*pid + 32*r; (1,32); (32,1)]
  reduce.max.row.unit.fp32 m[0; (1,1); (1,1)], t[0; (1,32); (32,1)]
  broadcast.row.unit.fp32 w[0; (1,32); (32,1)], m[0; (1,1); (1,1)]
  binary.sub.fp32 t[0; (1,32); (32,1)], t[0; (1,32); (32,1)], w[0; (1,32); (32,1)]
  unary.exp.fp32 t[0; (1,32); (32,1)], t[0; (1,32); (32,1)]
  reduce.add.row.unit.fp32 m[0; (1,1); (1,1)], t[0; (1,32); (32,1)]
  unary.recip.fp32 m[0; (1,1); (1,1)], m[0; (1,1); (1,1)]
  broadcast.row.unit.fp32 w[0; (1,32); (32,1)], m[0; (1,1); (1,1)]
  binary.mul.fp32 t[0; (1,32); (32,1)], t[0; (1,32); (32,1)], w[0; (1,32); (32,1)]
  move.reg.dram.fp32 y[256*pid + 32*r; (1,32); (32,1)], t[0; (1,32); (32,1)]
}
"""

#: (32, 16) x (16, 8): each group stages the whole of b in sram, each of its units half, and owns 8 rows of a.
STAGED = """
a = iPointer(dram, fp32, 512, in)
b = iPointer(dram, fp32, 128, in)
c = iPointer(dram, fp32, 256, out)
s = iPointer(sram, fp32, 128)
ra = iPointer(reg, fp32, 64)
rc = iPointer(reg, fp32, 32)
move.dram.sram.fp32 s[64*(pid%2); (8,8); (8,1)], b[64*(pid%2); (8,8); (8,1)]
move.dram.reg.fp32 ra[0; (4,16); (16,1)], a[64*pid; (4,16); (16,1)]
sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)]
contract.fp32 rc[0; (4,8); (8,1)], ra[0; (4,16); (16,1)], s[0; (16,8); (8,1)]
move.reg.dram.fp32 c[32*pid; (4,8); (8,1)], rc[0; (4,8); (8,1)]
"""

#: Ten rows dealt four to a unit, the third with two, the rest with none: a row of a table for each index.
GATHER = """
table = iPointer(dram, fp32, 800, in)
index = iPointer(dram, int32, 10, in)
y = iPointer(dram, fp32, 80, out)
i = iPointer(reg, int32, 4)
t = iPointer(reg, fp32, 32)
move.dram.reg.int32 i[0; (4,1); (1,1); rows :N], index[4*pid; (4,1); (1,1); rows :N]
gather.fp32 t[0; (4,8); (8,1); rows :N], table[0; (100,8); (8,1)], i[0; (4,1); (1,1); rows :N]
move.reg.dram.fp32 y[32*pid; (4,8); (8,1); rows :N], t[0; (4,8); (8,1); rows :N]
""".replace(":N", ":10 - 4*pid")

#: Two units of each group add up their eight numbers through sram.
GROUP = """
x = iPointer(dram, fp32, 64, in)
y = iPointer(dram, fp32, 4, out)
s = iPointer(sram, fp32, 2)
t = iPointer(reg, fp32, 8)
r = iPointer(reg, fp32, 1)
move.dram.reg.fp32 t[0; (1,8); (8,1)], x[8*pid; (1,8); (8,1)]
reduce.add.row.group.fp32 r[0; (1,1); (1,1)], t[0; (1,8); (8,1)] [buffer=s[0; (2,1); (1,1)], group_size=2]
move.reg.dram.fp32 y[pid/2; (1,1); (1,1); rows :1 - pid%2], r[0; (1,1); (1,1)]
"""


def graph(body: str, parallel: tuple[int, int] = (4, 2), hardware: HardwareModel = DEVICE) -> IGraph:
    """A graph of that body."""
    return parse_igraph(
        f"igraph k on {hardware.name} parallel ({parallel[0]}, {parallel[1]}) {{\n{body}\n}}", hardware
    )
