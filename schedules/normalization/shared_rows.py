# SPDX-License-Identifier: Apache-2.0
"""Rows shared by the units of a group: each holds a part of the row, reductions go through sram.

Before, with k units and parts of p columns::

    for i in M:
      for j in N: S[i] += X[i, j]
    for i, j: Y[i, j] = f(X[i, j], S[i])

After::

    for pid in M * k:                        # a set of k units for each row
      for j in p: R += X[i, (pid % k)*p + j]     # the unit's part, up to N
      S = reduce.add.row.group R;  broadcast.row.group S
      for j in p: Y[i, (pid % k)*p + j] = f(X[i, (pid % k)*p + j], S)

Where a part does not fit the unit it is walked in chunks, and what a full row would need on chip is
computed again for every reduction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import GROUP, LOOP
from uir_tvm.schedule.blocks import (
    REDUCTION,
    BlockInfo,
    dtype_bytes,
    is_open_loop,
    leaf_blocks,
    loop_extent,
    own_loops,
    param_names,
    reduction_loops,
)
from uir_tvm.schedule.decisions import OWN, Decisions, near
from uir_tvm.schedule.group import group_share
from uir_tvm.schedule.representative import is_open, usual_elements
from uir_tvm.schedule.row_chain import attach_producers, groups_for, map_chain
from uir_tvm.schedule.tile_facts import space_of, units_of
from uir_tvm.schedules.normalization.partial import Bound, Partials, prepare_partials

#: Parts are a multiple of this many elements, a line of 4-byte ones, where they do not divide the row.
PART_ELEMENTS = 128
#: Parts of a multiple of this many elements, 16 bytes of the narrowest, begin where wide moves may begin.
ALIGNED_ELEMENTS = 8
#: Fewest elements of another part that are worth trying.
LEAST_PART = 64
#: Bytes of sram that the partial results of reductions may take beside staged rows.
RESERVED = 2048


@attrs.frozen
class Sharing:
    """How rows are shared: a chunk of ``size * part`` columns at a time, ``part`` of them to each unit."""

    size: int
    part: int
    chunks: int

    @staticmethod
    def of(columns: int, size: int, limit: int, inner: int) -> Sharing:
        """Rows of ``columns`` for sets of ``size`` units that hold ``limit`` elements each.

        ``inner``: where a row is a matrix, its columns; parts had better not cross from row to row of it.
        """
        chunks = math.ceil(columns / (size * limit))
        part = math.ceil(columns / (size * chunks))
        # a part that divides the row needs no mask; one that does not had better begin aligned
        if columns % (size * chunks) == 0 and part % ALIGNED_ELEMENTS == 0 and inner % part == 0:
            return Sharing(size, part, chunks)
        parts = [p for p in range(limit, limit // 8, -1) if inner % p == 0 and p % ALIGNED_ELEMENTS == 0]
        if chunks > 1 and parts:
            part = next((p for p in parts if columns % (size * p) == 0), parts[0])
            return Sharing(size, part, math.ceil(columns / (size * part)))
        if columns % (size * chunks) or part % ALIGNED_ELEMENTS:
            part = math.ceil(part / PART_ELEMENTS) * PART_ELEMENTS
        return Sharing(size, part, chunks)

    @property
    def columns(self) -> int:
        """Columns of a chunk."""
        return self.size * self.part

    def cut(self, sch: Schedule, loop: Any) -> tuple[Any | None, Any, Any]:
        """The loops that a row becomes: over chunks, units and columns.

        None in the place of the first: there is one chunk.  Where sizes decide the row's length that loop is
        there, of one round at most.
        """
        if is_open_loop(sch, loop):
            chunk, member, column = sch.split(loop, [None, self.size, self.part])
            return chunk, member, column
        *chunks, member, column = sch.split(
            loop, [*([self.chunks] if self.chunks > 1 else []), self.size, self.part]
        )
        return (chunks[0] if chunks else None), member, column


def schedule_shared(
    sch: Schedule, hw: HardwareModel, rows: int, sharing: Sharing, decisions: Decisions = OWN
) -> Schedule:
    """Rows dealt to sets of units; returns a schedule of the same module, or of one with bounds restored.

    As the bounds are that of a rewritten function, what is decided here are forks.
    """
    sch, partials = prepare_partials(sch, decisions)
    reductions = [b for b in leaf_blocks(sch) if b.is_reduction]
    extents = max((b.reduction for b in reductions), key=math.prod)
    columns = math.prod(extents)
    sharing = decide_part(sharing, extents, space_of(hw).row_values, decisions)
    units = decide_set_units(hw, sharing.size, decisions)
    staged: set[str] = set()
    if sharing.chunks > 1 or any(_is_open(block) for block in reductions):
        # of a row that sizes cut short TVM cannot bound the part that is read
        _inline_rows(sch, rows)
    if sharing.chunks > 1:
        staged = _stage_operands(sch, hw, rows, sharing, units // sharing.size, decisions)
    for block in reductions:
        _share_reduction(sch, block, sharing, partials)
    nest = map_chain(
        sch,
        hw,
        rows,
        (1, sharing.columns),
        num_groups=groups_for(hw, leaf_blocks(sch), units),
        num_units=units,
        group_size=sharing.size,
        share=sharing.part,
    )
    attached = attach_producers(sch, nest)
    for block in attached:
        if block.name in staged:
            _share_staged(sch, block, sharing)
        else:
            _share_attached(sch, hw, block, columns, sharing)
        _walk_in_chunks(sch, block, sharing)
    return partials.restore(sch, decisions)


def decide_part(own: Sharing, extents: Sequence[int], limit: int, decisions: Decisions) -> Sharing:
    """How much of a row a unit has at once: what the rule says, or about half, twice or a quarter of it.

    Parameters
    ----------
    extents : sequence of int
        Of what is reduced.
    limit : int
        Most elements of a row that a unit holds; 0 = what its memory does.
    """
    columns = math.prod(extents)
    inner = math.prod(extents[1:]) if len(extents) > 1 else columns
    whole = math.ceil(columns / own.size)
    whole = min(whole, max(own.part, limit)) if limit else whole
    others = [Sharing.of(columns, own.size, n, inner) for n in near(own.part, whole, LEAST_PART)[1:]]
    found = {sharing.part: sharing for sharing in (*others[::-1], own)}
    wanted = [own.part, *(sharing.part for sharing in others)]
    return found[decisions.fork("part", list(dict.fromkeys(wanted)), own.part)]


def decide_set_units(hw: HardwareModel, size: int, decisions: Decisions) -> int:
    """Units of a group that holds sets of ``size``; of as many groups as rows fill where that is open."""
    own = max(units_of(hw), size)
    if space_of(hw).groups is None:
        return own
    candidates = [units for units in near(own, hw.num_units, size) if units % size == 0]
    return decisions.fork("units", candidates, own)


def _stage_operands(
    sch: Schedule, hw: HardwareModel, rows: int, sharing: Sharing, sets: int, decisions: Decisions
) -> set[str]:
    """Keep rows of the operands in sram where those of a group's sets fit; the blocks that bring them.

    A row that several reductions and the result walk through is then loaded once.
    """
    readers: dict[str, list[BlockInfo]] = {}
    widths: dict[str, int] = {}
    for block in leaf_blocks(sch):
        for region in block.stmt.reads:
            name = region.source.name
            elements = usual_elements(region.source)
            if name in param_names(sch) and elements > rows * (sharing.chunks - 1) * sharing.columns:
                readers.setdefault(name, []).append(block)
                widths[name] = dtype_bytes(region.source.ty.dtype)
    again = [name for name, blocks in readers.items() if len(blocks) > 1]
    row = sum(widths[name] for name in again) * sharing.chunks * sharing.columns
    if sets * row > hw.sram_bytes - RESERVED:
        return set()
    if again and not decisions.fork("staged", (1, 0), 1):
        return set()
    staged = set()
    for name in again:
        copy = sch.cache_read(readers[name][0].rv, readers[name][0].reads.index(name), "shared")
        staged.add(sch.get(copy).name_hint)
    return staged


def _is_open(block: BlockInfo) -> bool:
    """Whether sizes decide how many elements are reduced to one."""
    pairs = zip(block.stmt.iter_vars, block.kinds, strict=True)
    return any(kind == REDUCTION and is_open(iv.dom.extent) for iv, kind in pairs)


def _share_staged(sch: Schedule, block: BlockInfo, sharing: Sharing) -> None:
    """Every unit brings the parts that it goes on with."""
    wide = [lp for lp in own_loops(sch, block.rv) if loop_extent(sch, lp) > 1]
    loop = sch.fuse(*wide) if len(wide) > 1 else wide[0]
    chunk, member, _ = sharing.cut(sch, loop)
    sch.annotate(member, GROUP, sharing.size)
    if chunk is not None:
        sch.annotate(chunk, LOOP, 1)


def _inline_rows(sch: Schedule, rows: int) -> None:
    """Compute full-row intermediates again wherever they are read."""
    for block in leaf_blocks(sch):
        if not block.is_reduction and not block.writes_any(param_names(sch)) and block.size > rows:
            sch.compute_inline(block.rv)


def _share_reduction(sch: Schedule, block: BlockInfo, sharing: Sharing, partials: Partials) -> None:
    """Make a reduction's partial results in the units of a set."""
    loops = reduction_loops(sch, block.rv)
    loop = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    extent = sch.get(loop).extent
    ragged = is_open(extent) or sharing.chunks * sharing.columns > int(extent)
    chunk, member, _ = sharing.cut(sch, loop)
    name = partials.make(sch, block.rv, member, sharing.size)
    if not ragged:
        return
    # rfactor puts the member first and keeps the other loops of the split as the last variables
    terms = ((0, sharing.part), (-1, 1)) + (() if chunk is None else ((-2, sharing.columns),))
    partials.bounds.append(Bound(name, terms, extent))


def _share_attached(
    sch: Schedule, hw: HardwareModel, block: BlockInfo, columns: int, sharing: Sharing
) -> None:
    """A row that is made before the outputs: every unit makes the part that it goes on with."""
    wide = [lp for lp in own_loops(sch, block.rv) if loop_extent(sch, lp) > 1]
    if block.is_reduction or math.prod(loop_extent(sch, lp) for lp in wide) != columns:
        return
    loop = sch.fuse(*wide) if len(wide) > 1 else wide[0]
    group_share(sch, block.rv, loop, sharing.size, share=sharing.part, hardware=hw)


def _walk_in_chunks(sch: Schedule, block: BlockInfo, sharing: Sharing) -> None:
    """A partial reduction takes one chunk after the other."""
    if sharing.chunks > 1 and GROUP in sch.get(block.rv).annotations:
        *_, chunk, _ = sch.get_loops(block.rv)
        sch.annotate(chunk, LOOP, 1)
