# SPDX-License-Identifier: Apache-2.0
"""Compile Ascend C text for the host model of the Ascend 910B, and run its kernels there.

The text is compiled as it is, by g++, against a header that stands for the toolkit's ``kernel_operator.h``.
Its functions describe each instruction to the model's library, which checks and executes it and counts its
time.
"""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...device.launch import DeviceArray, LaunchFunction, LaunchResult, described
from ...device.text_model import TextModel

__all__ = ["MODEL", "compile", "headers", "launch"]

#: How Ascend C text is compiled.
MODEL = TextModel(
    name="ascendc",
    header="kernel_operator.h",
    prelude="kernel_operator.h",
    suffix=".cpp",
    # Instructions are calls of the library; what is left are loops around them and scalars.  -O0 takes g++ a
    # third less, but long kernels four times the stack, of which a core has 128 KiB; -Og takes as long.
    flags=(
        "-std=c++17",
        "-O1",
        "-fPIC",
        "-fno-strict-aliasing",
        "-fwrapv",
        "-ffp-contract=off",
        "-fno-exceptions",
        "-fvisibility=hidden",
        "-Wno-attributes",
        "-Wno-unknown-pragmas",
    ),
    language="Ascend C",
)
compile = MODEL.compile
headers = MODEL.headers

_ENTRY = LaunchFunction(
    "uir_ascendc_launch",
    (("blocks", ctypes.c_int32), ("core", ctypes.c_char_p), ("device", ctypes.c_char_p)),
    (("timeline", ctypes.c_int32), ("times_only", ctypes.c_int32)),
)


def launch(
    compiled: pathlib.Path,
    kernel: str,
    args: Sequence[np.ndarray | DeviceArray | int],
    *,
    blocks: int,
    core: str = "aiv",
    device: Mapping[str, Any] | None = None,
    max_findings: int = 16,
    max_seconds: float = 0.0,
    names: Sequence[str] = (),
    timeline: bool = False,
    values: bool = True,
) -> LaunchResult:
    """Run one kernel.

    Parameters
    ----------
    compiled : pathlib.Path
        From `compile`.
    args : sequence of ndarray, DeviceArray or int
        Arrays are copied to the device and back; all of their bytes count as written.
    blocks : int
        Of the launch.
    core : str
        What a block is: ``aiv`` a vector core, ``aic`` a cube core, ``mix_1_1`` and ``mix_1_2`` (or ``mix``)
        a cube core with one or two vector cores.
    device : mapping, optional
        Sizes and costs, as `uir_tvm.device.device_kernel.describe_device` gives them; without it no time is
        counted.
    max_seconds : float
        Ends a launch that takes longer, with a finding; 0: no limit.
    names : sequence of str
        Of the parameters, for findings.
    timeline : bool
        Whether the result holds each instruction with its modelled time.
    values : bool
        Without, instructions take their time alone, unless scalar code reads memory: then the launch runs
        whole all the same (`LaunchResult.computed`).

    Returns
    -------
    LaunchResult
        With all findings; `LaunchResult.check` raises them. ``modelled`` is the modelled time.

    Raises
    ------
    DeviceModelError
        The launch cannot run at all: no such kernel, or a shape that no device takes.
    """
    return _ENTRY.launch(
        compiled,
        kernel,
        args,
        (blocks, core.encode(), described(device)),
        max_findings=max_findings,
        max_seconds=max_seconds,
        names=names,
        rest=(int(timeline), int(not values)),
    )
