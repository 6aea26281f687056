# SPDX-License-Identifier: Apache-2.0
"""What a project's host program does: memory, and launches and library calls in order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..errors import ExportError
from ..runtime.executable import Executable
from ..runtime.model_info import KernelInfo
from ..runtime.tensors import TensorSpec
from .arena import Arena, Lifetime, plan

#: Roles of a buffer.
INPUT, WEIGHT, WORKING = "input", "weight", "working"


@attrs.frozen
class Buffer:
    """Device memory of one tensor, or of what the launches of a kernel hand over.

    Parameters
    ----------
    name : str
        Unique in its program.
    dtype : str
    shape : tuple of int
    nbytes : int
    role : str
        ``input``, ``weight`` (known when the project is written) or ``working``.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    role: str


@attrs.frozen
class KernelStep:
    """A launch: function, blocks, and the names of the buffers in the function's order."""

    function: str
    blocks: int
    operands: tuple[str, ...]

    @property
    def buffers(self) -> tuple[str, ...]:
        """All that it touches."""
        return self.operands


@attrs.frozen
class LibraryStep:
    """A call of the library: ``matmul`` or ``conv2d``, its attributes as JSON, inputs and output."""

    kind: str
    attrs: str
    operands: tuple[str, ...]
    result: str

    @property
    def buffers(self) -> tuple[str, ...]:
        """All that it touches."""
        return (*self.operands, self.result)


@attrs.frozen
class HostStep:
    """A function of the host: its name, the buffers of its parameters, and how many of them it only reads.

    ``params`` has the dtype and the shape of each parameter.
    """

    function: str
    operands: tuple[str, ...]
    inputs: int
    params: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def buffers(self) -> tuple[str, ...]:
        """All that it touches."""
        return self.operands


Step = KernelStep | LibraryStep | HostStep


@attrs.frozen
class HostFunction:
    """What the device does not take: its C, and why."""

    source: str
    reason: str


@attrs.frozen
class NodeSteps:
    """Steps of one node of the kernel graph, and the model's operators in it."""

    title: str
    steps: tuple[Step, ...]


@attrs.frozen
class HostProgram:
    """A model as its device runs it.

    Parameters
    ----------
    name : str
        Of the model.
    hardware : str
        Name of the hardware model that it was compiled for.
    buffers : mapping of str to Buffer
    groups : tuple of NodeSteps
        In the order in which they run, on one stream.
    inputs : tuple of (TensorSpec, str)
        Of the model, with their buffers.
    outputs : tuple of (TensorSpec, str)
        Of the model, with the buffers that hold them; several may be one buffer, an input or a weight.
    sources : mapping of str to str
        Text of every kernel of the model, by its name.
    arena : Arena
        Where inputs and working buffers lie in one allocation.
    constants : Arena
        Where weights lie in another.
    host : mapping of str to HostFunction
        What runs on the host, by the kernel's name.
    """

    name: str
    hardware: str
    buffers: Mapping[str, Buffer]
    groups: tuple[NodeSteps, ...]
    inputs: tuple[tuple[TensorSpec, str], ...]
    outputs: tuple[tuple[TensorSpec, str], ...]
    sources: Mapping[str, str]
    arena: Arena
    constants: Arena
    host: Mapping[str, HostFunction] = attrs.field(factory=dict)

    @property
    def weights(self) -> tuple[Buffer, ...]:
        """Buffers whose contents are files of the project, in the order of their first use."""
        return tuple(buffer for buffer in self.buffers.values() if buffer.role == WEIGHT)

    def steps(self) -> Iterator[Step]:
        """All steps in order."""
        for group in self.groups:
            yield from group.steps


def host_program(exe: Executable) -> HostProgram:
    """The program of an executable: kernels are source text for the device, or C for the host.

    Raises
    ------
    ExportError
        A kernel that is neither, a model with state, or an executable without a kernel graph.
    """
    if exe.kernel_graph is None:
        raise ExportError(
            f"`{exe.info.name}` is one kernel, not a model.",
            need="an executable with a kernel graph",
            remedy="compile a model that calls it",
        )
    if exe.info.state:
        raise ExportError(
            f"`{exe.info.name}` has state, which a project's program does not hold.",
            need="a model without state",
            limit="; ".join(map(str, exe.info.state)),
            remedy="let the model take its state as inputs and return it",
        )
    host = _host_functions(exe)
    graph = json.loads(exe.kernel_graph.to_json())
    kernels = {kernel.name: kernel for kernel in exe.info.kernels}
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    buffers = _buffers(graph, tensors)
    groups: list[NodeSteps] = []
    for number, node in enumerate(graph["nodes"]):
        title = " + ".join(node["ops"])
        if node["type"] == "opaque":
            raise ExportError(
                f"`{exe.info.name}` has an operator that PyTorch computes, {node['kind']}.",
                need="a model of kernels, library calls and functions of the host",
                limit=node["reason"],
                remedy="compile it with converters for the operator",
            )
        if node["type"] == "library":
            step = LibraryStep(
                node["kind"], json.dumps(node["attrs"]), tuple(node["inputs"]), *node["outputs"]
            )
            groups.append(NodeSteps(title, (step,)))
            continue
        if node["kernel"] in host:
            groups.append(
                NodeSteps(f"{title}: {node['kernel']}", (_host_step(kernels[node["kernel"]], node),))
            )
            continue
        steps, workspace = _launches(kernels[node["kernel"]], node, number)
        buffers.update({buffer.name: buffer for buffer in workspace})
        groups.append(NodeSteps(f"{title}: {node['kernel']}", steps))
    inputs = tuple(zip(exe.info.inputs, graph["inputs"], strict=True))
    outputs = tuple(
        (spec, output["tensor"]) for spec, output in zip(exe.info.outputs, graph["outputs"], strict=True)
    )
    return HostProgram(
        name=exe.info.name,
        hardware=_hardware(exe),
        buffers=buffers,
        groups=tuple(groups),
        inputs=inputs,
        outputs=outputs,
        sources={name: str(k.texts["source"]) for name, k in kernels.items() if name not in host},
        arena=plan(_lifetimes(buffers, groups, [name for _, name in outputs])),
        constants=plan([Lifetime(b.name, b.nbytes, 0, 0) for b in buffers.values() if b.role == WEIGHT]),
        host=host,
    )


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


def _buffers(graph: Mapping[str, Any], tensors: Mapping[str, Any]) -> dict[str, Buffer]:
    """The tensors of the graph that the program touches, in the order of their first use."""
    read = [name for node in graph["nodes"] for name in (*node["inputs"], *node["outputs"])]
    returned = [output["tensor"] for output in graph["outputs"]]
    buffers = {}
    for name in dict.fromkeys([*graph["inputs"], *read, *returned]):
        row = tensors[name]
        role = WEIGHT if row["constant"] else INPUT if name in graph["inputs"] else WORKING
        buffers[name] = Buffer(name, row["dtype"], tuple(row["shape"]), int(row["bytes"]), role)
    return buffers


def _host_step(kernel: KernelInfo, node: Mapping[str, Any]) -> HostStep:
    """A function of the host on the tensors of a node."""
    params = tuple((row["dtype"], tuple(row["shape"])) for row in kernel.code["host"]["params"])
    operands = (*node["inputs"], *node["outputs"])
    assert len(params) == len(operands), (kernel.name, params, operands)
    return HostStep(kernel.name, operands, len(node["inputs"]), params)


def refuse_sizes(kernel: str, sizes: Sequence[object]) -> None:
    """Refuse a kernel whose sizes are known only when it is launched: projects are planned for one shape.

    Raises
    ------
    ExportError
        It has any.
    """
    if sizes:
        raise ExportError(
            f"The kernel {kernel} has sizes that are known only when it is launched.",
            need="kernels of one shape: a project's memory, launches and inputs are planned for it",
            limit=", ".join(map(str, sizes)),
            remedy="compile the model for one shape, and export that",
        )


def _launches(
    kernel: KernelInfo, node: Mapping[str, Any], number: int
) -> tuple[tuple[KernelStep, ...], list[Buffer]]:
    """The launches of a kernel on the tensors of a node, and what they hand over."""
    refuse_sizes(kernel.name, kernel.code.get("sizes", ()))
    tensors = (*node["inputs"], *node["outputs"])
    params = [row["name"] for row in kernel.code["params"]]
    assert len(params) == len(tensors), (kernel.name, params, tensors)
    names = dict(zip(params, tensors, strict=True))
    workspace = []
    for row in kernel.code["workspace"]:
        nbytes = int(row["bytes"])
        buffer = Buffer(f"workspace_{number}_{row['name']}", "uint8", (nbytes,), nbytes, WORKING)
        workspace.append(buffer)
        names[row["name"]] = buffer.name
    steps = tuple(
        KernelStep(row["name"], int(row["grid"]), tuple(names[param] for param in row["params"]))
        for row in kernel.code["launches"]
    )
    return steps, workspace


def _lifetimes(
    buffers: Mapping[str, Buffer], groups: Sequence[NodeSteps], returned: Sequence[str]
) -> list[Lifetime]:
    """Inputs live always (the program may run again), working buffers from first use to last or the end."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for step, group in enumerate(groups):
        for name in (name for one in group.steps for name in one.buffers):
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
    return found
