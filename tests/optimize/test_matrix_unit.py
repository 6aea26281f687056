# SPDX-License-Identifier: Apache-2.0
"""Products on a unit that reads dram: the extents of the tiles that it multiplies."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import parse_igraph
from uir_tvm.optimize import matrix_unit
from uir_tvm.verify import verify

from .pairs import HARDWARE
from .toy import applied

DEVICE = HARDWARE.replace("reg_bytes = 4096", 'reg_bytes = 16384\n  figure product_level = "dram"')


@pytest.mark.parametrize(
    ("stride", "rows"), [("(64,1)", 16), ("(1,10)", 32)], ids=["rows lie together", "columns lie together"]
)
def test_a_tile_that_is_turned_on_its_way_is_whole_in_both_directions(stride: str, rows: int) -> None:
    """Rows are multiples of 16; where columns lie together, each column is 32 bytes of int8 as well."""
    graph = parse_igraph(
        f"""{DEVICE}
igraph g on toy parallel (1, 1) {{
  x = iPointer(dram, int8, 640, in)
  w = iPointer(dram, int8, 2048, in)
  y = iPointer(dram, int32, 320, out)
  a = iPointer(reg, int8, 640)
  b = iPointer(reg, int8, 2048)
  c = iPointer(reg, int32, 320)
  move.dram.reg.int8 a[0; (10,64); {stride}], x[0; (10,64); {stride}]
  move.dram.reg.int8 b[0; (64,32); (32,1)], w[0; (64,32); (32,1)]
  contract.int32 c[0; (10,32); (32,1)], a[0; (10,64); {stride}], b[0; (64,32); (32,1)] [accumulate=false]
  move.reg.dram.int32 y[0; (10,32); (32,1)], c[0; (10,32); (32,1)]
}}"""
    )
    verify(graph)
    made = applied(matrix_unit, graph)
    (product,) = (iop for iop, _ in made.walk() if iop.op == "contract")
    left, right = product.sources
    assert (left.shape, right.shape, product.target.shape) == ((rows, 64), (64, 32), (rows, 32))
