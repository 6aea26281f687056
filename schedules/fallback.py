# SPDX-License-Identifier: Apache-2.0
"""The fallback that always builds: one unit, every block's last loop in chunks, the others serial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm.s_tir import Schedule
from tvm.script import tirx as T
from uir_tvm.errors import ScheduleError
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import LOOP, PARALLEL, parallel_value
from uir_tvm.schedule.blocks import BlockInfo, block_info, leaf_blocks, loop_extent, root_block
from uir_tvm.schedule.decisions import OWN, Decisions, rv_of
from uir_tvm.schedule.prepare import inline_producers
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.representative import is_open, most_of
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedules.demo import Example, Numbers, Shapes

#: Elements of a chunk, and others to choose from.
CHUNK, CHUNKS = 1024, (128, 256, 512, 1024, 2048, 4096)
#: Rounds of one unit where sizes are open: a kernel for the sizes of a call has most often many units.
OPEN_ROUNDS = 64


def matches(sch: Schedule) -> bool:
    """Everything that has a block."""
    return bool(leaf_blocks(sch))


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> None:
    """One unit runs the blocks one after the other; a block that is opaque stays as it is.

    Raises
    ------
    ScheduleError
        Sizes are open, and at their greatest one unit would walk too many rounds: the sizes of a call may
        have a recipe for many units.
    """
    inline_producers(sch)
    blocks = [block for block in leaf_blocks(sch) if block.kinds]
    several = any(len(run) > 1 for block in blocks for run in _runs(block))
    if decisions.fork("one_run", (0, 1) if several else (0,), 0):
        _fuse_runs(sch, blocks)
        blocks = [block_info(sch, block.rv) for block in blocks]
    longest = max(
        (loop_extent(sch, sch.get_loops(b.rv)[-1]) for b in blocks if sch.get_loops(b.rv)), default=1
    )
    sizes, own = [c for c in CHUNKS if c < longest], CHUNK // shrink_of(hw)
    chunk = decisions.choose(sch, "chunk", sizes, min(own, longest)) if sizes else own
    least = min(sizes) if sizes and decisions.sampled else own
    for block in blocks:
        loops = list(sch.get_loops(block.rv)) or [sch.add_unit_loop(block.rv)]
        last = loops.pop()
        if loop_extent(sch, last) > least:
            outer, _ = sch.split(last, [None, rv_of(chunk)])
            loops.append(outer)
        _check_rounds(sch, loops)
        for loop in loops:
            sch.annotate(loop, LOOP, 1)
    sch.annotate(root_block(sch), PARALLEL, parallel_value(1, 1))


def _check_rounds(sch: Schedule, loops: Sequence[Any]) -> None:
    extents = [sch.get(loop).extent for loop in loops]
    rounds = math.prod(max(most_of(extent, sch.mod["main"]), 1) for extent in extents)
    if rounds > OPEN_ROUNDS and any(map(is_open, extents)):
        raise ScheduleError(
            f"One unit would walk up to {rounds} rounds, as sizes decide.",
            limit=f"{OPEN_ROUNDS} rounds where sizes are open",
            remedy="give its sizes smaller upper bounds (tir_var_upper_bound), or compile it for one size",
        )


def _runs(block: BlockInfo) -> list[list[int]]:
    """Loops of a block that are one run of elements if they are fused: neighbours of the same kind."""
    runs: list[list[int]] = []
    for position, kind in enumerate(block.kinds):
        if runs and block.kinds[position - 1] == kind:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def _fuse_runs(sch: Schedule, blocks: Sequence[BlockInfo]) -> None:
    """Make one loop of every run of a block: a longer tile, if what it reads is as contiguous."""
    for block in blocks:
        loops = sch.get_loops(block.rv)
        if len(loops) == len(block.kinds):
            for run in _runs(block):
                if len(run) > 1:
                    sch.fuse(*[loops[position] for position in run])


def _running_sum(rows: Any, columns: Any) -> Any:
    @T.prim_func(private=True, s_tir=True)
    def running_sum(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((rows, columns), "float32")):  # type: ignore[valid-type]
        S = T.sblock_alloc_buffer((rows, columns), "float32")
        for i in range(rows):
            with T.sblock("first"):
                vi = T.axis.spatial(rows, i)
                S[vi, 0] = A[vi, 0]
        for i, j in T.grid(rows, columns - 1):
            with T.sblock("sum"):
                vi = T.axis.spatial(rows, i)
                vj = T.axis.opaque(columns - 1, j)
                S[vi, vj + 1] = S[vi, vj] + A[vi, vj + 1]
        for i, j in T.grid(rows, columns):
            with T.sblock("half"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = S[vi, vj] * T.float32(0.5)

    return running_sum


def _numbers(shapes: Shapes) -> Numbers:
    x = np.random.default_rng(0).standard_normal(shapes[0]).astype("float32")
    return [x], [x.astype("float64").cumsum(1) / 2]


def example() -> Any:
    """A running sum over 4 rows of 50, halved: every element needs the one before it."""
    return Example.of(lambda shapes: _running_sum(*shapes[0]), _numbers, [(4, 50)])


RECIPE = Recipe(
    "fallback",
    matches,
    schedule,
    example,
    reason="Every function with blocks can be built, on one unit.",
    stopgap=True,
    last_resort=True,
)
