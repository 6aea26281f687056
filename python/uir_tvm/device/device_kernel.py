# SPDX-License-Identifier: Apache-2.0
"""What a printed target makes of an iGraph: source text, and how its kernels are launched."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from tvm_ffi import serialization

from ..errors import DeviceError
from ..igraph.affine import Affine
from ..igraph.dtypes import dtype_of
from ..igraph.nodes import HardwareModel, IGraph, IPointer
from ..igraph.sizes import admitted
from ..igraph.space import Size
from .kind import DEVICES

#: Blocks of a launch that devices take.
MOST_BLOCKS = (1 << 31) - 1


@attrs.frozen
class KernelParameter:
    """A dram pointer that the caller passes.

    Parameters
    ----------
    name, dtype, role : str
        As the pointer's; role ``in``, ``out`` or ``inout``.
    size : int
        Elements; where sizes decide it, the greatest number.
    dims : tuple of Affine
        Where sizes decide it, its dimensions, row-major.
    """

    name: str
    dtype: str
    size: int
    role: str
    dims: tuple[Affine, ...] = ()

    @staticmethod
    def of(pointer: IPointer) -> KernelParameter:
        """The parameter that a pointer is."""
        return KernelParameter(
            str(pointer.name), str(pointer.dtype), int(pointer.size), str(pointer.role), tuple(pointer.dims)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; where sizes decide it, the greatest number."""
        return self.size * dtype_of(self.dtype).bytes

    def to_json(self) -> dict[str, Any]:
        """Name, dtype, greatest size, role as plain data; the dimensions as text where sizes decide."""
        plain = {"name": self.name, "dtype": self.dtype, "size": self.size, "role": self.role}
        return {**plain, "dims": [str(dim) for dim in self.dims]} if self.dims else plain

    def size_at(self, sizes: Mapping[str, int]) -> int:
        """Elements at given sizes."""
        return math.prod(dim.evaluate(sizes) for dim in self.dims) if self.dims else self.size


@attrs.frozen
class Workspace:
    """Dram that the kernels own: allocated for a call, and passed like a parameter.

    Parameters
    ----------
    nbytes : int
        Bytes; where sizes decide it, the greatest number.
    dims, itemsize : tuple of Affine, int
        Where sizes decide it, its dimensions, and bytes of an element.
    """

    name: str
    nbytes: int
    dims: tuple[Affine, ...] = ()
    itemsize: int = 1

    def to_json(self) -> dict[str, Any]:
        """Name and greatest bytes as plain data; the dimensions as text where sizes decide."""
        plain = {"name": self.name, "bytes": self.nbytes}
        dims = {"dims": [str(dim) for dim in self.dims], "item_bytes": self.itemsize}
        return {**plain, **dims} if self.dims else plain

    def nbytes_at(self, sizes: Mapping[str, int]) -> int:
        """Bytes at given sizes."""
        if not self.dims:
            return self.nbytes
        return math.prod(dim.evaluate(sizes) for dim in self.dims) * self.itemsize


@attrs.frozen
class Launch:
    """One kernel of the source text.

    Parameters
    ----------
    name : str
        Of its function in the source.
    grid, block : int
        Blocks, and threads of a block.  Where sizes decide how many groups there are, at most as many blocks:
        a kernel that may have more deals its groups to its blocks.
    shared_bytes : int
        Dynamic shared memory of a block.
    cooperative : bool
        Whether all blocks run at once, so that they may wait for each other.
    params : tuple of str
        Names of parameters and workspaces in the function's order.
    core : str
        Which cores run it, where a device has several kinds: ``aiv``, ``aic`` or ``mix``.
    groups : Affine, optional
        The number of groups, where sizes decide it.
    """

    name: str
    grid: int
    block: int
    shared_bytes: int
    cooperative: bool
    params: tuple[str, ...]
    core: str = ""
    groups: Affine | None = None

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        fields = attrs.asdict(self, recurse=False)
        groups = fields.pop("groups")
        plain = {**fields, "params": list(self.params)}
        return plain if groups is None else {**plain, "groups": as_json(groups)}

    def blocks_at(self, sizes: Mapping[str, int]) -> int:
        """Blocks of a launch at given sizes; 0: there is nothing to launch.

        Raises
        ------
        DeviceError
            More than devices take.
        """
        blocks = self.grid if self.groups is None else min(self.grid, self.groups.evaluate(sizes))
        if blocks > MOST_BLOCKS:
            raise DeviceError(
                f"The kernel {self.name} has {blocks} groups at its sizes.",
                limit=f"{MOST_BLOCKS} blocks in a launch",
                remedy="call it with smaller sizes",
            )
        return max(blocks, 0)


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
    sizes : tuple of Size
        Run-time integers that the caller passes after the tensors, and every launch after its own.
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
    sizes: tuple[Size, ...] = ()

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
            sizes=tuple(graph.sizes),
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
            "params": [
                {
                    "name": p.name,
                    "role": p.role,
                    "floating": dtype_of(p.dtype).kind == "float",
                    **_memory(p.nbytes, p.dims, dtype_of(p.dtype).bytes),
                }
                for p in self.params
            ],
            "workspace": [{"name": w.name, **_memory(w.nbytes, w.dims, w.itemsize)} for w in self.workspace],
            "sizes": [_size(size) for size in self.sizes],
            "launches": [launch.to_json() for launch in self.launches],
        }

    def described(self) -> dict[str, Any]:
        """What is kept of it beside the text, as plain data: expressions of sizes are texts."""
        launches = [launch.to_json() for launch in self.launches]
        for row, launch in zip(launches, self.launches, strict=True):
            if launch.groups is not None:
                row["groups"] = str(launch.groups)
        code: dict[str, Any] = {
            "launches": launches,
            "params": [param.to_json() for param in self.params],
            "workspace": [workspace.to_json() for workspace in self.workspace],
            "workspace_bytes": sum(workspace.nbytes for workspace in self.workspace),
        }
        if self.sizes:
            code["sizes"] = [_size(size) for size in self.sizes]
        return {**code, "hardware": self.hardware, "printer": dict(self.report)}

    def checked_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The values of all sizes, in order.

        Raises
        ------
        SizeError
            A size without a value, or one that it does not admit.
        """
        return admitted(self.name, self.sizes, sizes)


def as_json(expression: Affine) -> Any:
    """An expression as plain data, which the runtime module reads back."""
    return json.loads(serialization.to_json_graph_str(expression))


def _memory(nbytes: int, dims: Sequence[Affine], itemsize: int) -> dict[str, Any]:
    """How much memory something is, as the runtime module reads it."""
    if not dims:
        return {"bytes": nbytes}
    return {"bytes": nbytes, "dims": [as_json(dim) for dim in dims], "item_bytes": itemsize}


def _size(size: Size) -> dict[str, Any]:
    return {
        "name": str(size.name),
        "low": int(size.low),
        "high": int(size.high),
        "multiple_of": int(size.multiple_of),
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
    params = {str(pointer.name) for pointer in graph.params}
    taken = [name for launch in launches for name in launch.params if name not in params]
    names = dict.fromkeys([*(str(row["name"]) for row in printed), *taken])
    return tuple(_workspace_of(graph.pointer(name)) for name in names)


def _workspace_of(pointer: IPointer) -> Workspace:
    itemsize = dtype_of(pointer.dtype).bytes
    dims = tuple(pointer.dims)
    return Workspace(str(pointer.name), int(pointer.size) * itemsize, dims, itemsize if dims else 1)


def _launch(row: Mapping[str, Any]) -> Launch:
    return Launch(
        name=str(row["name"]),
        grid=int(row["grid"]),
        block=int(row["block"]),
        shared_bytes=int(row["shared_bytes"]),
        cooperative=bool(row["cooperative"]),
        params=tuple(str(name) for name in row["params"]),
        core=str(row.get("core", "")),
        groups=row.get("groups"),
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
