# SPDX-License-Identifier: Apache-2.0
"""What a project's program is, as data: memory, and launches and library calls in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..runtime.tensors import TensorSpec
from ..sizes.saved_sizes import size_text
from ..sizes.symbolic_shapes import Size
from .arena import Arena, Lifetime
from .open_sizes import OpenSizes

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
    shape : tuple of int or str
        Expressions of the program's sizes where these decide it.
    nbytes : int
        Where sizes decide it, at the usual ones.
    role : str
        ``input``, ``weight`` (known when the project is written) or ``working``.
    """

    name: str
    dtype: str
    shape: tuple[Size, ...]
    nbytes: int
    role: str


@attrs.frozen
class KernelStep:
    """A launch: function, blocks, and the names of the buffers in the function's order.

    Where sizes decide how many groups there are, ``groups`` is that number, and ``blocks`` the most blocks
    that deal them among them. ``sizes`` are the numbers that the function takes behind its buffers.
    """

    function: str
    blocks: int
    operands: tuple[str, ...]
    groups: Size = ""
    sizes: tuple[Size, ...] = ()

    @property
    def buffers(self) -> tuple[str, ...]:
        """All that it touches."""
        return self.operands


@attrs.frozen
class LibraryStep:
    """A call of the library: ``matmul`` or ``conv2d``, its attributes as JSON, inputs and output.

    Attributes that sizes decide are expressions as texts (`uir_tvm.library.open_attrs`).
    """

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
    params: tuple[tuple[str, tuple[Size, ...]], ...]

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
class VariantSteps:
    """Launches that take the place of others where all of some conditions on sizes hold."""

    conditions: tuple[str, ...]
    steps: tuple[KernelStep, ...]


@attrs.frozen
class NodeSteps:
    """Steps of one node of the kernel graph, and the model's operators in it.

    The first of the ``variants`` whose conditions hold runs in the place of ``steps``.
    """

    title: str
    steps: tuple[Step, ...]
    variants: tuple[VariantSteps, ...] = ()

    def every_step(self) -> Iterator[Step]:
        """Those of the variants too."""
        for variant in self.variants:
            yield from variant.steps
        yield from self.steps


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
    arena : Arena or None
        Where inputs and working buffers lie in one allocation; None: sizes decide, a run plans it.
    constants : Arena
        Where weights lie in another.
    host : mapping of str to HostFunction
        What runs on the host, by the kernel's name.
    lifetimes : tuple of Lifetime
        What shares the arena.
    open : OpenSizes
        What is known at a run; of a program of one shape nothing.
    """

    name: str
    hardware: str
    buffers: Mapping[str, Buffer]
    groups: tuple[NodeSteps, ...]
    inputs: tuple[tuple[TensorSpec, str], ...]
    outputs: tuple[tuple[TensorSpec, str], ...]
    sources: Mapping[str, str]
    arena: Arena | None
    constants: Arena
    host: Mapping[str, HostFunction] = attrs.field(factory=dict)
    lifetimes: tuple[Lifetime, ...] = ()
    open: OpenSizes = OpenSizes()

    @property
    def weights(self) -> tuple[Buffer, ...]:
        """Buffers whose contents are files of the project, in the order of their first use."""
        return tuple(buffer for buffer in self.buffers.values() if buffer.role == WEIGHT)

    def steps(self) -> Iterator[Step]:
        """The steps of a run that takes no variant, in order."""
        for group in self.groups:
            yield from group.steps

    def every_step(self) -> Iterator[Step]:
        """Those of variants too."""
        for group in self.groups:
            yield from group.every_step()


def in_texts(spec: TensorSpec) -> TensorSpec:
    """A tensor's description with open sizes as texts."""
    shape: tuple[Any, ...] = tuple(map(plain_size, spec.shape))
    open_axes = any(isinstance(size, str) for size in shape)
    return TensorSpec(spec.name, shape, spec.dtype, tuple(map(str, shape)) if open_axes else ())


def plain_size(size: Any) -> Size:
    """A size of a description: a number, or what is open as text."""
    return size if isinstance(size, int) else size_text(size)
