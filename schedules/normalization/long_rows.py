# SPDX-License-Identifier: Apache-2.0
"""Rows that a unit does not hold: walked in chunks, and computed again for every reduction."""

from __future__ import annotations

from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import LOOP
from uir_tvm.schedule.blocks import leaf_blocks, loop_extent, param_names, reduction_loops
from uir_tvm.schedule.decisions import OWN, Choice, Decisions, near, rv_of
from uir_tvm.schedule.row_chain import (
    attach_producers,
    chunk_elements,
    decide_groups,
    decide_units,
    line_of,
    map_chain,
    most_elements,
)
from uir_tvm.schedules.normalization.online import chunk_of, find_pair, rewrite, share_chunks


def schedule_long_rows(
    sch: Schedule, hw: HardwareModel, rows: int, cols: int, decisions: Decisions = OWN
) -> Schedule:
    """Rows in chunks: full-row intermediates are computed again, softmax becomes online."""
    limit = chunk_elements(hw, leaf_blocks(sch), rows)
    for block in leaf_blocks(sch):
        if not block.is_reduction and not block.writes_any(param_names(sch)) and block.size > rows:
            sch.compute_inline(block.rv)
    pair, chunk = find_pair(sch), chunk_of(cols, limit)
    most = most_elements(hw, leaf_blocks(sch))
    sizes = [chunk_of(cols, size) or size for size in near(limit, min(most, cols), line_of(hw))]
    chunked = None
    if pair is not None and chunk is not None and decisions.fork("online", (1, 0), 1):
        # the function is written anew for a chunk
        whole = [size for size in dict.fromkeys(sizes) if cols % size == 0]
        chunk = decisions.fork("chunk", whole, chunk)
        chunked = rewrite(sch, pair, chunk)
        sch = decisions.restart(chunked.func)
    elif all(len(b.reduction) == 1 for b in leaf_blocks(sch) if b.is_reduction):
        chunk = decisions.choose(sch, "chunk", sizes, chunk or limit)
    else:
        # rows that are matrices are walked row by row of these, as far as they are longer
        chunk = chunk or limit
    groups = decide_groups(sch, hw, leaf_blocks(sch), decisions, rows)
    units = decide_units(sch, hw, decisions)
    nest = map_chain(sch, hw, rows, (1, chunk), num_groups=groups, num_units=units)
    attached = attach_producers(sch, nest)
    if chunked is not None:
        chunks = share_chunks(sch, chunked)
        # that of one row inside of the chunks would count as the loop to load ahead in
        if loop_extent(sch, chunks) > 1 or not decisions.sampled:
            sch.annotate(chunks, LOOP, 1)
    for block in attached:
        if block.is_reduction:
            for loop in reduction_loops(sch, block.rv):
                if loop_extent(sch, loop) > chunk or isinstance(chunk, Choice):
                    outer, _ = sch.split(loop, [None, rv_of(chunk)])
                    sch.annotate(outer, LOOP, 1)
    return sch
