# SPDX-License-Identifier: Apache-2.0
"""What a project's host program does: memory, and launches and library calls in order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..errors import ExportError
from ..runtime.executable import Executable, KernelInfo
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


Step = KernelStep | LibraryStep


@attrs.frozen
class Group:
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
    groups : tuple of Group
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
    """

    name: str
    hardware: str
    buffers: Mapping[str, Buffer]
    groups: tuple[Group, ...]
    inputs: tuple[tuple[TensorSpec, str], ...]
    outputs: tuple[tuple[TensorSpec, str], ...]
    sources: Mapping[str, str]
    arena: Arena
    constants: Arena

    @property
    def weights(self) -> tuple[Buffer, ...]:
        """Buffers whose contents are files of the project, in the order of their first use."""
        return tuple(buffer for buffer in self.buffers.values() if buffer.role == WEIGHT)

    def steps(self) -> Iterator[Step]:
        """All steps in order."""
        for group in self.groups:
            yield from group.steps


def host_program(exe: Executable) -> HostProgram:
    """The program of an executable whose every kernel is source text for the device.

    Raises
    ------
    ExportError
        Kernels that TVM lowers for the host, or an executable without a kernel graph.
    """
    if exe.kernel_graph is None:
        raise ExportError(
            f"`{exe.info.name}` is one kernel, not a model.",
            need="an executable with a kernel graph",
            remedy="compile a model that calls it",
        )
    _refuse_host_kernels(exe)
    graph = json.loads(exe.kernel_graph.to_json())
    kernels = {kernel.name: kernel for kernel in exe.info.kernels}
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    buffers = _buffers(graph, tensors)
    groups: list[Group] = []
    for number, node in enumerate(graph["nodes"]):
        title = " + ".join(node["ops"])
        if node["type"] == "library":
            step = LibraryStep(
                node["kind"], json.dumps(node["attrs"]), tuple(node["inputs"]), *node["outputs"]
            )
            groups.append(Group(title, (step,)))
            continue
        steps, workspace = _launches(kernels[node["kernel"]], node, number)
        buffers.update({buffer.name: buffer for buffer in workspace})
        groups.append(Group(f"{title}: {node['kernel']}", steps))
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
        sources={name: str(kernel.texts["source"]) for name, kernel in kernels.items()},
        arena=plan(_lifetimes(buffers, groups, [name for _, name in outputs])),
        constants=plan([Lifetime(b.name, b.nbytes, 0, 0) for b in buffers.values() if b.role == WEIGHT]),
    )


def _refuse_host_kernels(exe: Executable) -> None:
    on_host = [kernel for kernel in exe.info.kernels if kernel.fallback]
    if on_host:
        listed = "\n".join(f"    {kernel.name}: {_first_line(kernel.fallback)}" for kernel in on_host)
        raise ExportError(
            f"{len(on_host)} of {len(exe.info.kernels)} kernels of `{exe.info.name}` run on the host, by "
            f"code that TVM generates:\n{listed}",
            need="source text of the device for every kernel",
            limit="a project holds no code of TVM",
            remedy="change what the reasons name (its dtype, shape or operator), or run the executable, "
            "which has these kernels for the host: uir run FILE",
        )


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


def _launches(
    kernel: KernelInfo, node: Mapping[str, Any], number: int
) -> tuple[tuple[KernelStep, ...], list[Buffer]]:
    """The launches of a kernel on the tensors of a node, and what they hand over."""
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
    buffers: Mapping[str, Buffer], groups: Sequence[Group], returned: Sequence[str]
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
