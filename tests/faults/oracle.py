# SPDX-License-Identifier: Apache-2.0
"""Races by replay: every instance of every access of every unit, ordered by vector clocks.

Independent of the verifier: the interpreter's compiled slices say what is touched, NumPy marks it, no
integer sets.  Barriers never diverge, so one order of execution has the same happens-before relation as
every other, and keeping each unit's last read and last write of an element finds a race if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from uir_tvm.igraph import IGraph, iops_reads
from uir_tvm.igraph.bound import BoundIOp, BoundLoop, BoundSlice, bind
from uir_tvm.igraph.iops_reads import Box

Env = dict[str, int]

#: What conflicts with what of another unit.  The data decides where a scatter writes: it may meet another.
CONFLICTS = {
    "read": ("write", "scatter"),
    "write": ("read", "write", "scatter"),
    "scatter": ("read", "write"),
}


class TooLarge(Exception):
    """The replay would take too long."""


@attrs.frozen
class Conflict:
    """Two accesses of one element that no barrier orders."""

    pointer: str
    element: int
    pids: tuple[int, int]
    kinds: tuple[str, str]
    #: Position of the later iOp in the replay, and its loop variables.
    position: int
    loops: dict[str, int]


@attrs.define
class _Shadow:
    """When each unit that shares a memory last read, wrote or may have scattered to an element (0: never)."""

    first_pid: int
    marks: dict[str, np.ndarray]


class _Replay:
    def __init__(self, graph: IGraph, limit: int) -> None:
        self.graph, self.limit, self.done = graph, limit, 0
        self.units, self.total = int(graph.num_units), int(graph.num_parallel)
        # clock[u, v]: the last epoch of v that u knows to be over; clock[u, u]: its own current epoch
        self.clock = np.zeros((self.total, self.total), np.int64)
        np.fill_diagonal(self.clock, 1)
        written = {str(s.pointer.name) for iop, _ in graph.walk() for s in iop.targets if iop.op != "sync"}
        written |= {str(iop.attrs["buffer"].pointer.name) for iop, _ in graph.walk() if "buffer" in iop.attrs}
        self.shared = {str(p.name) for p in graph.pointers if p.level != "reg" and str(p.name) in written}
        self.shadows: dict[tuple[str, int], _Shadow] = {}
        self.position = 0
        self.env: Env = {}
        self.count = -1

    # -- clocks

    def barrier(self, pids: Sequence[int]) -> None:
        """All of ``pids`` wait for each other."""
        members = np.asarray(pids)
        self.clock[members] = self.clock[members].max(axis=0)
        self.clock[members, members] += 1

    def sets(self, size: int) -> Iterator[range]:
        """The units in runs of ``size``."""
        for first in range(0, self.total, size):
            yield range(first, first + size)

    # -- memory

    def shadow(self, piece: BoundSlice, pid: int) -> _Shadow:
        """The marks of the memory that the unit sees."""
        group = pid // self.units if piece.level == "sram" else 0
        found = self.shadows.get((piece.name, group))
        if found is None:
            sharers = self.units if piece.level == "sram" else self.total
            shape = (int(piece.pointer.size), sharers)
            first = group * self.units if piece.level == "sram" else 0
            found = _Shadow(first, {kind: np.zeros(shape, np.int64) for kind in CONFLICTS})
            self.shadows[piece.name, group] = found
        return found

    def touch(self, piece: BoundSlice, at: np.ndarray, pid: int, kind: str) -> Iterator[Conflict]:
        """One unit reads or writes some addresses; conflicts with what others did before."""
        if piece.name not in self.shared or not at.size:
            return
        shadow = self.shadow(piece, pid)
        sharers = shadow.marks[kind].shape[1]
        self.done += at.size * sharers + 50
        if self.done > self.limit:
            raise TooLarge
        known = self.clock[pid, shadow.first_pid : shadow.first_pid + sharers]
        for before in CONFLICTS[kind]:
            late = shadow.marks[before][at] > known[None, :]
            if late.any():
                k, other = np.argwhere(late)[0]
                pids = (shadow.first_pid + int(other), pid)
                yield Conflict(piece.name, int(at[k]), pids, (before, kind), self.position, dict(self.env))
        shadow.marks[kind][at, pid - shadow.first_pid] = self.clock[pid, pid]

    # -- the loop tree

    def body(self, body: Sequence[BoundIOp | BoundLoop]) -> Iterator[Conflict]:
        """Run a loop tree in lockstep."""
        for node in body:
            if isinstance(node, BoundLoop):
                yield from self.loop(node)
            else:
                yield from self.iop(node)

    def loop(self, loop: BoundLoop) -> Iterator[Conflict]:
        """Run a loop; the positions of its iOps are the same in every iteration."""
        start = self.count
        for value in range(loop.extent):
            self.count = start
            self.env[loop.var] = value
            yield from self.body(loop.body)
        self.env.pop(loop.var, None)

    def iop(self, iop: BoundIOp) -> Iterator[Conflict]:
        """Run one instance of an iOp in all units."""
        self.count += 1
        self.position = self.count
        self.done += 20 * self.total
        if self.done > self.limit:
            raise TooLarge
        if iop.op == "identity":
            return
        if iop.op == "sync":
            scope = iop.attrs["scope"]
            if scope != "reg":
                for pids in self.sets(self.units if scope == "sram" else self.total):
                    self.barrier(pids)
        elif iop.is_group:
            yield from self.group(iop)
        else:
            for pid in range(self.total):
                env = {**self.env, "pid": pid}
                target = iop.target.box(env)
                if _empty(target):
                    continue
                yield from self.reads(iop, target, env)
                at = _addresses(iop.target, target, env)
                if iop.reads_target:
                    yield from self.touch(iop.target, at, pid, "read")
                yield from self.touch(iop.target, at, pid, "scatter" if iop.op == "scatter" else "write")

    def reads(self, iop: BoundIOp, target: Box, env: Env) -> Iterator[Conflict]:
        """What one unit reads for the target's box."""
        boxes = iops_reads.boxes(iop.reads, target, [s.box(env) for s in iop.sources])
        for piece, box in zip(iop.sources, boxes, strict=True):
            yield from self.touch(piece, _addresses(piece, box, env), env["pid"], "read")

    def group(self, iop: BoundIOp) -> Iterator[Conflict]:
        """A group form: into the buffer, barrier of the set, out of the buffer."""
        size = int(iop.attrs["group_size"])
        buffer = iop.buffer
        assert buffer is not None
        whole: Box = (0, buffer.rows, 0, buffer.cols)
        for pids in self.sets(size):
            lead = pids[0]
            writers = pids if iop.op == "reduce" else (lead,)
            readers = (lead,) if iop.op == "reduce" else pids
            target = iop.target.box({**self.env, "pid": lead})
            for pid in writers:
                env = {**self.env, "pid": pid}
                if iop.op == "reduce":
                    yield from self.reads(iop, target, env)
                else:
                    source = iop.sources[0]
                    yield from self.touch(source, _addresses(source, source.box(env), env), pid, "read")
                slots = _addresses(buffer, whole, env)
                # in a reduce every unit has a part of the buffer of its own
                mine = np.array_split(slots, size)[pid - lead] if iop.op == "reduce" else slots
                yield from self.touch(buffer, mine, pid, "write")
            self.barrier(pids)
            for pid in readers:
                env = {**self.env, "pid": pid}
                yield from self.touch(buffer, _addresses(buffer, whole, env), pid, "read")
                at = _addresses(iop.target, iop.target.box(env), env)
                yield from self.touch(iop.target, at, pid, "write")


def _empty(box: Box) -> bool:
    return box[0] >= box[1] or box[2] >= box[3]


def _addresses(piece: BoundSlice, box: Box, env: Env) -> np.ndarray:
    rows = np.arange(box[0], box[1])[:, None] * piece.strides[0]
    return (piece.offset(env) + rows + np.arange(box[2], box[3])[None, :] * piece.strides[1]).reshape(-1)


def first_conflict(graph: IGraph, limit: int = 200_000_000) -> Conflict | None:
    """The first race that the replay of a well-formed graph meets; None when it has none.

    Parameters
    ----------
    limit : int
        Marks looked at (and 20 for every iOp of every unit) after which `TooLarge` is raised.
    """
    if graph.num_parallel == 1:
        return None
    replay = _Replay(graph, limit)
    if not replay.shared:
        return None
    body: Any = bind(graph.body)
    return next(replay.body(body), None)
