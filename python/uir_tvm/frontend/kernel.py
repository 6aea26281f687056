# SPDX-License-Identifier: Apache-2.0
"""One kernel -> Relax: a module whose ``main`` calls a PrimFunc, or an iGraph, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import relax, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi.structural import WalkResult, structural_walk

from ..errors import FrontendError, ShapeError
from ..igraph import IGraph
from ..igraph.dtypes import to_tvm
from ..one_at_a_time import one_at_a_time

#: Attribute of a PrimFunc that stands for an iGraph: the iGraph's text.
IGRAPH = "uir.igraph"


@one_at_a_time
def from_prim_func(func: tirx.PrimFunc, name: str | None = None) -> tvm.IRModule:
    """A module whose ``main`` takes the buffers that a PrimFunc reads and returns those that it writes.

    Parameters
    ----------
    func : PrimFunc
        In S-TIR, scheduled or not; its parameters are buffers of static shape.
    name : str, optional
        Of the kernel; default: its global symbol.

    Raises
    ------
    FrontendError
        A parameter is no buffer, or nothing is written.
    ShapeError
        A symbolic shape.
    """
    written: list[tirx.Var] = []

    def store(statement: tirx.BufferStore) -> WalkResult:
        written.append(statement.buffer)
        return WalkResult.ADVANCE

    structural_walk(func.body, (tirx.BufferStore, store), order="pre")
    return _module(func, [param in written for param in func.params], name)


@one_at_a_time
def from_igraph(graph: IGraph) -> tvm.IRModule:
    """A module whose ``main`` takes the flat ``in`` pointers of an iGraph and returns its ``out`` pointers.

    Raises
    ------
    FrontendError
        A pointer is both read and written by the caller (``inout``), or none is written.
    """
    both = [pointer.name for pointer in graph.params if pointer.role == "inout"]
    if both:
        raise FrontendError(
            f"The iGraph `{graph.name}` updates {', '.join(both)} in place.",
            need="pointers of role in or out",
            remedy="give the result a pointer of its own",
        )
    params = [tirx.decl_buffer((p.size,), to_tvm(p.dtype), name=p.name) for p in graph.params]
    root = SBlock([], [], [], "root", tirx.Evaluate(0))
    func = tirx.PrimFunc(params, SBlockRealize([], True, root))
    func = func.with_attr({"s_tir": True, "tirx.noalias": True, IGRAPH: str(graph)})
    return _module(func, [pointer.role == "out" for pointer in graph.params], graph.name)


def _module(func: tirx.PrimFunc, written: Sequence[bool], name: str | None) -> tvm.IRModule:
    label = name or str((func.attrs or {}).get("global_symbol", "kernel"))
    # Relax's own function has this name.
    label = "kernel" if label == "main" else label
    for param in func.params:
        if not tirx.buffer.is_buffer_var(param):
            raise FrontendError(
                f"The parameter `{param.name}` of `{label}` is a scalar.",
                need="buffers",
                remedy="make it a constant of the function",
            )
    reads = [param for param, output in zip(func.params, written, strict=True) if not output]
    writes = [param for param, output in zip(func.params, written, strict=True) if output]
    if not writes:
        raise FrontendError(f"`{label}` writes no parameter.", need="at least one output")
    if list(written) != sorted(written):
        raise FrontendError(
            f"The parameters of `{label}` are not in order.",
            need="the inputs, then the outputs",
            limit=", ".join(str(param.name) for param in func.params),
            remedy="reorder them",
        )
    builder = relax.BlockBuilder()
    inputs = [relax.Var(str(param.name), _type(param)) for param in reads]
    types = [_type(param) for param in writes]
    with builder.function("main", inputs):
        kernel = builder.add_func(func.with_attr("global_symbol", label), label)
        with builder.dataflow():
            call = relax.call_tir(kernel, relax.Tuple(inputs), types if len(types) > 1 else types[0])
            result = builder.emit_output(builder.emit(call))
        builder.emit_func_output(result)
    return builder.get()


def _type(param: tirx.Var) -> relax.TensorType:
    for extent in param.ty.shape:
        if not isinstance(extent, tirx.IntImm):
            raise ShapeError(
                f"`{param.name}` has a dynamic dimension {extent}.",
                need="static shapes",
                remedy="specialise the function for one shape",
            )
    return relax.TensorType([int(extent) for extent in param.ty.shape], str(param.ty.dtype))
