# SPDX-License-Identifier: Apache-2.0
"""What a printed target makes of an iGraph: source text, and how its kernels are launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..igraph.dtypes import dtype_of
from ..igraph.nodes import HardwareModel, IGraph, IPointer
from .kind import DEVICES


@attrs.frozen
class KernelParameter:
    """A dram pointer that the caller passes.

    Parameters
    ----------
    name, dtype, role : str
        As the pointer's; role ``in``, ``out`` or ``inout``.
    size : int
        Elements.
    """

    name: str
    dtype: str
    size: int
    role: str

    @staticmethod
    def of(pointer: IPointer) -> KernelParameter:
        """The parameter that a pointer is."""
        return KernelParameter(str(pointer.name), str(pointer.dtype), int(pointer.size), str(pointer.role))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * dtype_of(self.dtype).bytes


@attrs.frozen
class Workspace:
    """Dram that the kernels own: allocated for a call, and passed like a parameter."""

    name: str
    nbytes: int


@attrs.frozen
class Launch:
    """One kernel of the source text.

    Parameters
    ----------
    name : str
        Of its function in the source.
    grid, block : int
        Blocks, and threads of a block.
    shared_bytes : int
        Dynamic shared memory of a block.
    cooperative : bool
        Whether all blocks run at once, so that they may wait for each other.
    params : tuple of str
        Names of parameters and workspaces in the function's order.
    core : str
        Which cores run it, where a device has several kinds: ``aiv``, ``aic`` or ``mix``.
    """

    name: str
    grid: int
    block: int
    shared_bytes: int
    cooperative: bool
    params: tuple[str, ...]
    core: str = ""

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {**attrs.asdict(self), "params": list(self.params)}


@attrs.frozen
class DeviceKernel:
    """The product of the stage ``source`` on a target that prints source text; ``str`` of it is the text.

    Parameters
    ----------
    name : str
        Of the iGraph.
    source : str
        The whole text, which the target's compiler takes as it is.
    launches : tuple of Launch
        In the order in which they run.
    params : tuple of KernelParameter
        In the order of the iGraph's signature.
    workspace : tuple of Workspace
    hardware : str
        Name of the hardware model.
    arch : str
        What the text is printed for, as the target's compiler names it.
    kind : str
        Kind of the hardware, which says how the kernels are compiled and launched (`DeviceKind`).
    report : mapping
        What the printer decided, for people.
    device : mapping
        What the device's host model needs to know of the hardware (`describe_device`).
    """

    name: str
    source: str = attrs.field(repr=False)
    launches: tuple[Launch, ...]
    params: tuple[KernelParameter, ...]
    workspace: tuple[Workspace, ...]
    hardware: str
    arch: str
    kind: str
    report: Mapping[str, Any] = attrs.field(factory=dict, repr=False, hash=False)
    device: Mapping[str, Any] = attrs.field(factory=dict, repr=False, hash=False)

    @property
    def suffix(self) -> str:
        """End of the name of a file that holds the text."""
        return DEVICES[self.kind].suffix

    @staticmethod
    def of(graph: IGraph, printed: Mapping[str, Any]) -> DeviceKernel:
        """The product from what a printer returned for a graph (``source, kernels, workspace, report``)."""
        launches = tuple(_launch(row) for row in printed["kernels"])
        return DeviceKernel(
            name=str(graph.name),
            source=str(printed["source"]),
            launches=launches,
            params=tuple(KernelParameter.of(pointer) for pointer in graph.params),
            workspace=_workspace(graph, launches, printed["workspace"]),
            hardware=str(graph.hardware.name),
            arch=str(graph.hardware.figures["arch"]),
            kind=str(graph.hardware.kind),
            report=_plain(printed["report"]),
            device=describe_device(graph.hardware),
        )

    def __str__(self) -> str:
        return self.source

    def metadata(self, entry: str, saved: Sequence[str] = ()) -> dict[str, Any]:
        """What the runtime module needs to know, beside the source, of the function ``entry``."""
        return {
            "entry": entry,
            "kind": self.kind,
            "arch": self.arch,
            "alignment": DEVICES[self.kind].alignment,
            "device": dict(self.device),
            "saved": list(saved),
            "params": [{"name": p.name, "bytes": p.nbytes, "role": p.role} for p in self.params],
            "workspace": [{"name": w.name, "bytes": w.nbytes} for w in self.workspace],
            "launches": [launch.to_json() for launch in self.launches],
        }


def describe_device(hardware: HardwareModel) -> dict[str, Any]:
    """What a host model is told of the hardware: ``name``, ``figures``, and ``costs`` where there are any."""
    described = {"name": str(hardware.name), "figures": _plain(hardware.figures)}
    kind = DEVICES.get(str(hardware.kind))
    return described if kind is None or kind.costs is None else {**described, "costs": kind.costs()}


def _workspace(
    graph: IGraph, launches: Sequence[Launch], printed: Sequence[Mapping[str, Any]]
) -> tuple[Workspace, ...]:
    """Dram of single kernels, as the printer lists it, and what phases hand over, which kernels take."""
    found = {str(row["name"]): int(row["bytes"]) for row in printed}
    params = {str(pointer.name) for pointer in graph.params}
    for name in (name for launch in launches for name in launch.params):
        if name not in params and name not in found:
            pointer = graph.pointer(name)
            found[name] = int(pointer.size) * dtype_of(pointer.dtype).bytes
    return tuple(Workspace(name, nbytes) for name, nbytes in found.items())


def _launch(row: Mapping[str, Any]) -> Launch:
    return Launch(
        name=str(row["name"]),
        grid=int(row["grid"]),
        block=int(row["block"]),
        shared_bytes=int(row["shared_bytes"]),
        cooperative=bool(row["cooperative"]),
        params=tuple(str(name) for name in row["params"]),
        core=str(row.get("core", "")),
    )


def _plain(value: Any) -> Any:
    """tvm-ffi containers as Python's own."""
    if isinstance(value, Mapping) or hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return value
