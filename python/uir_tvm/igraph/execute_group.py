# SPDX-License-Identifier: Apache-2.0
"""Runs one iOp of group scope in all units together."""

from __future__ import annotations

import numpy as np

from ..errors import InterpreterError
from . import iops_reads as reads
from .bound import BoundIOp, Env
from .iops import IOPS
from .iops_meaning import Box, ValidBoxes, extent
from .iops_scalar import REDUCE
from .run_memories import RunMemories, addresses, where
from .text import print_iop


def execute_group(machine: RunMemories, iop: BoundIOp, envs: list[Env]) -> None:
    """Run an iOp of group scope; ``envs`` holds the variables of every unit that runs."""
    size = int(iop.attrs["group_size"])
    if machine.num_units % size:
        raise InterpreterError(
            f"A group of {machine.num_units} units has no sets of {size}.",
            where=print_iop(iop.node),
            need="num_units % group_size == 0",
        )
    sets: dict[int, list[Env]] = {}
    for env in envs:
        sets.setdefault(env["pid"] // size, []).append(env)
    if any(len(members) != size for members in sets.values()):
        raise InterpreterError("Only some units of a group run.", where=print_iop(iop.node))
    use_buffers(machine, iop, list(sets.values()))
    for members in sets.values():
        (group_reduce if IOPS[iop.op].leads == "target" else group_broadcast)(machine, iop, members)
    machine.barrier(size)


def use_buffers(machine: RunMemories, iop: BoundIOp, sets: list[list[Env]]) -> None:
    """The sets' buffers lie inside sram and do not meet; what they held is lost."""
    buffer = iop.buffer
    assert buffer is not None
    box: Box = (0, buffer.rows, 0, buffer.cols)
    used: dict[int, set[int]] = {}
    for members in sets:
        lead = members[0]
        for env in members:
            if buffer.offset(env) != buffer.offset(lead):
                raise InterpreterError(
                    f"Units {lead['pid']} and {env['pid']} of one set use different buffers.",
                    where=where(iop, buffer),
                    witness=dict(env),
                )
        memory, place = machine.locate(iop, buffer, box, lead)
        mine = set(addresses(buffer, lead).tolist())
        others = used.setdefault(lead["pid"] // machine.num_units, set())
        if others & mine:
            raise InterpreterError(
                "The buffers of two sets of one group meet.",
                where=where(iop, buffer),
                witness=dict(lead),
                remedy=f"let the offset depend on pid % {machine.num_units} / {len(members)}",
            )
        others |= mine
        memory.mark(place, written=False)


def group_reduce(machine: RunMemories, iop: BoundIOp, members: list[Env]) -> None:
    """Combine the members' partial results, each rounded to the dtype of the buffer, in their leader."""
    lead = members[0]
    target = iop.target.box(lead)
    if 0 in extent(target):
        return
    partials = []
    for env in members:
        boxes = machine.read_boxes(iop, target, env)
        source = machine.load(iop, iop.sources[0], boxes[0], env)
        assert iop.spec.meaning is not None
        partials.append(iop.spec.meaning(iop, ValidBoxes(env, target, boxes, machine.domain), source))
    stacked = np.stack([p.reshape(-1) for p in partials])
    total = machine.domain.reduce(REDUCE[iop.name], iop.dtype, stacked, 0)
    machine.store(iop, iop.target, target, lead, total.reshape(extent(target)))


def group_broadcast(machine: RunMemories, iop: BoundIOp, members: list[Env]) -> None:
    """Write the leader's source to the target of every member."""
    lead, piece = members[0], iop.sources[0]
    held = piece.box(lead)
    if 0 in extent(held):
        return
    source = machine.load(iop, piece, held, lead).copy()
    for env in members:
        target = iop.target.box(env)
        if 0 in extent(target):
            continue
        box = reads.boxes(iop.reads, target, [held])[0]
        if box[0] < held[0] or box[1] > held[1] or box[2] < held[2] or box[3] > held[3]:
            raise InterpreterError(
                f"Unit {lead['pid']} has only the rows {held[0]}:{held[1]}, columns {held[2]}:{held[3]}, but "
                f"{box[0]}:{box[1]}, {box[2]}:{box[3]} are broadcast.",
                where=where(iop, piece),
                witness=dict(env),
            )
        values = source[box[0] - held[0] : box[1] - held[0], box[2] - held[2] : box[3] - held[2]]
        machine.store(iop, iop.target, target, env, np.broadcast_to(values, extent(target)))
