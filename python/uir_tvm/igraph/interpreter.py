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
from .bound import BoundIOp, BoundLoop, Env, bind
from .domain import VALUES, Values
from .execute import execute
from .execute_group import execute_group
from .iops import problems, spec_of
from .memory import NOBODY, Memory
from .nodes import IGraph, IPointer
from .run_memories import RunMemories
from .sizes import at
from .text import print_iop
from .working_rounds import working_rounds


def run(
    graph: IGraph,
    *arrays: Any,
    units: Sequence[int] | None = None,
    allow_unwritten: bool = False,
    sizes: Mapping[str, int] | None = None,
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
    sizes : mapping of str to int, optional
        A value for each of ``graph.sizes``.

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
        An iOp breaks a rule of the table; a size has no value, or one that it does not admit.
    uir_tvm.errors.InterpreterError
        Out-of-bounds access, read of memory that nothing wrote, two units that write one dram
        element, an output element that nothing wrote; with the iOp, the slice and a witness.
    """
    graph = at(graph, {} if sizes is None else sizes)
    given = _inputs(graph, arrays, VALUES)
    machine = _run(graph, given, units, {}, VALUES)
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


def run_partly(
    graph: IGraph,
    inputs: Mapping[str, np.ndarray],
    *,
    units: Sequence[int] | None = None,
    iterations: Mapping[str, Sequence[int]] | None = None,
    domain: Values = VALUES,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Run some units and some iterations of some loops, in any domain.

    An iteration of a loop named in ``iterations`` starts with nothing in the registers and sram that the
    loop writes, so that one which relies on another is an error and no wrong number.  What goes through
    dram from one iteration to the next is the caller's to know of.

    Parameters
    ----------
    inputs : Mapping[str, numpy.ndarray]
        The in and inout parameters by name, of ``domain``'s storage.
    units : sequence of int, optional
        The pids to run instead of all.
    iterations : Mapping[str, sequence of int], optional
        The iterations to run instead of all, in order, by loop variable.
    domain : Values
        What the elements are.

    Returns
    -------
    list of (numpy.ndarray, numpy.ndarray)
        Values and a mask of the elements that were written, flat, of the inout and out parameters in the
        order of the signature.

    Raises
    ------
    UirError
        As `run`; elements of an output may stay unwritten.
    """
    given = _inputs(graph, (inputs,), domain)
    machine = _run(graph, given, units, iterations or {}, domain)
    # a barrier forgets who wrote an inout
    synced = any(spec_of(iop).barrier or iop.attrs.get("scope") == "group" for iop, _ in graph.walk())
    outputs = []
    for pointer in graph.params:
        if pointer.role == "in":
            continue
        memory = machine.memory(pointer, 0)
        if memory.written is not None:
            mask = memory.written
        elif synced or memory.writer is None:
            mask = np.ones(memory.size, np.bool_)
        else:
            mask = memory.writer != NOBODY
        outputs.append((memory.array().copy(), mask.copy()))
    return outputs


def _run(
    graph: IGraph,
    given: Mapping[str, np.ndarray],
    units: Sequence[int] | None,
    iterations: Mapping[str, Sequence[int]],
    domain: Values,
) -> RunMemories:
    for iop, _ in graph.walk():
        for rule, text in problems(iop):
            raise IGraphError(f"An iOp breaks its {rule} rule: {text}.", where=print_iop(iop))
    machine = RunMemories(graph, given, domain)
    machine.iterations = iterations
    body = bind(graph.body)
    pids = list(range(graph.num_parallel)) if units is None else sorted(units)
    machine.leader = pids[0] if pids else 0
    with np.errstate(all="ignore"):
        if machine.lockstep:
            _walk(machine, body, [{"pid": pid} for pid in pids])
        else:
            for pid in pids:
                machine.forget()
                _walk(machine, body, [{"pid": pid}])
    return machine


def _inputs(graph: IGraph, arrays: Sequence[Any], domain: Values) -> dict[str, np.ndarray]:
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
        if array.size != pointer.size or array.dtype != domain.storage(str(pointer.dtype)):
            raise ShapeError(
                f"The input {pointer.name} has {array.size} elements of {array.dtype}.",
                where=graph.name,
                need=f"{pointer.size} of {domain.storage(str(pointer.dtype))}",
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


def _walk(machine: RunMemories, body: Sequence[BoundIOp | BoundLoop], envs: list[Env]) -> None:
    """Run a loop tree, each iOp in all units of ``envs`` before the next."""
    for node in body:
        if isinstance(node, BoundLoop):
            chosen = machine.iterations.get(node.var)
            ends = {} if node.rounds is None else {id(env): node.rounds(env) for env in envs}
            for value in working_rounds(node, envs) if chosen is None else chosen:
                if chosen is not None:
                    machine.forget_pointers(node.written)
                inside = [env for env in envs if value < ends.get(id(env), value + 1)]
                for env in inside:
                    env[node.var] = value
                _walk(machine, node.body, inside)
            for env in envs:
                env.pop(node.var, None)
        elif node.is_group:
            execute_group(machine, node, envs)
        else:
            for env in envs:
                execute(machine, node, env)
