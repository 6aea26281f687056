# SPDX-License-Identifier: Apache-2.0
"""Build and run one iGraph on a target, without a model around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from .. import hardware
from ..device.device_kernel import DeviceKernel
from ..errors import ShapeError
from ..igraph import IGraph
from ..igraph.dtypes import dtype_of, numpy_of
from ..igraph.sizes import admitted, elements_at
from ..one_at_a_time import one_at_a_time
from ..target import registry
from ..target.device_module import device_module
from ..target.place import AUTO
from ..target.record import TargetRecord


def signature_of(graph: IGraph, name: str = "kernel") -> tirx.PrimFunc:
    """An empty function with one flat buffer per parameter of the graph, in its order, and then its sizes.

    Where sizes decide how many elements a buffer has, that is a variable of its own: what a call gives is
    checked by `run_igraph`, not by the shape.
    """
    names = {str(size.name) for size in graph.sizes}
    params: list[Any] = []
    for p in graph.params:
        extent: Any = p.size
        if p.dims:
            own = f"{p.name}_elements"
            while own in names:
                own += "_"
            names.add(own)
            extent = tirx.Var(own, "int64")
        params.append(tirx.decl_buffer((extent,), dtype_of(p.dtype).tvm, name=p.name))
    params += [tirx.Var(str(size.name), "int64") for size in graph.sizes]
    empty = tirx.PrimFunc(params, tirx.Evaluate(tirx.const(0, "int32")))
    return empty.with_attr({"global_symbol": name, "tirx.noalias": True})


@one_at_a_time
def build_igraph(graph: IGraph, target: str | TargetRecord, device: str = AUTO) -> Any:
    """The executable of one iGraph; its function is ``kernel`` and takes flat tensors, then the sizes.

    Parameters
    ----------
    graph : IGraph
        A verified graph, for hardware of the target's kind.
    target : str or TargetRecord
        A row of `uir_tvm.target.registry.TARGETS`, or its name.
    device : str
        Name of one of the target's places; default: the best that this machine has.

    Returns
    -------
    tvm.runtime.Executable or tvm_ffi.Module
        ``built["kernel"]`` is the function; its tensors lie on the device of the place.

    Raises
    ------
    CodegenError
        What the target cannot emit.
    """
    spec = registry.get(target) if isinstance(target, str) else target
    place = spec.place(device)
    hw = hardware.get(place.found(), spec.kind) if place.device == "cpu" else graph.hardware
    there = hardware.with_instructions_of(graph.hardware, hw)
    lowered = spec.lower(graph.replace(hardware=there), signature_of(graph))
    if isinstance(lowered, DeviceKernel):
        return device_module({"kernel": lowered}, place)
    target_there = tvm.target.Target(place.target_config(hw))
    return tvm.compile(tvm.IRModule({"kernel": lowered}), target=target_there)


def run_igraph(
    graph: IGraph,
    target: str | TargetRecord,
    *arrays: np.ndarray,
    sizes: Mapping[str, int] | None = None,
    built: Any = None,
    device: str = AUTO,
) -> list[np.ndarray]:
    """Run one iGraph on a target, as `uir_tvm.igraph.interpreter.run` does in NumPy.

    Parameters
    ----------
    graph, target
        As for `build_igraph`.
    *arrays : numpy.ndarray, or one mapping from pointer name to numpy.ndarray
        The in and inout parameters in the order of the signature, of any shape with as many elements
        as the pointer has at these sizes, and of its dtype.  They are not written.
    sizes : mapping of str to int, optional
        A value for each of ``graph.sizes``.
    built : optional
        What `build_igraph` returned for this graph, target and device, to run it again: at any sizes.
    device : str
        As for `build_igraph`.

    Returns
    -------
    list of numpy.ndarray
        The inout and out parameters in the order of the signature, flat.  Elements that the graph
        does not write are zero.

    Raises
    ------
    ShapeError
        Inputs of the wrong number, size or dtype.
    SizeError
        A size without a value, a value for what is no size, or one that the size does not admit.
    CodegenError
        See `build_igraph`.
    DeviceModelError
        The host model of the device found a fault in the emitted code.
    """
    given, known = _by_name(graph, arrays), admitted(str(graph.name), graph.sizes, sizes or {})
    executable = built if built is not None else build_igraph(graph, target, device)
    spec = registry.get(target) if isinstance(target, str) else target
    there = tvm.device(spec.place(device).device)
    tensors, outputs = [], []
    for p in graph.params:
        count = elements_at(p, known)
        array = np.zeros(count, numpy_of(p.dtype)) if p.role == "out" else _checked(p, count, given[p.name])
        tensors.append(tensor_of(array, (count,), there))
        if p.role != "in":
            outputs.append(tensors[-1])
    executable["kernel"](*tensors, *known.values())
    return [t.numpy() for t in outputs]


def tensor_of(
    array: np.ndarray, shape: Sequence[int], device: tvm.runtime.Device | None = None
) -> tvm.runtime.Tensor:
    """A TVM tensor with a copy of an array's elements, on a device (default: the CPU)."""
    return tvm.runtime.tensor(np.ascontiguousarray(array).reshape(tuple(shape)), device)


def _by_name(graph: IGraph, arrays: Sequence[Any]) -> dict[str, np.ndarray]:
    names = [p.name for p in graph.params if p.role != "out"]
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        arrays = [arrays[0][name] for name in names if name in arrays[0]]
    if len(arrays) != len(names):
        raise ShapeError(
            f"`{graph.name}` takes {len(names)} inputs, {len(arrays)} were given.",
            need=", ".join(names),
            remedy="pass one array for each in and inout pointer",
        )
    return dict(zip(names, arrays, strict=True))


def _checked(pointer: Any, count: int, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    if array.size != count or array.dtype != numpy_of(pointer.dtype):
        raise ShapeError(
            f"The array for `{pointer.name}` has {array.size} elements of {array.dtype}.",
            need=f"{count} elements of {numpy_of(pointer.dtype)}",
        )
    return array
