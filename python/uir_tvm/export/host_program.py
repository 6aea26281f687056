# SPDX-License-Identifier: Apache-2.0
"""The program of an executable: its kernel graph as launches and library calls in order, and their memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ExportError
from ..runtime.executable import Executable
from ..runtime.model_info import KernelInfo
from .arena import Lifetime, plan
from .device_program import (
    INPUT,
    WEIGHT,
    WORKING,
    Buffer,
    HostFunction,
    HostProgram,
    HostStep,
    LibraryStep,
    NodeSteps,
    in_texts,
    plain_size,
)
from .kernel_call import KernelLaunches
from .open_sizes import OpenSizes, launch_values
from .variant_steps import launches


def host_program(exe: Executable, sizes: OpenSizes | None = None) -> HostProgram:
    """The program of an executable: kernels are source text for the device, or C for the host.

    Parameters
    ----------
    exe : Executable
    sizes : OpenSizes, optional
        Of one that serves all sizes: these.

    Raises
    ------
    ExportError
        A kernel that is neither, a model with state, or an executable without a kernel graph; of one that
        serves all sizes what exists for the sizes of a call alone.
    """
    open_sizes = sizes or OpenSizes()
    if exe.info.state:
        raise ExportError(
            f"`{exe.info.name}` has state, which a project's program does not hold.",
            need="a model without state",
            limit="; ".join(map(str, exe.info.state)),
            remedy="let the model take its state as inputs and return it",
        )
    host = _host_functions(exe)
    graph = _graph_of(exe)
    kernels = {kernel.name: kernel for kernel in exe.info.kernels}
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    buffers = _buffers(graph, tensors, open_sizes)
    groups: list[NodeSteps] = []
    for number, node in enumerate(graph["nodes"]):
        title = " + ".join(node["ops"])
        _refuse(exe, node)
        if node["type"] == "library":
            step = LibraryStep(
                node["kind"], json.dumps(node["attrs"]), tuple(node["inputs"]), *node["outputs"]
            )
            groups.append(NodeSteps(title, (step,)))
            continue
        if node["kernel"] in host:
            groups.append(
                NodeSteps(f"{title}: {node['kernel']}", (_host_step(kernels[node["kernel"]], node, buffers),))
            )
            continue
        operands = (*node["inputs"], *node["outputs"])
        kernel = kernels[node["kernel"]]
        values = launch_values(kernel.code, [buffers[name].shape for name in operands])
        call = KernelLaunches(kernel.code, operands, buffers, open_sizes, values)
        steps, variants = launches(kernel, operands, buffers, call, f"workspace_{number}_")
        open_sizes = call.open
        groups.append(NodeSteps(f"{title}: {node['kernel']}", steps, variants))
    inputs = tuple(zip(map(in_texts, exe.info.inputs), graph["inputs"], strict=True))
    results = [output["tensor"] for output in graph["outputs"]]
    outputs = tuple(zip(map(in_texts, exe.info.outputs), results, strict=True))
    lifetimes = _lifetimes(buffers, groups, results)
    return HostProgram(
        name=exe.info.name,
        hardware=_hardware(exe),
        buffers=buffers,
        groups=tuple(groups),
        inputs=inputs,
        outputs=outputs,
        sources=_sources(kernel for kernel in exe.info.kernels if kernel.name not in host),
        arena=None if open_sizes.names else plan(lifetimes),
        constants=plan([Lifetime(b.name, b.nbytes, 0, 0) for b in buffers.values() if b.role == WEIGHT]),
        host=host,
        lifetimes=lifetimes,
        open=open_sizes,
    )


def _sources(kernels: Iterable[KernelInfo]) -> dict[str, str]:
    """Texts of kernels and of their variants, by their names."""
    found: dict[str, str] = {}
    for kernel in kernels:
        found[kernel.name] = str(kernel.texts["source"])
        found |= {row["kernel"]: row["source"] for row in kernel.variants if "source" in row}
    return found


def _refuse(exe: Executable, node: Mapping[str, Any]) -> None:
    """Refuse a node that is nothing of a project's."""
    if node["type"] == "opaque":
        raise ExportError(
            f"`{exe.info.name}` has an operator that PyTorch computes, {node['kind']}.",
            need="a model of kernels, library calls and functions of the host",
            limit=node["reason"],
            remedy="compile it with converters for the operator",
        )
    if node["type"] not in ("library", "custom"):
        raise ExportError(
            f"`{exe.info.name}` has a kernel that is compiled for the sizes of a call, {node['kernel']}.",
            need="kernels for all sizes",
            limit=node["reason"],
            remedy="compile the model for the sizes of the project (uir compile --size NAME=37), "
            "and export that",
        )


def _graph_of(exe: Executable) -> Mapping[str, Any]:
    """The kernel graph as plain data; of one kernel the graph of its call."""
    if exe.kernel_graph is not None:
        return json.loads(exe.kernel_graph.to_json())  # type: ignore[no-any-return]
    kernels = exe.info.kernels
    roles = [row["role"] for row in kernels[0].code.get("params", ())] if len(kernels) == 1 else []
    inputs, outputs = ([spec.name for spec in specs] for specs in (exe.info.inputs, exe.info.outputs))
    if roles != ["in"] * len(inputs) + ["out"] * len(outputs):
        raise ExportError(
            f"`{exe.info.name}` has kernels, but no kernel graph that says how they are called.",
            need="a model, or one kernel that takes its inputs and then its outputs, and updates none",
            limit=", ".join(kernel.name for kernel in kernels) or "no kernel",
            remedy="compile a model that calls it",
        )
    rows = [
        {"name": spec.name, "shape": [plain_size(size) for size in spec.shape], "dtype": spec.dtype}
        for spec in (*exe.info.inputs, *exe.info.outputs)
    ]
    name = kernels[0].name
    node = {"type": "custom", "kernel": name, "ops": [name], "inputs": inputs, "outputs": outputs}
    return {
        "tensors": [{**row, "constant": False} for row in rows],
        "inputs": inputs,
        "outputs": [{"tensor": output} for output in outputs],
        "nodes": [node],
    }


def _host_functions(exe: Executable) -> dict[str, HostFunction]:
    """The kernels that the device does not take, as C."""
    found, refused = {}, []
    for kernel in exe.info.kernels:
        if not kernel.fallback:
            continue
        code = kernel.code.get("host", {"refused": "the executable has no C of it: compile the model again"})
        reason = _first_line(kernel.fallback)
        if "refused" in code:
            refused.append(f"    {kernel.name}: {reason} (and {_first_line(code['refused'])})")
        else:
            found[kernel.name] = HostFunction(code["source"], reason)
    if refused:
        raise ExportError(
            f"{len(refused)} of {len(exe.info.kernels)} kernels of `{exe.info.name}` run on the host, and "
            "cannot be written as C:\n" + "\n".join(refused),
            need="source text of the device for every kernel, or C of it",
            remedy="change what the reasons name (its dtype, shape or operator), or run the executable, "
            "which has these kernels for the host: uir run FILE",
        )
    return found


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason was saved"])[0]


def _hardware(exe: Executable) -> str:
    """The hardware model of the kernels; of the target's name where there are none."""
    names = {str(kernel.code["hardware"]) for kernel in exe.info.kernels if "hardware" in kernel.code}
    assert len(names) <= 1, names
    if names:
        return names.pop()
    from ..schedule.hardware_of import model_of_target
    from ..target import registry

    return str(model_of_target(registry.resolve(exe.info.target, exe.info.device).target).name)


def _buffers(graph: Mapping[str, Any], tensors: Mapping[str, Any], sizes: OpenSizes) -> dict[str, Buffer]:
    """The tensors of the graph that the program touches, in the order of their first use."""
    read = [name for node in graph["nodes"] for name in (*node["inputs"], *node["outputs"])]
    returned = [output["tensor"] for output in graph["outputs"]]
    buffers = {}
    for name in dict.fromkeys([*graph["inputs"], *read, *returned]):
        row = tensors[name]
        role = WEIGHT if row["constant"] else INPUT if name in graph["inputs"] else WORKING
        shape = tuple(map(plain_size, row["shape"]))
        buffers[name] = Buffer(name, row["dtype"], shape, sizes.nbytes(shape, row["dtype"]), role)
    return buffers


def _host_step(kernel: KernelInfo, node: Mapping[str, Any], buffers: Mapping[str, Buffer]) -> HostStep:
    """A function of the host on the tensors of a node; of sizes that a call decides the tensors tell."""
    rows, operands = kernel.code["host"]["params"], (*node["inputs"], *node["outputs"])
    assert len(rows) == len(operands), (kernel.name, rows, operands)
    shapes = [
        buffers[name].shape if None in row["shape"] else tuple(row["shape"])
        for row, name in zip(rows, operands, strict=True)
    ]
    params = tuple((row["dtype"], shape) for row, shape in zip(rows, shapes, strict=True))
    return HostStep(kernel.name, operands, len(node["inputs"]), params)


def _lifetimes(
    buffers: Mapping[str, Buffer], groups: Sequence[NodeSteps], returned: Sequence[str]
) -> tuple[Lifetime, ...]:
    """Inputs live always (the program may run again), working buffers from first use to last or the end."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for step, group in enumerate(groups):
        for name in (name for one in group.every_step() for name in one.buffers):
            first.setdefault(name, step)
            last[name] = step
    end = len(groups)
    found = []
    for buffer in buffers.values():
        if buffer.role == INPUT:
            found.append(Lifetime(buffer.name, buffer.nbytes, 0, end))
        elif buffer.role == WORKING:
            until = end if buffer.name in returned else last[buffer.name]
            found.append(Lifetime(buffer.name, buffer.nbytes, first[buffer.name], until))
    return tuple(found)
