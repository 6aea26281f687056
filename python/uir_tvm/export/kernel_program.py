# SPDX-License-Identifier: Apache-2.0
"""The host program of one kernel by itself: its parameters are the inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..device.device_kernel import DeviceKernel
from ..runtime.tensors import TensorSpec
from .arena import Lifetime, plan
from .host_program import INPUT, WORKING, Buffer, HostProgram, KernelStep, NodeSteps, refuse_sizes


def kernel_program(
    kernel: DeviceKernel, name: str, tensors: Sequence[TensorSpec], written: Sequence[bool]
) -> HostProgram:
    """The program that launches a kernel.

    Parameters
    ----------
    kernel : DeviceKernel
        Printed for a device that has projects.
    name : str
        What the project is called.
    tensors : sequence of TensorSpec
        The kernel's parameters, in its order.
    written : sequence of bool
        Which of them it writes; what it also reads is an input too.

    Raises
    ------
    ExportError
        The kernel has sizes that are known only when it is launched.
    """
    refuse_sizes(kernel.name, kernel.sizes)
    assert len(tensors) == len(kernel.params), (kernel.name, tensors)
    buffers: dict[str, Buffer] = {}
    inputs, outputs = [], []
    for spec, param, writes in zip(tensors, kernel.params, written, strict=True):
        reads = param.role != "out"
        role = INPUT if reads else WORKING
        buffers[spec.name] = Buffer(spec.name, spec.dtype, spec.shape, param.nbytes, role)
        inputs += [(spec, spec.name)] if reads else []
        outputs += [(spec, spec.name)] if writes else []
    names = {param.name: spec.name for param, spec in zip(kernel.params, tensors, strict=True)}
    for row in kernel.workspace:
        names[row.name] = f"workspace_{row.name}"
        buffers[names[row.name]] = Buffer(names[row.name], "uint8", (row.nbytes,), row.nbytes, WORKING)
    steps = tuple(
        KernelStep(one.name, one.grid, tuple(names[param] for param in one.params)) for one in kernel.launches
    )
    return HostProgram(
        name=name,
        hardware=kernel.hardware,
        buffers=buffers,
        groups=(NodeSteps(name, steps),),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        sources={kernel.name: kernel.source},
        arena=plan([Lifetime(buffer.name, buffer.nbytes, 0, 1) for buffer in buffers.values()]),
        constants=plan([]),
    )
