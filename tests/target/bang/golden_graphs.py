# SPDX-License-Identifier: Apache-2.0
"""Graphs of a few iOps whose BANG C is kept as goldens: name -> groups, units, pointers and body."""

from __future__ import annotations

GRAPHS = {
    "elementwise with a ragged tail": (
        4,
        1,
        """
        x = iPointer(dram, fp32, 1000, in)
        y = iPointer(dram, fp32, 1000, out)
        t = iPointer(reg, fp32, 256)
      move.dram.reg.fp32 t[0; (1,256); (256,1)], x[256*pid; (1,256); (256,1); cols :1000 - 256*pid] [pad=0.0]
        binary.mul.fp32 t[0; (1,256); (256,1)], t[0; (1,256); (256,1)], t[0; (1,256); (256,1)]
        unary.adds.fp32 t[0; (1,256); (256,1)], t[0; (1,256); (256,1)] [1.0]
        move.reg.dram.fp32 y[256*pid; (1,256); (256,1); cols :1000 - 256*pid], t[0; (1,256); (256,1)]
        """,
    ),
    "product with weights in rows": (
        1,
        1,
        """
        x = iPointer(dram, fp16, 1024, in)
        w = iPointer(dram, fp16, 4096, in)
        y = iPointer(dram, fp32, 1024, out)
        a = iPointer(reg, fp16, 1024)
        b = iPointer(reg, fp16, 4096)
        c = iPointer(reg, fp32, 1024)
        move.dram.reg.fp16 a[0; (16,64); (64,1)], x[0; (16,64); (64,1)]
        move.dram.reg.fp16 b[0; (64,64); (64,1)], w[0; (64,64); (64,1)]
        contract.fp32 c[0; (16,64); (64,1)], a[0; (16,64); (64,1)], b[0; (64,64); (1,64)]
        move.reg.dram.fp32 y[0; (16,64); (64,1)], c[0; (16,64); (64,1)]
        """,
    ),
    "compare and select": (
        2,
        1,
        """
        x = iPointer(dram, fp32, 512, in)
        y = iPointer(dram, fp32, 512, in)
        z = iPointer(dram, fp32, 512, out)
        a = iPointer(reg, fp32, 256)
        b = iPointer(reg, fp32, 256)
        m = iPointer(reg, bool, 256)
        c = iPointer(reg, fp32, 256)
        move.dram.reg.fp32 a[0; (1,256); (256,1)], x[256*pid; (1,256); (256,1)]
        move.dram.reg.fp32 b[0; (1,256); (256,1)], y[256*pid; (1,256); (256,1)]
        compare.lt.fp32 m[0; (1,256); (256,1)], a[0; (1,256); (256,1)], b[0; (1,256); (256,1)]
    select.fp32 c[0; (1,256); (256,1)], m[0; (1,256); (256,1)], a[0; (1,256); (256,1)], b[0; (1,256); (256,1)]
        move.reg.dram.fp32 z[256*pid; (1,256); (256,1)], c[0; (1,256); (256,1)]
        """,
    ),
    "conversions with rounding": (
        2,
        1,
        """
        x = iPointer(dram, fp32, 512, in)
        y = iPointer(dram, int32, 512, out)
        z = iPointer(dram, fp16, 512, out)
        a = iPointer(reg, fp32, 256)
        i = iPointer(reg, int32, 256)
        h = iPointer(reg, fp16, 256)
        move.dram.reg.fp32 a[0; (1,256); (256,1)], x[256*pid; (1,256); (256,1)]
        cast.fp32.int32 i[0; (1,256); (256,1)], a[0; (1,256); (256,1)] [round=floor]
        cast.fp32.fp16 h[0; (1,256); (256,1)], a[0; (1,256); (256,1)]
        move.reg.dram.int32 y[256*pid; (1,256); (256,1)], i[0; (1,256); (256,1)]
        move.reg.dram.fp16 z[256*pid; (1,256); (256,1)], h[0; (1,256); (256,1)]
        """,
    ),
    "cores of clusters that share nothing": (
        2,
        4,
        """
        x = iPointer(dram, fp32, 2048, in)
        y = iPointer(dram, fp32, 2048, out)
        t = iPointer(reg, fp32, 256)
        move.dram.reg.fp32 t[0; (1,256); (256,1)], x[256*pid; (1,256); (256,1)]
        unary.muls.fp32 t[0; (1,256); (256,1)], t[0; (1,256); (256,1)] [2.0]
        move.reg.dram.fp32 y[256*pid; (1,256); (256,1)], t[0; (1,256); (256,1)]
        """,
    ),
}

#: A sum over sets of cores of a cluster and its way back to them: the size of a set -> the same.
_SETS = """
  x = iPointer(dram, fp32, 2048, in)
  y = iPointer(dram, fp32, 2048, out)
  t = iPointer(reg, fp32, 256)
  q = iPointer(reg, fp32, 256)
  s = iPointer(reg, fp32, 8)
  up = iPointer(sram, fp32, 32)
  down = iPointer(sram, fp32, 16)
  move.dram.reg.fp32 t[0; (8,32); (32,1)], x[256*pid; (8,32); (32,1)]
  reduce.add.row.group.fp32 s[0; (8,1); (1,1)], t[0; (8,32); (32,1)] [buffer=up[{up}; {all}; (8,1)], {of}]
  broadcast.row.group.fp32 q[0; (8,32); (32,1)], s[0; (8,1); (1,1)] [buffer=down[{down}; (8,1); (1,1)], {of}]
  binary.sub.fp32 t[0; (8,32); (32,1)], t[0; (8,32); (32,1)], q[0; (8,32); (32,1)]
  move.reg.dram.fp32 y[256*pid; (8,32); (32,1)], t[0; (8,32); (32,1)]
"""
for _size, _up, _down in ((2, "16*((pid % 4) / 2)", "8*((pid % 4) / 2)"), (4, "0", "0")):
    _text = _SETS.format(up=_up, down=_down, all=f"({_size},8)", of=f"group_size={_size}")
    GRAPHS[f"sets of {_size} cores"] = (2, 4, _text)
