# SPDX-License-Identifier: Apache-2.0
"""How Ascend C is compiled and launched: for an NPU, and for the host model of one."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from ...device.device_kernel import DeviceKernel, Launch
from ...device.kind import DeviceKind
from ...device.launch import DeviceArray, LaunchResult
from . import costs, host_model, toolchain

#: The architecture of code for the host model (src/runtime/ascend_model.cc).
MODEL = "ascendc"


def _launch(
    kernel: DeviceKernel,
    one: Launch,
    compiled: pathlib.Path,
    arguments: Sequence[DeviceArray | int],
    max_seconds: float,
    timeline: bool,
) -> LaunchResult:
    return host_model.launch(
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


DEVICE = DeviceKind(
    suffix=host_model.MODEL.suffix,
    compile=host_model.compile,
    launch=_launch,
    model=MODEL,
    compilers={
        MODEL: lambda source, _: host_model.compile(source).read_bytes(),
        "dav-": toolchain.compile,
    },
    costs=costs.as_data,
)
