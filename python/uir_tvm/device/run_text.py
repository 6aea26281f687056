# SPDX-License-Identifier: Apache-2.0
"""Run all kernels of one printed function on the host model, from its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from ..errors import ShapeError
from ..igraph.dtypes import numpy_of
from .device_kernel import DeviceKernel
from .kind import DEVICES
from .launch import DeviceArray, LaunchResult

__all__ = ["Ran", "run"]


@attrs.frozen
class Ran:
    """What became of a run.

    Attributes
    ----------
    outputs : mapping of str to ndarray
        The ``out`` and ``inout`` parameters, flat.
    results : tuple of LaunchResult
        Of each launch, in order; what follows a launch with findings did not run.
    unwritten : tuple of str
        Outputs with bytes that no kernel wrote.
    """

    outputs: Mapping[str, np.ndarray]
    results: tuple[LaunchResult, ...]
    unwritten: tuple[str, ...]

    @property
    def counters(self) -> dict[str, int]:
        """Sums over the launches."""
        total: dict[str, int] = {}
        for result in self.results:
            for name, count in result.counters.items():
                total[name] = total.get(name, 0) + count
        return total

    def check(self) -> Ran:
        """Raise `DeviceModelError` unless nothing was found."""
        for result in self.results:
            result.check()
        return self


def run(
    kernel: DeviceKernel,
    inputs: Sequence[np.ndarray],
    *,
    sizes: Mapping[str, int] | None = None,
    source: str | None = None,
    max_seconds: float = 0.0,
    timeline: bool = False,
) -> Ran:
    """Run a printed function on the host model.

    Parameters
    ----------
    kernel : DeviceKernel
        What the lowering of a target gives, `TargetRecord.lower`.
    inputs : sequence of ndarray
        The ``in`` and ``inout`` parameters in their order, of any shape with as many elements.
    sizes : mapping of str to int, optional
        A value for each of the kernel's sizes; memory has as many elements as there are at these, no more.
    source : str, optional
        Another text of the same kernels, to be run instead of the kernel's own.
    max_seconds : float
        Ends a launch that takes longer, with a finding; 0: no limit.
    timeline : bool
        Whether results hold the modelled time of each instruction, where the model counts time.

    Raises
    ------
    ShapeError
        Inputs of the wrong number or size.
    SizeError
        Sizes that the kernel does not take.
    DeviceError
        More groups than devices take.
    ToolchainError
        The text does not compile.
    """
    model = DEVICES[kernel.kind]
    values = kernel.checked_sizes(sizes or {})
    blocks = [one.blocks_at(values) for one in kernel.launches]
    compiled = model.compile(kernel.source if source is None else source)
    memories = _place(kernel, inputs, values)
    for workspace in kernel.workspace:
        memories[workspace.name] = DeviceArray(workspace.nbytes_at(values), np.uint8, workspace.name)
    results = []
    for one, count in zip(kernel.launches, blocks, strict=True):
        if count == 0:
            continue
        arguments: list[DeviceArray | int] = [*(memories[name] for name in one.params), *values.values()]
        at = attrs.evolve(one, grid=count, groups=None)
        results.append(model.launch(kernel, at, compiled, arguments, max_seconds, timeline))
        if results[-1].findings:
            break
    outputs = [p.name for p in kernel.params if p.role != "in"]
    return Ran(
        {name: memories[name].array.copy() for name in outputs},
        tuple(results),
        tuple(name for name in outputs if memories[name].first_unwritten >= 0),
    )


def _place(
    kernel: DeviceKernel, inputs: Sequence[np.ndarray], sizes: Mapping[str, int]
) -> dict[str, DeviceArray]:
    """The parameters in the model's memory; outputs count as not written."""
    takes = [p for p in kernel.params if p.role != "out"]
    if len(inputs) != len(takes):
        raise ShapeError(
            f"`{kernel.name}` takes {len(takes)} inputs, not {len(inputs)}.",
            need=", ".join(p.name for p in takes),
        )
    count = {p.name: p.size_at(sizes) for p in kernel.params}
    memories = {p.name: DeviceArray(count[p.name], numpy_of(p.dtype), p.name) for p in kernel.params}
    for p, array in zip(takes, inputs, strict=True):
        if array.size != count[p.name]:
            raise ShapeError(
                f"Input `{p.name}` of `{kernel.name}` has {array.size} elements.",
                need=f"{count[p.name]} elements",
            )
        memories[p.name].fill(array)
    return memories
