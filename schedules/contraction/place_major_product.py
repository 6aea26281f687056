# SPDX-License-Identifier: Apache-2.0
"""Products with a weight of few bits whose codes lie by place (`uir_tvm.kernel_graph.place_major`).

Many rows are the matrix unit's (`uir_tvm.schedules.contraction.many_row_product`). Few rows do without it:
each group has a sum of its own (`uir_tvm.schedules.contraction.group_sums`)::

    for t in tiles:                                       # uir.parallel
      for p:                                              # uir.loop
        for c, g: N.local = number
        for r, c, g: S.local[r, c, g] += X.local * N.local
      for r, c, g: P.local[r, c] += s * S.local + ...
      for r, c: Y[r, c] = f(P.local[r, c])

Where X of all groups leaves no room for tiles, they take chunks of groups one after the other, of which X is
made again for every tile: all but the last line are in a loop over these.
"""

from __future__ import annotations

import math

import attrs
import tvm
from tvm.s_tir import SBlockRealize, Schedule
from tvm_ffi.structural import structural_map
from uir_tvm.igraph import HardwareModel
from uir_tvm.quantized import PACKING, UNPACKED, VALUES, X
from uir_tvm.schedule.annotations import LOOP
from uir_tvm.schedule.blocks import (
    BlockInfo,
    collect,
    leaf_blocks,
    prim_func,
    reduction_blocks,
    reduction_loops,
)
from uir_tvm.schedule.decisions import Decisions
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.row_chain import Nest, attach_producers, decide_groups, map_chain, output_blocks
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedule.tile_facts import units_of
from uir_tvm.schedules.contraction.group_sums import with_group_sums
from uir_tvm.schedules.contraction.many_row_product import (
    chunks_of,
    feeding_of,
    many_row_product,
    role_of,
)

#: Rows up to which the vector unit is faster than the matrix unit, whose factors are laid out first.
FEW_ROWS = 8
#: Bytes of reg that an element of a place takes: codes, values, products and sums in float32.
ELEMENT_BYTES = 26
#: And for each further one of few rows.
ROW_BYTES = 8
#: Elements that take as long as the starts of a tile's instructions; by how much more a tile's end costs.
START_ELEMENTS, RAGGED = 1024, 1.05
#: Instructions that a place takes for a byte, and more of them for each row; those of a number of x, which is
#: made again for every chunk of groups, and those at a chunk's end for each sum.
BYTE_STEPS, ROW_STEPS, X_STEPS, END_STEPS = 2.5, 4, 6, 6
#: Fewest groups of a chunk: instructions work on rows of so many elements.
LEAST_CHUNK = 32
#: Bytes of reg that a number of x takes while it is made: as it comes, by place, and as two factors.
X_BYTES = 12


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


def place_major_product(sch: Schedule, hw: HardwareModel, decisions: Decisions) -> Schedule:
    """Schedule such a product and its epilogue; of few rows a rewritten function."""
    products = [b for b in reduction_blocks(sch) if PACKING in dict(b.stmt.annotations)]
    if all(b.spatial[0] > FEW_ROWS for b in products):
        prepare(sch)
        many_row_product(sch, hw)
        return sch
    sch = decisions.restart(with_group_sums(prim_func(sch)))
    prepare(sch)
    *outer, row, column = output_blocks(sch)[-1].spatial
    rows = math.prod(outer) * row
    products = [b.rv for b in reduction_blocks(sch) if UNPACKED in dict(b.stmt.annotations)]
    number = next(b.spatial[-1] for b in leaf_blocks(sch) if _codes(b))
    groups = decide_groups(sch, hw, leaf_blocks(sch), decisions)
    shared = _of_all_columns(sch)
    held = max((b.size for b in leaf_blocks(sch) if b.name in shared and role_of(b.stmt) == X), default=0)
    columns, chunk = _tile(hw, (rows, column, number), groups * units_of(hw), held)
    nest = map_chain(sch, hw, rows, (rows, columns), num_groups=groups, split_columns=True)
    if chunk == number:
        attach_producers(sch, nest, shared)
    else:
        _attach_in_chunks(sch, nest, shared, chunk)
    for block in products:
        place, *inner = reduction_loops(sch, block)
        own = sch.get_loops(block)[-len(sch.get(block).iter_vars) :]
        reduced = [sch.get(loop) for loop in (place, *inner)]
        spatial = [loop for loop in own if not any(sch.get(loop).same_as(each) for each in reduced)]
        sch.reorder(place, *spatial, *inner)
        sch.annotate(place, LOOP, 1)
        for producer in sch.get_producers(block):
            if role_of(sch.get(producer)) == VALUES:
                sch.compute_at(producer, place, preserve_unit_loops=True)
    if rows > 1:
        # tiles are columns and groups, of one row after the other
        for info in reduction_blocks(sch):
            if not role_of(info.stmt) and UNPACKED not in dict(info.stmt.annotations):
                sch.annotate(sch.get_loops(info.rv)[-len(info.extents)], LOOP, 1)
    return sch


def _attach_in_chunks(sch: Schedule, nest: Nest, shared: set[str], chunk: int) -> None:
    """Move what a tile needs under its loop, what a chunk of groups needs under a loop over these."""
    reductions = reduction_blocks(sch)
    unpacked = {buffer for b in reductions if UNPACKED in dict(b.stmt.annotations) for buffer in b.writes}
    total = next(b for b in reductions if set(b.reads) & unpacked)
    blocks = leaf_blocks(sch)
    once = {b.name for b in blocks if b.name in shared and role_of(b.stmt) != X}
    inner = feeding_of(blocks, {total.name}) - {total.name} - once
    attach_producers(sch, nest, among={b.name for b in blocks} - inner - once)
    (group,) = reduction_loops(sch, total.rv)
    chunks, group = sch.split(group, [None, chunk])
    own = sch.get_loops(total.rv)[-len(total.extents) - 1 :]
    spatial = [
        loop for loop in own if not any(sch.get(loop).same_as(sch.get(each)) for each in (chunks, group))
    ]
    sch.reorder(chunks, *spatial, group)
    sch.annotate(chunks, LOOP, 1)
    attach_producers(sch, attrs.evolve(nest, lid=chunks), among=inner)
    attach_producers(sch, nest, once, among=once)


def _of_all_columns(sch: Schedule) -> set[str]:
    """Blocks that make what all columns are multiplied by."""
    blocks = leaf_blocks(sch)
    found = {b.name for b in blocks if role_of(b.stmt) == X}
    for block in reversed(blocks):
        needed = {buffer for b in blocks if b.name in found for buffer in b.reads}
        if set(block.writes) & needed:
            found.add(block.name)
    return found


def _tile(hw: HardwareModel, sizes: tuple[int, int, int], units: int, held: int) -> tuple[int, int]:
    """Columns and groups of a tile that memory has room for: those by which the busiest unit is done first.

    Parameters
    ----------
    sizes : tuple of int
        Rows, columns, groups.
    held : int
        Numbers of x.
    """
    rows, column, groups = sizes
    room = int(hw.figures.get("tile_bytes", hw.reg_bytes // 2))
    shrink, each = shrink_of(hw), ELEMENT_BYTES + ROW_BYTES * (rows - 1)
    steps, places = BYTE_STEPS + ROW_STEPS * rows, held // (2 * rows * groups)

    def tile(chunk: int, reserved: int) -> tuple[float, int, int]:
        most = max(1, max(0, room - reserved) // shrink // (each * chunk))

        def work(columns: int) -> tuple[float, int]:
            rounds = math.ceil(math.ceil(column / columns) / units)
            # a tile that is not whole is masked
            return rounds * (columns + START_ELEMENTS / chunk) * (
                1 if column % columns == 0 else RAGGED
            ), -columns

        columns = min(range(1, min(most, column) + 1), key=work)
        rounds = math.ceil(math.ceil(column / columns) / units)
        cost = places * steps * chunk * work(columns)[0]
        if chunk < groups:
            cost += rounds * (END_STEPS * rows * columns * chunk + X_STEPS * held * chunk / groups)
        return cost * math.ceil(groups / chunk), columns, chunk

    chunks = [chunk for chunk in chunks_of(hw, groups) if LEAST_CHUNK <= chunk < groups]
    tiles = [tile(chunk, X_BYTES * held * chunk // groups) for chunk in chunks]
    # while factors are made of it, x is there too
    if not tiles or max(4 * held + each * groups, 6 * held) <= room:
        tiles.append(tile(groups, 4 * held))
    _, columns, chunk = min(tiles)
    return columns, chunk


def _codes(block: BlockInfo) -> bool:
    return role_of(block.stmt) == VALUES
