# SPDX-License-Identifier: Apache-2.0
"""Graphs whose figures are known: rows of a matrix through reg, as tiles of units and iterations."""

from __future__ import annotations

from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, IGraph, parse_igraph
from uir_tvm.igraph.text import print_hardware


def tiled(
    *,
    units: int = 4,
    trips: int = 4,
    rows: int = 4,
    cols: int = 64,
    stages: int = 1,
    steps: int = 1,
    last: int | None = None,
    strided: bool = False,
    hw: HardwareModel | None = None,
) -> IGraph:
    """``b = exp(... exp(a))``: every unit loads, computes ``steps`` times and stores ``trips`` tiles.

    Parameters
    ----------
    last : int, optional
        Rows of the whole matrix, where the last tiles have fewer.
    strided : bool
        The matrix is twice as wide: every row of a tile is a piece of its own.
    """
    hw = hardware.get("910b2", "ascend") if hw is None else hw
    tile, pitch = rows * cols, cols * (2 if strided else 1)
    whole = units * trips * rows * pitch
    at = f"{rows * pitch}*k + {trips * rows * pitch}*pid"
    guard = "" if last is None else f"; rows :-{rows}*k - {trips * rows}*pid + {last}"
    dram, reg = f"({rows},{cols}); ({pitch},1){guard}", f"({rows},{cols}); ({cols},1){guard}"
    loop = f" [pipeline={stages}]" if stages > 1 else ""
    body = "\n".join(
        f"    unary.exp.fp32 u[0; {reg}], {'t' if n == 0 else 'u'}[0; {reg}]" for n in range(steps)
    )
    members = int(hw.num_units) if units % int(hw.num_units) == 0 else 1
    text = f"""{print_hardware(hw)}
igraph tiled on "{hw.name}" parallel ({units // members}, {members}) {{
  a = iPointer(dram, fp32, {whole}, in)
  b = iPointer(dram, fp32, {whole}, out)
  t = iPointer(reg, fp32, {tile})
  u = iPointer(reg, fp32, {tile})
  for k in {trips}{loop} {{
    move.dram.reg.fp32 t[0; {reg}], a[{at}; {dram}]
{body}
    move.reg.dram.fp32 b[{at}; {dram}], u[0; {reg}]
  }}
}}
"""
    return parse_igraph(text)
