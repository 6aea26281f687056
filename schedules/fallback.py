# SPDX-License-Identifier: Apache-2.0
"""The fallback that always builds: one unit, every block's last loop in chunks, the others serial."""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import LOOP, PARALLEL, parallel_value
from uir_tvm.schedule.blocks import leaf_blocks, loop_extent, root_block
from uir_tvm.schedule.decisions import OWN, Decisions, rv_of
from uir_tvm.schedule.prepare import inline_producers

HERO = "fallback"
#: Elements of a chunk, and others to choose from.
CHUNK, CHUNKS = 1024, (128, 256, 512, 1024, 2048, 4096)


def matches(sch: Schedule) -> bool:
    """Everything."""
    return True


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """One unit runs the blocks one after the other; a block that is opaque stays as it is."""
    inline_producers(sch)
    blocks = [block for block in leaf_blocks(sch) if block.kinds]
    longest = max((block.extents[-1] for block in blocks), default=1)
    sizes = [c for c in CHUNKS if c < longest]
    chunk = decisions.choose(sch, "chunk", sizes, min(CHUNK, longest)) if sizes else CHUNK
    for block in blocks:
        loops = list(sch.get_loops(block.rv)) or [sch.add_unit_loop(block.rv)]
        last = loops.pop()
        if loop_extent(sch, last) > (min(sizes) if sizes and decisions.sampled else CHUNK):
            outer, _ = sch.split(last, [None, rv_of(chunk)])
            loops.append(outer)
        for loop in loops:
            sch.annotate(loop, LOOP, 1)
    sch.annotate(root_block(sch), PARALLEL, parallel_value(1, 1))


def example() -> Any:
    """Two reductions over different rows: the mean of every row, then of all rows."""
    from tvm.relax import op
    from uir_tvm.schedule.demo import from_relax

    return from_relax(
        lambda x: op.mean(op.mean(x, axis=-1), axis=0), [(60, 50)], lambda x: x.mean(-1).mean(0)
    )


if __name__ == "__main__":
    from uir_tvm.schedule.demo import main

    main("fallback")
