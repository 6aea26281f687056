# SPDX-License-Identifier: Apache-2.0
"""Runs a graph with its reg and sram pointers in one array of bytes per unit and group, at their addresses.

Units run one after the other up to the next barrier, in a random order, so that what only lockstep hides
shows.  Beside the bytes there is who wrote each: a read of a byte that another pointer took is an error,
whatever its value.  Nothing here knows of live ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.bound import BoundIOp, BoundLoop, Env, bind
from uir_tvm.igraph.dtypes import bytes_of
from uir_tvm.igraph.execute import execute
from uir_tvm.igraph.execute_group import execute_group
from uir_tvm.igraph.iops_reads import Box
from uir_tvm.igraph.memory import Memory
from uir_tvm.igraph.nodes import IPointer
from uir_tvm.igraph.run_memories import RunMemories


class AliasedMachine(RunMemories):
    """Memories on chip as views of one array each."""

    def __init__(self, graph: IGraph, given: dict[str, np.ndarray]) -> None:
        super().__init__(graph, given)
        self.lockstep = True
        self.at = {str(k): int(v) for k, v in graph.attrs["addresses"].items()}
        self.sizes = {str(k): int(v) for k, v in graph.attrs["peak"].items()}
        self.index = {str(p.name): k for k, p in enumerate(graph.pointers)}
        self.arenas: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}

    def owner(self, level: str, pid: int) -> int:
        return pid if level == "reg" else pid // self.num_units

    def arena(self, level: str, pid: int) -> tuple[np.ndarray, np.ndarray]:
        """(bytes, who wrote each)."""
        key = (level, self.owner(level, pid))
        if key not in self.arenas:
            size = self.sizes[level]
            self.arenas[key] = np.full(size, 0xA5, np.uint8), np.full(size, -1, np.int64)
        return self.arenas[key]

    def _memory(self, name: str, level: str, pointer: IPointer, pid: int) -> Memory:
        known = len(self._memories)
        memory = super()._memory(name, level, pointer, pid)
        if len(self._memories) > known and level != "dram":
            size = memory.size * memory.dtype.itemsize
            memory._bytes = self.arena(level, pid)[0][self.at[name] : self.at[name] + size]
            assert len(memory._bytes) == size, f"{name} lies beyond the peak"
        return memory

    def touch(self, piece: Any, box: Box, env: Env, write: bool, where: str) -> None:
        """Check (or set) who wrote the bytes of a box of a slice."""
        if piece.level == "dram" or 0 in (box[1] - box[0], box[3] - box[2]):
            return
        width = bytes_of(str(piece.pointer.dtype))
        rows = np.arange(box[0], box[1])[:, None] * piece.strides[0]
        elements = (piece.offset(env) + rows + np.arange(box[2], box[3])[None, :] * piece.strides[1]).reshape(
            -1
        )
        tags = self.arena(piece.level, env["pid"])[1]
        for byte in range(width):
            places = self.at[piece.name] + elements * width + byte
            wanted = self.index[piece.name] * (1 << 32) + elements * width + byte
            if write:
                tags[places] = wanted
            else:
                assert (tags[places] == wanted).all(), f"{piece.name} was overwritten before {where}"


def run_aliased(graph: IGraph, inputs: Sequence[np.ndarray], seed: int = 0) -> list[np.ndarray]:
    """The inout and out parameters, as `interpreter.run` gives them."""
    wanted = [p for p in graph.params if p.role != "out"]
    machine = AliasedMachine(graph, {str(p.name): a for p, a in zip(wanted, inputs, strict=True)})
    rng = np.random.default_rng(seed)
    pids = range(graph.num_parallel)
    traces = [list(_trace(bind(graph.body), {"pid": pid})) for pid in pids]
    at = 0
    with np.errstate(all="ignore"):
        while at < len(traces[0]):
            end = next((k for k in range(at, len(traces[0])) if _joins(traces[0][k][0])), len(traces[0]))
            for pid in rng.permutation(graph.num_parallel):
                for iop, env in traces[pid][at:end]:
                    if env is not None:
                        _one(machine, iop, env)
            if end < len(traces[0]):
                _all(machine, traces[0][end][0], [trace[end][1] for trace in traces])
            at = end + 1
    return [machine.memory(p, 0).array().copy() for p in graph.params if p.role != "in"]


def _trace(body: Sequence[BoundIOp | BoundLoop], env: Env, runs: bool = True) -> Any:
    """All iOps, equally many of every unit: with no variables in rounds that the unit does not run."""
    for node in body:
        if isinstance(node, BoundLoop):
            rounds = node.extent if node.rounds is None else node.rounds(env)
            for value in range(node.extent):
                yield from _trace(node.body, env | {node.var: value}, runs and value < rounds)
        else:
            yield node, dict(env) if runs else None


def _joins(iop: BoundIOp) -> bool:
    return iop.op == "sync" or iop.is_group


def _one(machine: AliasedMachine, iop: BoundIOp, env: Env) -> None:
    where = str(iop.node.op)
    if iop.op in ("sync", "identity"):
        return
    target = iop.target.box(env)
    if iop.op == "scatter" or (target[0] < target[1] and target[2] < target[3]):
        for piece, box in zip(iop.sources, machine.read_boxes(iop, target, env), strict=True):
            machine.touch(piece, box, env, False, where)
        if iop.reads_target:
            machine.touch(iop.target, target, env, False, where)
    execute(machine, iop, env)
    machine.touch(iop.target, target, env, True, where)


def _all(machine: AliasedMachine, iop: BoundIOp, envs: list[Env]) -> None:
    if iop.op == "sync":
        for env in envs:
            execute(machine, iop, env)
        return
    execute_group(machine, iop, envs)
    size = int(iop.attrs["group_size"])
    for env in envs:
        if iop.op == "broadcast" or env["pid"] % size == 0:
            machine.touch(iop.target, iop.target.box(env), env, True, "group form")
