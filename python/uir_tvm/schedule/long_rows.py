# SPDX-License-Identifier: Apache-2.0
"""Rows that a unit does not hold: walked in chunks, and computed again for every reduction."""

from __future__ import annotations

from tvm.s_tir import Schedule

from ..igraph import HardwareModel
from .annotations import LOOP
from .blocks import leaf_blocks, loop_extent, param_names, reduction_loops
from .decisions import OWN, Decisions
from .online import chunk_of, find_pair, rewrite, share_chunks
from .row_chain import attach_producers, groups_for, map_chain, tile_elements


def schedule_long_rows(
    sch: Schedule, hw: HardwareModel, rows: int, cols: int, decisions: Decisions = OWN
) -> Schedule:
    """Rows in chunks: full-row intermediates are computed again, softmax becomes online."""
    limit = tile_elements(hw, leaf_blocks(sch))
    for block in leaf_blocks(sch):
        if not block.is_reduction and not block.writes_any(param_names(sch)) and block.size > rows:
            sch.compute_inline(block.rv)
    chunk = chunk_of(cols, limit)
    pair = find_pair(sch)
    chunked = rewrite(sch, pair, chunk) if pair is not None and chunk is not None else None
    if chunked is not None:
        sch = Schedule(chunked.func)
    chunk = chunk or limit
    nest = map_chain(sch, hw, rows, (1, chunk), num_groups=groups_for(hw, leaf_blocks(sch)))
    attached = attach_producers(sch, nest)
    if chunked is not None:
        sch.annotate(share_chunks(sch, chunked), LOOP, 1)
    for block in attached:
        if block.is_reduction:
            for loop in reduction_loops(sch, block.rv):
                if loop_extent(sch, loop) > chunk:
                    outer, _ = sch.split(loop, [None, chunk])
                    sch.annotate(outer, LOOP, 1)
    return sch
