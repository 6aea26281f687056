# SPDX-License-Identifier: Apache-2.0
"""Products of many rows with codes by place: the matrix unit's, of chunks of groups.

Before, where n_i are the numbers that are made of a byte (`uir_tvm.schedule.by_place`)::

    for i, p, r, g: X_i[p, r, g] = f_i(x[r, ...])
    for i, p, c, g: W_i[p, c, g] = n_i(w[p, c, g]) * s[c, g] + added_i[c, g]
    for i, r, c, p, g: P_i[r, c] += X_i[p, r, g] * W_i[p, c, g]
    for r, c: Y[r, c] = h(sum_i P_i[r, c])

After, in two phases::

    for t in rows:                                            # uir.parallel
      for i, p, g: X_i[p, r, g] = f_i(x[r, ...])              # in global memory, once for all columns

    for t in tiles of rows and columns:                       # uir.parallel
      for gc in chunks of groups:                             # uir.loop
        for c, g: s.local, added.local
        for p:                                                # uir.loop
          for i, c, g: W_i.local[c, g] = n_i * s + added_i
          for i, r, c, g: P_i.local[r, c] += X_i * W_i.local  # uir.contract
      for r, c: Y[r, c] = h(sum_i P_i.local[r, c])
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import attrs
from tvm.s_tir import SBlock, Schedule
from uir_tvm.hardware.machine_model import ASSUMED_CLOCK, ASSUMED_MEMORY
from uir_tvm.igraph import HardwareModel
from uir_tvm.quantized import BY_PLACE, UNPACKED, VALUES, X
from uir_tvm.schedule.annotations import CONTRACT, LOOP, PARALLEL, parallel_value
from uir_tvm.schedule.blocks import BlockInfo, is_open_loop, leaf_blocks, reduction_blocks, reduction_loops
from uir_tvm.schedule.row_chain import (
    attach_producers,
    count_row_loops,
    groups_for,
    join_nests,
    output_blocks,
    refuse_crossing,
)
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedule.tile_facts import product_groups, space_of, units_of

#: Rows and columns of tiles to choose from, and groups of which a place is multiplied at once.
SIDES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Bytes of reg that a tile takes: of a row of a group, of a column of a group, of a sum.
FACTOR_BYTES, VALUE_BYTES, SUM_BYTES = 16, 32, 16
#: Elements that are computed of each for a place, in float32.
FACTOR_STEPS, VALUE_STEPS, SUM_STEPS = 2, 10, 4
#: Bytes that are brought for a place: of a row of a group, of a column of a group.
FACTOR_MOVED, VALUE_MOVED = 8, 2
#: Cycles of a place in which instructions start and wait.
START_CYCLES = 1000
#: What a tile with masks costs of one without, and what part of the units at least does without them.
RAGGED, EVEN = 1.5, 0.6
#: Bytes of reg that a number of x takes where factors are made of it: as it comes, turned, and two factors.
MADE_BYTES = 24


def role_of(stmt: SBlock) -> str:
    """What a block makes for such a product (`uir_tvm.quantized`)."""
    return str(dict(stmt.annotations).get(BY_PLACE, ""))


def many_row_product(sch: Schedule, hw: HardwareModel) -> None:
    """Schedule such a product and its epilogue."""
    roots = output_blocks(sch)
    refuse_crossing(roots)
    *outer, row, column = roots[-1].spatial
    rows = math.prod(outer) * row
    products = [b.rv for b in reduction_blocks(sch) if UNPACKED in dict(b.stmt.annotations)]
    number = next(b.spatial[-1] for b in leaf_blocks(sch) if role_of(b.stmt) == VALUES)
    # tiles follow from it, so that it is none to choose
    most = min(groups_for(hw, leaf_blocks(sch)), product_groups(hw)) * units_of(hw)
    is_open = any(is_open_loop(sch, loop) for root in roots for loop in sch.get_loops(root.rv))
    tile = _tile(hw, (row, column, number), most, is_open)
    units = _Units.of(hw, most, (row, column), tile)
    apart = _make_factors(sch, hw, products, units)
    nest = join_nests(sch, [units.deal(sch, root, rows, tile) for root in roots], roots)
    of_place, of_chunk = _inner_blocks(sch, products, apart)
    others = {b.name for b in leaf_blocks(sch)} - apart - of_place - of_chunk
    attach_producers(sch, nest, among=others)
    places = []
    for block in products:
        place, group = reduction_loops(sch, block)
        own = sch.get_loops(block)[-len(sch.get(block).iter_vars) :]
        reduced = [sch.get(place), sch.get(group)]
        spatial = [each for each in own if not any(sch.get(each).same_as(loop) for loop in reduced)]
        chunk, inner = sch.split(group, [None, tile[2]])
        sch.reorder(chunk, place, *spatial, inner)
        sch.annotate(block, CONTRACT, 1)
        places.append(place)
    if len(places) > 1:
        sch.merge(*places)
    chunk, place = sch.get_loops(products[0])[-5:-3]
    sch.annotate(chunk, LOOP, 1)
    sch.annotate(place, LOOP, 1)
    attach_producers(sch, attrs.evolve(nest, lid=place), among=of_place)
    attach_producers(sch, attrs.evolve(nest, lid=chunk), among=of_chunk)


@attrs.frozen
class _Units:
    """Units of both phases, as many whatever sizes are: a barrier of all of them stands between.

    Attributes
    ----------
    groups, units : int
        And units of each group.
    members : int
        Units that share the rows of the same columns, a tile each in turn.
    """

    groups: int
    units: int
    members: int

    @property
    def count(self) -> int:
        """All of them."""
        return self.groups * self.units

    @staticmethod
    def of(hw: HardwareModel, most: int, sizes: tuple[int, int], tile: tuple[int, int, int]) -> _Units:
        """No more than tiles of a result of so many rows and columns fill."""
        rows, columns = (math.ceil(size / side) for size, side in zip(sizes, tile[:2], strict=True))
        members, count = _shared_out(rows, columns, most)
        units = units_of(hw)
        return _Units(math.ceil(count / units), units, members)

    def mark(self, sch: Schedule, loop: Any, *walked: Any) -> None:
        """Annotate the loop over units, and those in it that each of them walks."""
        sch.annotate(loop, PARALLEL, parallel_value(self.groups, self.units))
        for each in walked:
            sch.annotate(each, LOOP, 1)

    def deal(self, sch: Schedule, root: BlockInfo, rows: int, tile: tuple[int, int, int]) -> tuple[Any, Any]:
        """Tiles of columns are dealt to units, which walk those of rows; the loops over both."""
        count = count_row_loops(sch, root, rows)
        loops = sch.get_loops(root.rv)
        *outer, row = loops[:count]
        column = sch.fuse(*loops[count:]) if len(loops) > count + 1 else loops[count]
        row_tile, row = sch.split(row, [None, tile[0]])
        row_tile, member = sch.split(row_tile, [None, self.members])
        column_tile, column = sch.split(column, [None, tile[1]])
        sch.reorder(column_tile, member, *outer, row_tile, row, column)
        pid, turn = sch.split(sch.fuse(column_tile, member), [self.count, None])
        self.mark(sch, pid, turn, *outer, row_tile)
        return pid, row_tile


def _make_factors(sch: Schedule, hw: HardwareModel, products: Sequence[Any], units: _Units) -> set[str]:
    """A phase of its own that lays out x by place; gives the names of its blocks."""
    read = {region.source.name for block in products for region in sch.get(block).reads}
    factors = [b for b in leaf_blocks(sch) if role_of(b.stmt) == X and set(b.writes) & read]
    places, rows, groups = factors[0].spatial
    room = int(hw.figures.get("tile_bytes", hw.reg_bytes // 2)) // shrink_of(hw)
    part = _divisors(groups, max(1, room // (MADE_BYTES * places)))[-1]
    most = max(1, min(room // (MADE_BYTES * places * part), math.ceil(rows / units.count)))
    nests = []
    for block in factors:
        place, row, group = sch.get_loops(block.rv)
        turn, unit, row = sch.split(row, [None, units.count, most])
        parts, group = sch.split(group, [None, part])
        sch.reorder(unit, turn, parts, place, row, group)
        units.mark(sch, unit, turn, parts)
        nests.append((unit, parts))
    nest = join_nests(sch, nests, factors)
    made = {b.name for b in factors}
    feeding = feeding_of(leaf_blocks(sch), made)
    attach_producers(sch, nest, among=feeding - made)
    return feeding


def _tile(hw: HardwareModel, sizes: tuple[int, int, int], units: int, is_open: bool) -> tuple[int, int, int]:
    """Rows, columns and groups of a tile that fits memory, by which the busiest unit is done first.

    Parameters
    ----------
    is_open : bool
        Whether there may be fewer rows: where several tiles have them, all that is done for one has a mask.
    """
    room = hw.reg_bytes * 7 // 8 // shrink_of(hw)
    depth, column_step = _depth(hw), space_of(hw).matrix_columns
    lanes, clock = hw.vector_bytes / 4, float(hw.figures.get("clock_hz", ASSUMED_CLOCK))
    memory = float(hw.figures.get("dram_bytes_per_second", ASSUMED_MEMORY)) / clock / units

    def held(rows: int, columns: int, groups: int) -> int:
        return (FACTOR_BYTES * rows + VALUE_BYTES * columns) * groups + SUM_BYTES * rows * columns

    def work(tile: tuple[int, int, int]) -> tuple[float, tuple[int, int, int]]:
        rows, columns, groups = tile
        deep, wide = math.ceil(groups / depth) * depth, math.ceil(columns / column_step) * column_step
        tall, broad = math.ceil(sizes[0] / rows), math.ceil(sizes[1] / columns)
        members, count = _shared_out(tall, broad, units)
        steps = math.ceil(broad * members / count) * math.ceil(tall / members) * math.ceil(sizes[2] / groups)
        elements = FACTOR_STEPS * rows * deep + VALUE_STEPS * wide * deep + SUM_STEPS * rows * wide
        moved = (FACTOR_MOVED * rows + VALUE_MOVED * columns) * groups
        cycles = steps * (START_CYCLES + elements / lanes + moved / memory)
        masks = sizes[1] % columns or broad * members % count or (is_open and tall > 1)
        return cycles * (RAGGED if masks else 1), tile

    tall, broad = (
        sorted({*(min(side, size) for side in SIDES), *_divisors(size, max(SIDES))}) for size in sizes[:2]
    )
    tiles = [(r, c, g) for r in tall for c in broad for g in chunks_of(hw, sizes[2])]
    fitting = [tile for tile in tiles if held(*tile) <= room]
    return min(fitting, key=work) if fitting else min(tiles, key=lambda tile: held(*tile))


def _depth(hw: HardwareModel) -> int:
    """Groups that the matrix unit takes at once, in float32."""
    return max(1, space_of(hw).matrix_bytes // 4)


def chunks_of(hw: HardwareModel, groups: int) -> list[int]:
    """Numbers of groups that a tile may take at once.

    Where rows of a tile begin at blocks of memory, whole blocks of bytes; else such as leave no rest, or
    as the matrix unit takes them at once. Bytes are unpacked in pairs, so that even numbers have even chunks.
    """
    block = int(hw.figures.get("row_align_bytes", 1))
    if block > 1:
        return [min(groups, size) for size in range(block, max(SIDES) + 1, block)]
    whole = _divisors(groups, max(SIDES))
    if groups % 2:
        return whole
    deep = range(_depth(hw), min(groups, max(SIDES)), _depth(hw))
    return sorted({size for size in (*whole, *deep) if size % 2 == 0})


def _shared_out(rows: int, columns: int, most: int) -> tuple[int, int]:
    """Units that share the rows of the same columns, and how many take part in all: those with as much to do.

    Parameters
    ----------
    rows, columns : int
        Tiles on each side of the result.
    """
    members = max(1, min(most // columns, rows))
    tiles = columns * members
    even = _divisors(tiles, most)[-1]
    return members, even if even >= EVEN * min(tiles, most) else min(tiles, most)


def _divisors(number: int, most: int) -> list[int]:
    """Those of a number that are at most so large, least first."""
    return [d for d in range(1, min(number, most) + 1) if number % d == 0]


def feeding_of(blocks: Sequence[BlockInfo], found: Collection[str]) -> set[str]:
    """Blocks, by name, and those that make what they read."""
    fed = set(found)
    for block in reversed(blocks):
        needed = {buffer for b in blocks if b.name in fed for buffer in b.reads}
        if set(block.writes) & needed:
            fed.add(block.name)
    return fed


def _inner_blocks(sch: Schedule, products: Sequence[Any], apart: set[str]) -> tuple[set[str], set[str]]:
    """Blocks whose results the products take, by name: those of a place, and those of a chunk of groups."""
    blocks = leaf_blocks(sch)
    names = {str(sch.get(block).name_hint) for block in products}
    of_place = {b.name for b in blocks if role_of(b.stmt) == VALUES}
    return of_place, feeding_of(blocks, names) - names - of_place - apart
