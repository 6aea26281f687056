# SPDX-License-Identifier: Apache-2.0
"""Runs one iOp in one unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InterpreterError
from .bound import BoundIOp, Env
from .iops_meaning import ValidBoxes
from .iops_meaning import gather as gather_meaning
from .memory import SCATTER
from .run_memories import RunMemories, addresses
from .text import print_iop


def pointwise(machine: RunMemories, iop: BoundIOp, env: Env) -> None:
    """Values of the boxes read -> the values of the target's box."""
    target = iop.target.box(env)
    if target[0] == target[1] or target[2] == target[3]:
        return
    boxes = machine.read_boxes(iop, target, env)
    arrays = [machine.load(iop, s, box, env) for s, box in zip(iop.sources, boxes, strict=True)]
    if iop.reads_target:
        arrays.append(machine.load(iop, iop.target, target, env))
    assert iop.spec.meaning is not None
    machine.store(
        iop,
        iop.target,
        target,
        env,
        iop.spec.meaning(iop, ValidBoxes(env, target, boxes, machine.domain), *arrays),
    )


def gather(machine: RunMemories, iop: BoundIOp, env: Env) -> None:
    """As pointwise, but of the table only what the index names must have been written."""
    target = iop.target.box(env)
    if target[0] == target[1] or target[2] == target[3]:
        return
    boxes = machine.read_boxes(iop, target, env)
    table, region = iop.sources[0], ValidBoxes(env, target, boxes, machine.domain)
    index = machine.load(iop, iop.sources[1], boxes[1], env)
    memory, place = machine.locate(iop, table, boxes[0], env)
    if memory.written is not None:
        holds = gather_meaning(_MaskGather(iop), region, memory.holds(place), index)
        if not holds.all():
            at = np.argwhere(~holds)[0]
            row = index[at[0], at[1] if index.shape[1] > 1 else 0]
            machine.fail_unwritten(iop, table, int(row), int(at[1]) if table.cols > 1 else 0, env)
    machine.store(iop, iop.target, target, env, gather_meaning(iop, region, memory.values(place), index))


def scatter(machine: RunMemories, iop: BoundIOp, env: Env) -> None:
    """Write the elements that the index names; writes of several units may meet."""
    target = iop.target.box(env)
    boxes = machine.read_boxes(iop, target, env)
    arrays = [machine.load(iop, s, box, env) for s, box in zip(iop.sources, boxes, strict=True)]
    assert iop.spec.meaning is not None
    rows, cols, values = iop.spec.meaning(iop, ValidBoxes(env, target, boxes, machine.domain), *arrays)
    memory, (start, _, _) = machine.locate(iop, iop.target, target, env)
    place = start + (rows - target[0]) * iop.target.strides[0] + (cols - target[2]) * iop.target.strides[1]
    memory.array()[place] = values
    if memory.written is not None:
        memory.written[place] = True
    if memory.writer is not None:
        memory.writer[place] = SCATTER


def identity(machine: RunMemories, iop: BoundIOp, env: Env) -> None:
    """Nothing moves, if both sides are the same elements."""
    targets, sources = (
        np.sort(np.concatenate([addresses(s, env) for s in side])) for side in (iop.targets, iop.sources)
    )
    if not np.array_equal(targets, sources):
        raise InterpreterError(
            "The two sides of an identity are not the same elements.",
            where=print_iop(iop.node),
            witness=dict(env),
        )


def sync(machine: RunMemories, iop: BoundIOp, env: Env) -> None:
    """Lockstep is a barrier after every iOp already; what was written is now that of all that waited."""
    if env["pid"] == machine.leader:
        sizes = {"reg": 1, "sram": machine.num_units, "dram": machine.num_parallel}
        machine.barrier(sizes[iop.attrs["scope"]])


class _MaskGather:
    """A gather of the mask of written elements; what it does not read counts as written."""

    def __init__(self, iop: BoundIOp) -> None:
        self.op, self.dtype, self.attrs = iop.op, "bool", {"pad": 1}
        self.target, self.sources = iop.target, iop.sources


#: What does not simply turn the values of boxes into those of the target's box.
SPECIAL: dict[str, Callable[[RunMemories, Any, Env], None]] = {
    "gather": gather,
    "scatter": scatter,
    "identity": identity,
    "sync": sync,
}


def execute(machine: RunMemories, iop: BoundIOp, env: Env) -> None:
    """Run an iOp of unit scope with the variables in ``env``."""
    SPECIAL.get(iop.op, pointwise)(machine, iop, env)
