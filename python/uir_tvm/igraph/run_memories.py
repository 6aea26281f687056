# SPDX-License-Identifier: Apache-2.0
"""The state of an interpreter run: the memories, and reads and writes of boxes of slices with every check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from ..errors import InterpreterError
from . import iops_reads as reads
from .bound import BoundIOp, BoundSlice, Env
from .domain import VALUES, Values
from .iops import spec_of
from .iops_meaning import Box, extent
from .memory import Memory, Place, outside
from .nodes import IGraph, IPointer
from .text import print_iop, print_slice


class RunMemories:
    """The memories of one run.

    Parameters
    ----------
    graph : IGraph
        What runs.
    given : Mapping[str, numpy.ndarray]
        The in and inout parameters by name.
    domain : Values
        What it computes with.

    Attributes
    ----------
    lockstep : bool
        Whether units depend on each other, so that every unit has memories of its own at the same time.
    iterations : Mapping[str, Sequence[int]]
        Of some loops, by variable, the only iterations that run (see `interpreter.run_partly`).
    """

    def __init__(self, graph: IGraph, given: Mapping[str, np.ndarray], domain: Values = VALUES) -> None:
        self.domain = domain
        self.iterations: Mapping[str, Sequence[int]] = {}
        #: The first unit that runs.
        self.leader = 0
        self.num_units = int(graph.num_units)
        self.num_parallel = int(graph.num_parallel)
        #: What a barrier settles: other memory is private, or in lockstep by itself.
        iops = [iop for iop, _ in graph.walk()]
        read = {str(s.pointer.name) for iop in iops for s in iop.sources if spec_of(iop).touches}
        self.lockstep = any(p.level == "sram" for p in graph.pointers) or any(
            spec_of(iop).barrier or iop.attrs.get("scope") == "group" for iop in iops
        )
        self._memories: dict[tuple[str, int], Memory] = {}
        for pointer in graph.pointers:
            if pointer.level == "dram":
                initial = given[pointer.name].reshape(-1) if pointer.name in given else None
                self._memories[pointer.name, 0] = Memory(pointer, initial, domain)
        dram = self._memories.items()
        self._exchanged = [m for (name, _), m in dram if name in read and m.writer is not None]

    def barrier(self, size: int) -> None:
        """All sets of ``size`` consecutive units met: what they wrote to dram before is theirs together."""
        for memory in self._exchanged:
            memory.settle(size, self.num_parallel)

    def forget(self) -> None:
        """Leave nothing in the memories of a unit, for the next one to use them."""
        for (_, owner), memory in self._memories.items():
            if owner:
                memory.forget()

    def forget_pointers(self, names: Iterable[str]) -> None:
        """Leave nothing in any memory of these pointers on chip."""
        wanted = set(names)
        for (name, owner), memory in self._memories.items():
            if owner and name in wanted:
                memory.forget()

    def memory(self, pointer: IPointer, pid: int) -> Memory:
        """The memory of a pointer as the unit ``pid`` sees it."""
        return self._memory(str(pointer.name), str(pointer.level), pointer, pid)

    def _memory(self, name: str, level: str, pointer: IPointer, pid: int) -> Memory:
        # dram is owner 0; units that run one after the other reuse one set of registers, owner 1
        owner = 0 if level == "dram" else 1
        if owner and self.lockstep:
            owner += pid if level == "reg" else pid // self.num_units
        found = self._memories.get((name, owner))
        if found is None:
            found = self._memories[name, owner] = Memory(pointer, domain=self.domain)
        return found

    def locate(self, iop: BoundIOp, piece: BoundSlice, box: Box, env: Env) -> tuple[Memory, Place]:
        """Where a box of a slice lies; all of it is inside."""
        memory = self._memory(piece.name, piece.level, piece.pointer, env["pid"])
        strides = piece.strides
        start = piece.offset(env) + box[0] * strides[0] + box[2] * strides[1]
        place = (start, (box[1] - box[0], box[3] - box[2]), strides)
        wrong = outside(place, memory.size)
        if wrong is not None:
            row, col = box[0] + wrong[0], box[2] + wrong[1]
            raise InterpreterError(
                f"Element ({row}, {col}) of a slice lies at {wrong[2]} of {piece.name}.",
                where=where(iop, piece),
                witness={**env, "row": row, "col": col},
                limit=f"{piece.name} has {memory.size} elements",
            )
        return memory, place

    def load(self, iop: BoundIOp, piece: BoundSlice, box: Box, env: Env) -> np.ndarray:
        """The values in a box of a slice, as a view; it was written, and by no other unit."""
        memory, place = self.locate(iop, piece, box, env)
        if not memory.complete:
            empty = memory.unwritten(place)
            if empty is not None:
                self.fail_unwritten(iop, piece, box[0] + empty[0], box[2] + empty[1], env)
        if memory.writer is not None:
            foreign = memory.foreign(place, env["pid"])
            if foreign is not None:
                raise InterpreterError(
                    f"A unit reads what unit {foreign[2]} wrote to {piece.name}, with no sync between.",
                    where=where(iop, piece),
                    witness={**env, "row": box[0] + foreign[0], "col": box[2] + foreign[1]},
                    remedy="put a sync.dram on that pointer between them",
                )
        return memory.values(place)

    def fail_unwritten(self, iop: BoundIOp, piece: BoundSlice, row: int, col: int, env: Env) -> NoReturn:
        """Say that an element of a slice holds nothing."""
        raise InterpreterError(
            f"Nothing was written to element ({row}, {col}) of a slice of {piece.name} before it is read.",
            where=where(iop, piece),
            witness={**env, "row": row, "col": col},
            remedy="write it first, or narrow the valid range of the target",
        )

    def store(self, iop: BoundIOp, piece: BoundSlice, box: Box, env: Env, values: np.ndarray) -> None:
        """Write a box of a slice, which no other unit has written."""
        memory, place = self.locate(iop, piece, box, env)
        if memory.writer is not None:
            foreign = memory.foreign(place, env["pid"])
            if foreign is not None:
                raise InterpreterError(
                    f"Units {foreign[2]} and {env['pid']} write the same element of {piece.name}.",
                    where=where(iop, piece),
                    witness={**env, "row": box[0] + foreign[0], "col": box[2] + foreign[1]},
                    need="every element written by one unit only",
                )
            memory.claim(place, env["pid"])
        memory.values(place)[...] = values
        memory.mark(place)

    def read_boxes(self, iop: BoundIOp, target: Box, env: Env) -> list[Box]:
        """The box of each source that is read, checked to be valid there."""
        valid = [s.box(env) for s in iop.sources]
        boxes = reads.boxes(iop.reads, target, valid)
        for piece, box, has in zip(iop.sources, boxes, valid, strict=True):
            if (
                box != has
                and 0 not in extent(box)
                and (box[0] < has[0] or box[1] > has[1] or box[2] < has[2] or box[3] > has[3])
            ):
                raise InterpreterError(
                    f"A slice of {piece.name} is read where it is not valid.",
                    where=where(iop, piece),
                    witness=dict(env),
                    need=f"rows {box[0]}:{box[1]}, columns {box[2]}:{box[3]}",
                    limit=f"valid are rows {has[0]}:{has[1]}, columns {has[2]}:{has[3]}",
                    remedy="give the target the same valid range, or load the source with pad",
                )
        return boxes


def where(iop: BoundIOp, piece: BoundSlice) -> str:
    """The iOp and the slice at fault, for a message."""
    return f"{print_iop(iop.node)}, slice {print_slice(piece.node)}"


def addresses(piece: BoundSlice, env: Env) -> np.ndarray:
    """The addresses of all elements of a slice's valid box, flat."""
    r0, r1, c0, c1 = piece.box(env)
    rows = np.arange(r0, r1)[:, None] * piece.strides[0]
    return (piece.offset(env) + rows + np.arange(c0, c1)[None, :] * piece.strides[1]).reshape(-1)
