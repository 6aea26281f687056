# SPDX-License-Identifier: Apache-2.0
"""The host program of one kernel by itself: its parameters are the inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..device.device_kernel import DeviceKernel
from ..runtime.tensors import TensorSpec
from .arena import Lifetime, plan
from .device_program import INPUT, WORKING, Buffer, HostProgram, NodeSteps, in_texts
from .kernel_call import KernelLaunches
from .open_sizes import OpenSizes


def kernel_program(
    kernel: DeviceKernel, name: str, tensors: Sequence[TensorSpec], written: Sequence[bool]
) -> HostProgram:
    """The program that launches a kernel.

    Parameters
    ----------
    kernel : DeviceKernel
        Printed for a device that has projects. Its sizes are what the program leaves open.
    name : str
        What the project is called.
    tensors : sequence of TensorSpec
        The kernel's parameters, in its order, with shapes in terms of its sizes.
    written : sequence of bool
        Which of them it writes; what it also reads is an input too.
    """
    assert len(tensors) == len(kernel.params), (kernel.name, tensors)
    names = {str(size.name): size.usual for size in kernel.sizes}
    sizes = OpenSizes(tuple(names), (), names)
    buffers: dict[str, Buffer] = {}
    inputs, outputs = [], []
    for given, param, writes in zip(tensors, kernel.params, written, strict=True):
        reads, spec = param.role != "out", in_texts(given)
        nbytes = sizes.nbytes(spec.shape, spec.dtype) if param.dims else param.nbytes
        role = INPUT if reads else WORKING
        buffers[spec.name] = Buffer(spec.name, spec.dtype, spec.shape, nbytes, role)
        inputs += [(spec, spec.name)] if reads else []
        outputs += [(spec, spec.name)] if writes else []
    operands = [spec.name for spec in tensors]
    call = KernelLaunches(kernel.described(), operands, buffers, sizes, {size: size for size in names})
    steps = call.steps("workspace_")
    lifetimes = tuple(Lifetime(buffer.name, buffer.nbytes, 0, 1) for buffer in buffers.values())
    return HostProgram(
        name=name,
        hardware=kernel.hardware,
        buffers=buffers,
        groups=(NodeSteps(name, steps),),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        sources={kernel.name: kernel.source},
        arena=None if names else plan(lifetimes),
        constants=plan([]),
        lifetimes=lifetimes,
        open=call.open,
    )
