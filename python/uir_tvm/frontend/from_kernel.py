# SPDX-License-Identifier: Apache-2.0
"""One kernel -> Relax: a module whose ``main`` calls a PrimFunc, or an iGraph, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.s_tir import SBlock, SBlockRealize

from ..bound_kernel import symbols_in
from ..errors import FrontendError, OpenSizeError
from ..extract.roles import roles_of
from ..function_scope import function_scope
from ..igraph import IGraph
from ..igraph.dtypes import to_tvm
from ..one_at_a_time import one_at_a_time
from .open_model import BoundAtOnce, has_open_sizes
from .relax_symbols import OpenKernel

#: Attribute of a PrimFunc that stands for an iGraph: the iGraph's text.
IGRAPH = "uir.igraph"


@one_at_a_time
def from_prim_func(func: tirx.PrimFunc, name: str | None = None) -> tvm.IRModule:
    """A module whose ``main`` takes what a PrimFunc reads and returns what it writes.

    A parameter whose old values count (it is updated, or written in part, or under a condition) is both:
    ``main`` takes it, leaves the caller's tensor as it is, and returns it as it is afterwards.

    Parameters
    ----------
    func : PrimFunc
        In S-TIR, scheduled or not; its parameters are buffers.
    name : str, optional
        Of the kernel; default: its global symbol.

    Raises
    ------
    FrontendError
        A parameter is no buffer, nothing is written, or an output stands before an input.
    DynamicShapeError
        A symbolic shape; its ``model`` can be bound to sizes.
    """
    _check_params(func, name)
    if symbols_in(func):
        opened = OpenKernel(func, roles_of)
        raise has_open_sizes(
            BoundAtOnce(
                opened.signature, lambda sizes: from_prim_func(opened.bound(sizes), name), kernel=opened
            )
        )
    return _module(func, roles_of(func), name)


@one_at_a_time
def open_module(
    func: tirx.PrimFunc, roles: Sequence[str], variables: Mapping[str, Any]
) -> tuple[tvm.IRModule, str]:
    """A module whose ``main`` takes what a kernel reads and the sizes that it leaves open; the kernel's name.

    Raises
    ------
    OpenSizeError
        A parameter is both read and written, or two sizes have one name.
    """
    if "inout" in roles or any(str(each.name) != name for name, each in variables.items()):
        raise OpenSizeError(
            "The kernel is compiled for numbers.",
            need="parameters that are read or written, not both, and sizes of different names",
            remedy="write to another buffer",
        )
    return _module(func, roles, None, list(variables.values())), _label(func, None)


@one_at_a_time
def from_igraph(graph: IGraph) -> tvm.IRModule:
    """A module whose ``main`` takes an iGraph's ``in`` and ``inout`` pointers, flat, and returns all written.

    Raises
    ------
    FrontendError
        No pointer is written, or an output stands before an input.
    """
    params = [tirx.decl_buffer((p.size,), to_tvm(p.dtype), name=p.name) for p in graph.params]
    root = SBlock([], [], [], "root", tirx.Evaluate(0))
    func = tirx.PrimFunc(params, SBlockRealize([], True, root))
    func = func.with_attr({"s_tir": True, "tirx.noalias": True, IGRAPH: str(graph)})
    return _module(func, [str(pointer.role) for pointer in graph.params], graph.name)


def _label(func: tirx.PrimFunc, name: str | None) -> str:
    label = name or str((func.attrs or {}).get("global_symbol", "kernel"))
    # Relax's own function has this name.
    return "kernel" if label == "main" else label


def _check_params(func: tirx.PrimFunc, name: str | None) -> None:
    for param in func.params:
        if not tirx.buffer.is_buffer_var(param):
            raise FrontendError(
                f"The parameter `{param.name}` of `{_label(func, name)}` is a scalar.",
                need="buffers",
                remedy="make it a constant of the function",
            )


def _module(
    func: tirx.PrimFunc, roles: Sequence[str], name: str | None, sizes: Sequence[Any] = ()
) -> tvm.IRModule:
    label = _label(func, name)
    given = [param for param, role in zip(func.params, roles, strict=True) if role != "out"]
    updated = [param for param, role in zip(func.params, roles, strict=True) if role == "inout"]
    made = [param for param, role in zip(func.params, roles, strict=True) if role == "out"]
    if not updated and not made:
        raise FrontendError(f"`{label}` writes no parameter.", need="at least one output")
    if list(func.params) != [*given, *made]:
        raise FrontendError(
            f"The parameters of `{label}` are not in order.",
            need="the inputs and what is updated, then the outputs",
            limit=", ".join(f"{param.name} ({role})" for param, role in zip(func.params, roles, strict=True)),
            remedy="reorder them",
        )
    builder = relax.BlockBuilder()
    inputs = [relax.Var(str(param.name), _type(param)) for param in given]
    shape = [relax.Var("sizes", relax.ShapeType(values=list(sizes)))] if sizes else []
    with function_scope(builder, "main", [*inputs, *shape]):
        kernel = builder.add_func(func.with_attr("global_symbol", label), label)
        with builder.dataflow():
            # the kernel updates copies: the caller's tensors stay as they are
            arguments = [
                _copy(builder, value, f"{label}_{param.name}") if param in updated else value
                for param, value in zip(given, inputs, strict=True)
            ]
            places = [given.index(param) for param in updated] + [-1] * len(made)
            types = [_type(param) for param in (*updated, *made)]
            out = types if len(types) > 1 else types[0]
            if updated:
                call = relax.op.call_tir_inplace(kernel, relax.Tuple(arguments), places, out)
            else:
                call = relax.call_tir(kernel, relax.Tuple(arguments), out)
            result = builder.emit_output(builder.emit(call))
        builder.emit_func_output(result)
    return builder.get()


def _copy(builder: relax.BlockBuilder, value: relax.Var, label: str) -> relax.Var:
    """A tensor of its own with the elements of another, made by a kernel."""
    shape = [int(extent) for extent in value.ty.shape]
    source = te.placeholder(shape, str(value.ty.dtype), "source")
    copied = te.compute(shape, lambda *place: source[place], "copied")
    func = te.create_prim_func([source, copied]).with_attr("global_symbol", f"{label}_copy")
    kernel = builder.add_func(func, f"{label}_copy")
    return builder.emit(relax.call_tir(kernel, relax.Tuple([value]), value.ty))


def _type(param: tirx.Var) -> relax.TensorType:
    shape = [int(e) if isinstance(e, tirx.IntImm) else e for e in param.ty.shape]
    return relax.TensorType(shape, str(param.ty.dtype))
