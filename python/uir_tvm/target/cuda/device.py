# SPDX-License-Identifier: Apache-2.0
"""How CUDA C++ is compiled and launched: for a GPU, and for the host model of one."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from ...device.device_kernel import DeviceKernel, Launch
from ...device.kind import DeviceKind
from ...device.launch import DeviceArray, LaunchResult
from . import host_model, toolchain

#: The architecture of code for the host model (src/runtime/simt_model.cc).
MODEL = "simt"


def _launch(
    _kernel: DeviceKernel,
    one: Launch,
    compiled: pathlib.Path,
    arguments: Sequence[DeviceArray | int],
    max_seconds: float,
    _timeline: bool,
) -> LaunchResult:
    return host_model.launch(
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


DEVICE = DeviceKind(
    suffix=host_model.MODEL.suffix,
    compile=host_model.compile,
    launch=_launch,
    model=MODEL,
    compilers={
        MODEL: lambda source, _: host_model.compile(source).read_bytes(),
        "sm_": lambda source, arch: toolchain.compile(source, arch).data,
    },
    alignment=16,
)
