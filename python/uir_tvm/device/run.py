# SPDX-License-Identifier: Apache-2.0
"""Run all kernels of one printed function on the host model, from its text."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from ..errors import ShapeError
from ..igraph.dtypes import numpy_of
from ..target.device_kernel import DeviceKernel, Launch
from . import ascend, bang, simt
from .launch import Memory, Result

__all__ = ["Ran", "run"]


@attrs.frozen
class Ran:
    """What became of a run.

    Attributes
    ----------
    outputs : mapping of str to ndarray
        The ``out`` and ``inout`` parameters, flat.
    results : tuple of Result
        Of each launch, in order; what follows a launch with findings did not run.
    unwritten : tuple of str
        Outputs with bytes that no kernel wrote.
    """

    outputs: Mapping[str, np.ndarray]
    results: tuple[Result, ...]
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
    source: str | None = None,
    max_seconds: float = 0.0,
    timeline: bool = False,
) -> Ran:
    """Run a printed function on the host model.

    Parameters
    ----------
    kernel : DeviceKernel
        What the lowering of a target gives, such as `uir_tvm.target.cuda.lower`.
    inputs : sequence of ndarray
        The ``in`` and ``inout`` parameters in their order, of any shape with as many elements.
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
    ToolchainError
        The text does not compile.
    """
    model = MODELS[kernel.kind]
    compiled = model.compile(kernel.source if source is None else source)
    memories = _place(kernel, inputs)
    for workspace in kernel.workspace:
        memories[workspace.name] = Memory(workspace.nbytes, np.uint8, workspace.name)
    results = _launches(kernel, model, compiled, memories, max_seconds, timeline)
    outputs = [p.name for p in kernel.params if p.role != "in"]
    return Ran(
        {name: memories[name].array.copy() for name in outputs},
        tuple(results),
        tuple(name for name in outputs if memories[name].first_unwritten >= 0),
    )


def _place(kernel: DeviceKernel, inputs: Sequence[np.ndarray]) -> dict[str, Memory]:
    """The parameters in the model's memory; outputs count as not written."""
    takes = [p for p in kernel.params if p.role != "out"]
    if len(inputs) != len(takes):
        raise ShapeError(
            f"`{kernel.name}` takes {len(takes)} inputs, not {len(inputs)}.",
            need=", ".join(p.name for p in takes),
        )
    memories = {p.name: Memory(p.size, numpy_of(p.dtype), p.name) for p in kernel.params}
    for p, array in zip(takes, inputs, strict=True):
        if array.size != p.size:
            raise ShapeError(
                f"Input `{p.name}` of `{kernel.name}` has {array.size} elements.", need=f"{p.size} elements"
            )
        memories[p.name].fill(array)
    return memories


def _launches(
    kernel: DeviceKernel,
    model: _Model,
    compiled: pathlib.Path,
    memories: Mapping[str, Memory],
    max_seconds: float,
    timeline: bool,
) -> list[Result]:
    results = []
    for one in kernel.launches:
        arguments = [memories[name] for name in one.params]
        result = model.launch(kernel, one, compiled, arguments, max_seconds, timeline)
        results.append(result)
        if result.findings:
            break
    return results


def _on_simt(
    _kernel: DeviceKernel,
    one: Launch,
    compiled: pathlib.Path,
    arguments: Sequence[Memory],
    max_seconds: float,
    _timeline: bool,
) -> Result:
    return simt.launch(
        compiled,
        one.name,
        arguments,
        grid=one.grid,
        block=one.block,
        shared_bytes=one.shared_bytes,
        cooperative=one.cooperative,
        max_seconds=max_seconds,
        names=one.params,
    )


def _on_ascend(
    kernel: DeviceKernel,
    one: Launch,
    compiled: pathlib.Path,
    arguments: Sequence[Memory],
    max_seconds: float,
    timeline: bool,
) -> Result:
    return ascend.launch(
        compiled,
        one.name,
        arguments,
        blocks=one.grid,
        core=one.core,
        device=kernel.device,
        max_seconds=max_seconds,
        names=one.params,
        timeline=timeline,
    )


def _on_bang(
    kernel: DeviceKernel,
    one: Launch,
    compiled: pathlib.Path,
    arguments: Sequence[Memory],
    max_seconds: float,
    timeline: bool,
) -> Result:
    # by way of the text's own launcher, which gives the shape and the type
    return bang.launch(
        compiled,
        f"{one.name}_launch",
        arguments,
        block=0,
        device=kernel.device,
        max_seconds=max_seconds,
        names=one.params,
        timeline=timeline,
    )


@attrs.frozen
class _Model:
    """How texts of a kind of hardware are compiled for its host model, and how a kernel is launched."""

    compile: Callable[[str], pathlib.Path]
    launch: Callable[[DeviceKernel, Launch, pathlib.Path, Sequence[Memory], float, bool], Result]


#: Kind of hardware -> its host model.
MODELS: Mapping[str, _Model] = {
    "cuda": _Model(simt.compile, _on_simt),
    "ascend": _Model(ascend.compile, _on_ascend),
    "bang": _Model(bang.compile, _on_bang),
}
