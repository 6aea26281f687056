# SPDX-License-Identifier: Apache-2.0
"""Runs an iGraph by the meaning of its iOps in NumPy: the reference for every target.

Beside the values it keeps which elements hold any and who wrote them, so that a read of memory
that nothing wrote, an access outside a pointer, and two units that meet in dram without a sync are
errors and not silent numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import IGraphError, InterpreterError, ShapeError
from .bound import BoundIOp, BoundLoop, BoundSlice, Env, bind
from .dtypes import dtype_of, numpy_of
from .iops import problems
from .iops_meaning import Box, Region, extent, gather
from .iops_scalar import REDUCE, reduce_array
from .memory import NOBODY, SCATTER, Memory, outside
from .nodes import IGraph, IPointer
from .text import print_iop, print_slice


def run(
    graph: IGraph, *arrays: Any, units: Sequence[int] | None = None, allow_unwritten: bool = False
) -> list[np.ndarray]:
    """Run all units, groups and loops of an iGraph.

    Units run one after the other; where the graph has an iOp of group scope, a sync or sram, all
    units run in lockstep, iOp by iOp (which hides races through sram: they are the verifier's).

    Parameters
    ----------
    graph : IGraph
        It must keep the form, dtype and shape rules of the iOp table.
    *arrays : numpy.ndarray, or one mapping from pointer name to numpy.ndarray
        The in and inout parameters in the order of the signature, of any shape with as many
        elements as the pointer and of its dtype.  They are not written.
    units : sequence of int, optional
        The pids to run instead of all (whole groups where iOps join them).  Elements that only
        other units write then stay zero.
    allow_unwritten : bool
        Whether elements of an output may stay unwritten (as zero).

    Returns
    -------
    list of numpy.ndarray
        The inout and out parameters in the order of the signature; out is flat, inout has the
        shape that was given.

    Raises
    ------
    uir_tvm.errors.ShapeError
        Inputs of the wrong number, name, size or dtype.
    uir_tvm.errors.IGraphError
        An iOp breaks a rule of the table.
    uir_tvm.errors.InterpreterError
        Out-of-bounds access, read of memory that nothing wrote, two units that write one dram
        element, an output element that nothing wrote; with the iOp, the slice and a witness.
    """
    given = _inputs(graph, arrays)
    for iop, _ in graph.walk():
        for rule, text in problems(iop):
            raise IGraphError(f"An iOp breaks its {rule} rule: {text}.", where=print_iop(iop))
    machine = _Machine(graph, given)
    pids = list(range(graph.num_parallel)) if units is None else sorted(units)
    with np.errstate(all="ignore"):
        machine.run(pids)
    outputs = []
    for pointer in graph.params:
        if pointer.role == "in":
            continue
        memory = machine.memory(pointer, 0)
        if units is None and not allow_unwritten:
            _check_written(pointer, memory)
        out = memory.array().copy()
        outputs.append(out.reshape(given[pointer.name].shape) if pointer.role == "inout" else out)
    return outputs


def _inputs(graph: IGraph, arrays: Sequence[Any]) -> dict[str, np.ndarray]:
    wanted = [p for p in graph.params if p.role != "out"]
    names = [str(p.name) for p in wanted]
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        given = dict(arrays[0])
        if sorted(given) != sorted(names):
            raise ShapeError(
                f"The inputs are named {', '.join(sorted(given))}.", where=graph.name, need=", ".join(names)
            )
    elif len(arrays) != len(wanted):
        raise ShapeError(
            f"The interpreter got {len(arrays)} inputs.",
            where=graph.name,
            need=f"{len(wanted)}: " + ", ".join(f"{p.name} ({p.size} x {p.dtype})" for p in wanted),
        )
    else:
        given = dict(zip(names, arrays, strict=True))
    for pointer in wanted:
        array = given[pointer.name] = np.asarray(given[pointer.name])
        if array.size != pointer.size or array.dtype != numpy_of(pointer.dtype):
            raise ShapeError(
                f"The input {pointer.name} has {array.size} elements of {array.dtype}.",
                where=graph.name,
                need=f"{pointer.size} of {numpy_of(pointer.dtype)}",
            )
    return given


def _check_written(pointer: IPointer, memory: Memory) -> None:
    if memory.written is None or memory.written.all():
        return
    missing = np.flatnonzero(~memory.written)
    raise InterpreterError(
        f"{len(missing)} of the {memory.size} elements of the output {pointer.name} are never written.",
        where=pointer.name,
        witness={"element": int(missing[0])},
        need="every element written by some unit",
    )


class _Machine:
    """The memories of one run and the execution of iOps on them."""

    def __init__(self, graph: IGraph, given: Mapping[str, np.ndarray]) -> None:
        self.graph = graph
        self.num_units = int(graph.num_units)
        self.body = bind(graph.body)
        self.lockstep = any(p.level == "sram" for p in graph.pointers) or any(
            iop.op == "sync" or iop.attrs.get("scope") == "group" for iop, _ in graph.walk()
        )
        self._memories: dict[tuple[str, int], Memory] = {}
        for pointer in graph.pointers:
            if pointer.level == "dram":
                initial = given[pointer.name].reshape(-1) if pointer.name in given else None
                self._memories[pointer.name, 0] = Memory(pointer, initial)

    def run(self, pids: Sequence[int]) -> None:
        """Run the body for these units."""
        if self.lockstep:
            self._walk(self.body, [{"pid": pid} for pid in pids])
            return
        for pid in pids:
            for (_, owner), memory in self._memories.items():
                if owner:
                    memory.forget()
            self._walk(self.body, [{"pid": pid}])

    def _walk(self, body: Sequence[BoundIOp | BoundLoop], envs: list[Env]) -> None:
        for node in body:
            if isinstance(node, BoundIOp):
                self._step(node, envs)
                continue
            for value in range(node.extent):
                for env in envs:
                    env[node.var] = value
                self._walk(node.body, envs)
            for env in envs:
                env.pop(node.var, None)

    def _step(self, iop: BoundIOp, envs: list[Env]) -> None:
        if iop.is_group:
            self._group(iop, envs)
            return
        execute = _SPECIAL.get(iop.op, _Machine._pointwise)
        for env in envs:
            execute(self, iop, env)

    # --- memory ----------------------------------------------------------------------------------

    def memory(self, pointer: IPointer, pid: int) -> Memory:
        """The memory of a pointer as the unit ``pid`` sees it."""
        return self._memory(str(pointer.name), str(pointer.level), pointer, pid)

    def _memory(self, name: str, level: str, pointer: IPointer, pid: int) -> Memory:
        # units that run one after the other reuse one set of registers: owner 1; dram is owner 0
        owner = (
            0
            if level == "dram"
            else 1
            if not self.lockstep
            else 1 + (pid if level == "reg" else pid // self.num_units)
        )
        found = self._memories.get((name, owner))
        if found is None:
            found = self._memories[name, owner] = Memory(pointer)
        return found

    def _locate(self, iop: BoundIOp, piece: BoundSlice, box: Box, env: Env) -> tuple[Memory, int]:
        """The memory and the address of the first element of a box, all of which lies inside."""
        memory = self._memory(piece.name, piece.level, piece.pointer, env["pid"])
        strides = piece.strides
        start = piece.offset(env) + box[0] * strides[0] + box[2] * strides[1]
        wrong = outside(start, strides, box, memory.size)
        if wrong is not None:
            row, col, address = wrong
            raise InterpreterError(
                f"Element ({row}, {col}) of a slice lies at {address} of {piece.name}, which has {memory.size}.",
                where=_where(iop, piece),
                witness={**env, "row": row, "col": col},
                limit=f"0 <= address < {memory.size}",
            )
        return memory, start

    def load(self, iop: BoundIOp, piece: BoundSlice, box: Box, env: Env, check: bool = True) -> np.ndarray:
        """The values in a box of a slice, as a view."""
        memory, start = self._locate(iop, piece, box, env)
        values = memory.values(start, piece.strides, box)
        if check:
            written = memory.written_at(start, piece.strides, box)
            if written is not None and not written.all():
                self._unwritten(iop, piece, box, np.argwhere(~written)[0], env)
            self._check_reader(iop, piece, memory, start, box, env)
        return values

    def _unwritten(self, iop: BoundIOp, piece: BoundSlice, box: Box, at: Sequence[int], env: Env) -> None:
        row, col = box[0] + int(at[0]), box[2] + int(at[1])
        raise InterpreterError(
            f"Nothing was written to element ({row}, {col}) of a slice of {piece.name} before it is read.",
            where=_where(iop, piece),
            witness={**env, "row": row, "col": col},
            remedy="write it first, or narrow the valid range of the target",
        )

    def _check_reader(
        self, iop: BoundIOp, piece: BoundSlice, memory: Memory, start: int, box: Box, env: Env
    ) -> None:
        """What this unit reads from dram, no other unit has written since the last sync."""
        writer = memory.writer_at(start, piece.strides, box)
        if writer is None:
            return
        foreign = (writer >= 0) & (writer != env["pid"])
        if foreign.any():
            row, col = np.argwhere(foreign)[0]
            raise InterpreterError(
                f"A unit reads an element of {piece.name} that unit {writer[row, col]} wrote, with no sync between.",
                where=_where(iop, piece),
                witness={**env, "row": box[0] + int(row), "col": box[2] + int(col)},
                remedy="put a sync.dram on that pointer between them",
            )

    def store(self, iop: BoundIOp, piece: BoundSlice, box: Box, env: Env, values: np.ndarray) -> None:
        """Write a box of a slice."""
        memory, start = self._locate(iop, piece, box, env)
        writer = memory.writer_at(start, piece.strides, box)
        if writer is not None:
            pid = env["pid"]
            foreign = (writer >= 0) & (writer != pid)
            if foreign.any():
                row, col = np.argwhere(foreign)[0]
                raise InterpreterError(
                    f"Units {writer[row, col]} and {pid} write the same element of {piece.name}.",
                    where=_where(iop, piece),
                    witness={**env, "row": box[0] + int(row), "col": box[2] + int(col)},
                    need="every element written by one unit only",
                )
            writer[...] = pid
        memory.values(start, piece.strides, box)[...] = values
        written = memory.written_at(start, piece.strides, box)
        if written is not None:
            written[...] = True

    def _read_boxes(self, iop: BoundIOp, target: Box, env: Env) -> list[Box]:
        """The box of each source that is read, checked to be valid there."""
        valid = [s.box(env) for s in iop.sources]
        boxes = iop.spec.reads(iop, target, valid)
        for piece, box, has in zip(iop.sources, boxes, valid, strict=True):
            if (
                has is not box
                and 0 not in extent(box)
                and (box[0] < has[0] or box[1] > has[1] or box[2] < has[2] or box[3] > has[3])
            ):
                raise InterpreterError(
                    f"The rows {box[0]}:{box[1]}, columns {box[2]}:{box[3]} of a slice of {piece.name} are read, but "
                    f"only the rows {has[0]}:{has[1]}, columns {has[2]}:{has[3]} are valid.",
                    where=_where(iop, piece),
                    witness=dict(env),
                    remedy="give the target the same valid range, or load the source with pad",
                )
        return boxes

    # --- iOps of one unit ------------------------------------------------------------------------

    def _pointwise(self, iop: BoundIOp, env: Env) -> None:
        """Values of the boxes read -> the values of the target's box."""
        target = iop.target.box(env)
        if 0 in extent(target):
            return
        boxes = self._read_boxes(iop, target, env)
        arrays = [self.load(iop, s, box, env) for s, box in zip(iop.sources, boxes, strict=True)]
        if iop.reads_target:
            arrays.append(self.load(iop, iop.target, target, env))
        assert iop.spec.meaning is not None
        self.store(iop, iop.target, target, env, iop.spec.meaning(iop, Region(env, target, boxes), *arrays))

    def _gather(self, iop: BoundIOp, env: Env) -> None:
        """As pointwise, but of the table only what the index names must have been written."""
        target = iop.target.box(env)
        if 0 in extent(target):
            return
        boxes = self._read_boxes(iop, target, env)
        table, region = iop.sources[0], Region(env, target, boxes)
        values = self.load(iop, table, boxes[0], env, check=False)
        index = self.load(iop, iop.sources[1], boxes[1], env)
        memory, start = self._locate(iop, table, boxes[0], env)
        written = memory.written_at(start, table.strides, boxes[0])
        if written is not None:
            holds = gather(_MaskGather(iop), region, written, index)  # type: ignore[arg-type]
            if not holds.all():
                at = np.argwhere(~holds)[0]
                row = index[at[0], at[1] if index.shape[1] > 1 else 0]
                self._unwritten(iop, table, (0, 0, 0, 0), (row, at[1] if table.cols > 1 else 0), env)
        self.store(iop, iop.target, target, env, gather(iop, region, values, index))  # type: ignore[arg-type]

    def _scatter(self, iop: BoundIOp, env: Env) -> None:
        """Write the elements that the index names; writes of several units may meet."""
        target = iop.target.box(env)
        boxes = self._read_boxes(iop, target, env)
        arrays = [self.load(iop, s, box, env) for s, box in zip(iop.sources, boxes, strict=True)]
        assert iop.spec.meaning is not None
        rows, cols, values = iop.spec.meaning(iop, Region(env, target, boxes), *arrays)
        memory, start = self._locate(iop, iop.target, target, env)
        place = (
            start + (rows - target[0]) * iop.target.strides[0] + (cols - target[2]) * iop.target.strides[1]
        )
        memory.array()[place] = values
        if memory.written is not None:
            memory.written[place] = True
        if memory.writer is not None:
            memory.writer[place] = SCATTER

    def _identity(self, iop: BoundIOp, env: Env) -> None:
        """Nothing moves, if both sides are the same elements."""
        sides = [
            np.sort(np.concatenate([_addresses(s, env) for s in side])) for side in (iop.targets, iop.sources)
        ]
        if not np.array_equal(*sides):
            raise InterpreterError(
                "The two sides of an identity are not the same elements.",
                where=print_iop(iop.node),
                witness=dict(env),
            )

    def _sync(self, iop: BoundIOp, env: Env) -> None:
        """Lockstep is a barrier after every iOp already; what was written is now everybody's."""
        memory = self._memory(iop.target.name, iop.target.level, iop.target.pointer, env["pid"])
        if iop.attrs["scope"] == "dram" and memory.writer is not None:
            memory.writer[:] = NOBODY

    # --- iOps of a group -------------------------------------------------------------------------

    def _group(self, iop: BoundIOp, envs: list[Env]) -> None:
        size = int(iop.attrs["group_size"])
        if self.num_units % size:
            raise InterpreterError(
                f"A group of {self.num_units} units has no sets of {size}.",
                where=print_iop(iop.node),
                need="num_units % group_size == 0",
            )
        sets: dict[int, list[Env]] = {}
        for env in envs:
            sets.setdefault(env["pid"] // size, []).append(env)
        if any(len(members) != size for members in sets.values()):
            raise InterpreterError("Only some units of a group run.", where=print_iop(iop.node))
        self._use_buffers(iop, list(sets.values()))
        for members in sets.values():
            (self._group_reduce if iop.op == "reduce" else self._group_broadcast)(iop, members)

    def _use_buffers(self, iop: BoundIOp, sets: list[list[Env]]) -> None:
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
                        where=_where(iop, buffer),
                        witness=dict(env),
                    )
            memory, start = self._locate(iop, buffer, box, lead)
            mine = set(_addresses(buffer, lead).tolist())
            others = used.setdefault(lead["pid"] // self.num_units, set())
            if others & mine:
                raise InterpreterError(
                    "The buffers of two sets of one group meet.",
                    where=_where(iop, buffer),
                    witness=dict(lead),
                    remedy=f"let the offset depend on pid % {self.num_units} / {len(members)}",
                )
            others |= mine
            written = memory.written_at(start, buffer.strides, box)
            if written is not None:
                written[...] = False

    def _group_reduce(self, iop: BoundIOp, members: list[Env]) -> None:
        lead = members[0]
        target = iop.target.box(lead)
        if 0 in extent(target):
            return
        partials = []
        for env in members:
            boxes = self._read_boxes(iop, target, env)
            source = self.load(iop, iop.sources[0], boxes[0], env)
            assert iop.spec.meaning is not None
            partials.append(iop.spec.meaning(iop, Region(env, target, boxes), source))
        stacked = np.stack([p.reshape(-1) for p in partials])
        total = reduce_array(REDUCE[iop.name], iop.dtype, stacked, 0)
        self.store(iop, iop.target, target, lead, total.reshape(extent(target)))

    def _group_broadcast(self, iop: BoundIOp, members: list[Env]) -> None:
        lead, piece = members[0], iop.sources[0]
        held = piece.box(lead)
        if 0 in extent(held):
            return
        source = self.load(iop, piece, held, lead).astype(dtype_of(iop.dtype).numpy, copy=True)
        for env in members:
            target = iop.target.box(env)
            if 0 in extent(target):
                continue
            box = iop.spec.reads(iop, target, [held])[0]
            if box[0] < held[0] or box[1] > held[1] or box[2] < held[2] or box[3] > held[3]:
                raise InterpreterError(
                    f"Unit {lead['pid']} has only the rows {held[0]}:{held[1]}, columns {held[2]}:{held[3]}, but "
                    f"{box[0]}:{box[1]}, {box[2]}:{box[3]} are broadcast.",
                    where=_where(iop, piece),
                    witness=dict(env),
                )
            values = source[box[0] - held[0] : box[1] - held[0], box[2] - held[2] : box[3] - held[2]]
            self.store(iop, iop.target, target, env, np.broadcast_to(values, extent(target)))


class _MaskGather:
    """A gather of the mask of written elements; what it does not read counts as written."""

    def __init__(self, iop: BoundIOp) -> None:
        self.op, self.dtype, self.attrs = iop.op, "bool", {"pad": 1}
        self.target, self.sources = iop.target, iop.sources


_SPECIAL = {
    "gather": _Machine._gather,
    "scatter": _Machine._scatter,
    "identity": _Machine._identity,
    "sync": _Machine._sync,
}


def _where(iop: BoundIOp, piece: BoundSlice) -> str:
    return f"{print_iop(iop.node)}, slice {print_slice(piece.node)}"


def _addresses(piece: BoundSlice, env: Env) -> np.ndarray:
    """The addresses of all elements of a slice's valid box, flat."""
    r0, r1, c0, c1 = piece.box(env)
    rows = np.arange(r0, r1)[:, None] * piece.strides[0]
    return (piece.offset(env) + rows + np.arange(c0, c1)[None, :] * piece.strides[1]).reshape(-1)
