# SPDX-License-Identifier: Apache-2.0
"""Products with a weight of few bits whose codes lie by place (`uir_tvm.kernel_graph.place_major`).

Before, for each part of a group::

    for p, c, g: W[p, c, g] = s[c, g] * code(w, p, c, g) + o[c, g]
    for r, c, p, g: P[r, c] += X[p, r, g] * W[p, c, g]
    for r, c: Y[r, c] = f(P[r, c])

After, with tiles of rows and columns::

    for t in tiles:                                       # uir.parallel
      for p:                                              # uir.loop
        for c, g: W.local = s * code + o
        for r, c, g: P.local[r, c] += X.local * W.local   # uir.contract
      for r, c: Y[r, c] = f(P.local)

Few rows do without the matrix unit: each group has a sum of its own, S.local[r, c, g] += X.local * W.local,
and P.local[r, c] is made of them behind the loop.
"""

from __future__ import annotations

import math

import tvm
from tvm.s_tir import SBlockRealize, Schedule
from tvm_ffi.structural import structural_map
from uir_tvm.igraph import HardwareModel
from uir_tvm.quantized import BY_PLACE, UNPACKED
from uir_tvm.schedule.annotations import CONTRACT, LOOP
from uir_tvm.schedule.blocks import BlockInfo, collect, leaf_blocks, reduction_blocks, reduction_loops
from uir_tvm.schedule.decisions import Decisions
from uir_tvm.schedule.row_chain import attach_producers, decide_groups, map_chain
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedule.tile_facts import product_groups, units_of

#: Rows up to which the vector unit is faster than the matrix unit, whose factors are laid out first.
FEW_ROWS = 8
#: Rows of a tile of the matrix unit.
ROWS = 64
#: Bytes of reg that an element of a place takes: codes, values, products and sums in float32.
ELEMENT_BYTES = 32


def is_place_major(sch: Schedule) -> bool:
    """Whether what the function reduces is a weight that it unpacks by places."""
    return any(_codes(b) for b in leaf_blocks(sch))


def one_token(func: tvm.tirx.PrimFunc) -> dict[tvm.tirx.Var, int]:
    """The one variable that such a product's rows have, where they are few when it is 1: a token each."""
    blocks = [realize.block for realize in collect(func.body, SBlockRealize)]
    shapes = [block.writes[0].source.shape for block in blocks if UNPACKED in dict(block.annotations)]
    rows = next((shape[0] for shape in shapes if len(shape) == 2), None)  # the others are weights
    if rows is None:
        return {}
    variables = list({str(var.name): var for var in collect(rows, tvm.ir.Var)}.values())
    if len(variables) != 1:
        return {}
    one = tvm.tirx.IntImm(str(variables[0].ty.dtype), 1)
    least = tvm.sym.Analyzer().simplify(structural_map(rows, (tvm.ir.Var, lambda _var: one)))
    return {variables[0]: 1} if isinstance(least, tvm.tirx.IntImm) and int(least) <= FEW_ROWS else {}


def place_major_product(sch: Schedule, hw: HardwareModel, root: BlockInfo, decisions: Decisions) -> None:
    """Schedule such a product and its epilogue, whose last block is ``root``."""
    *outer, row, column = root.spatial
    rows = math.prod(outer) * row
    products = [b.rv for b in reduction_blocks(sch) if UNPACKED in dict(b.stmt.annotations)]
    number = next(b.spatial[-1] for b in leaf_blocks(sch) if _codes(b))
    few = rows <= FEW_ROWS
    if few:
        products = [sch.rfactor(reduction_loops(sch, block)[-1], factor_axis=2) for block in products]
    tile_rows = rows if few else min(rows, max(1, ROWS // shrink_of(hw)))
    groups = decide_groups(sch, hw, leaf_blocks(sch), decisions, most=None if few else product_groups(hw))
    columns = _columns(hw, column, number, groups * units_of(hw), tile_rows if few else 1)
    nest = map_chain(sch, hw, rows, (tile_rows, columns), num_groups=groups, split_columns=True)
    attach_producers(sch, nest)
    for block in products:
        place, *inner = reduction_loops(sch, block)
        own = sch.get_loops(block)[-len(sch.get(block).iter_vars) :]
        reduced = [sch.get(loop) for loop in (place, *inner)]
        spatial = [loop for loop in own if not any(sch.get(loop).same_as(each) for each in reduced)]
        sch.reorder(place, *spatial, *inner)
        sch.annotate(place, LOOP, 1)
        for producer in sch.get_producers(block):
            if dict(sch.get(producer).annotations).get(BY_PLACE):
                sch.compute_at(producer, place, preserve_unit_loops=True)
        if not few:
            sch.annotate(block, CONTRACT, 1)


def _columns(hw: HardwareModel, column: int, groups: int, units: int, rows: int) -> int:
    """Columns of a tile: a unit's share, in as many tiles as its memory asks for; a divisor if near."""
    room = int(hw.figures.get("tile_bytes", hw.reg_bytes // 2)) // shrink_of(hw)
    most = max(1, room // (ELEMENT_BYTES * groups * max(1, rows)))
    share = math.ceil(column / units)
    tile = math.ceil(share / math.ceil(share / most))
    near = [n for n in range(tile, tile // 2, -1) if column % n == 0]
    return near[0] if near else tile


def _codes(block: BlockInfo) -> bool:
    return bool(dict(block.stmt.annotations).get(BY_PLACE))
