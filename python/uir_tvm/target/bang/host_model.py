# SPDX-License-Identifier: Apache-2.0
"""Compile BANG C text for the host model of Cambricon MLUs, and run its kernels there.

The text is compiled by g++, against a header that stands for the vendor's ``bang.h``; only its launches,
``kernel<<<dim, type, queue>>>(arguments)``, and the instruction ``sync`` are rewritten to calls, on the same
lines.  The functions of the
header describe each instruction to the model's library, which checks and executes it and counts its time.
Loads and stores of scalar code are seen as well: the compiler's thread sanitizer puts a call before each.
"""

from __future__ import annotations

import ctypes
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...device.launch import DeviceArray, LaunchFunction, LaunchResult, described
from ...device.text_model import TextModel

__all__ = ["MODEL", "compile", "headers", "launch", "rewrite_launches"]

#: As the vendor's header of that version has it.
_SYNC = r'__asm__ __volatile__("sync;\n\t");'
_LAUNCH = re.compile(r"\b(\w+)(\s*)<<<(.*?)>>>", re.DOTALL)


def rewrite_launches(source: str) -> str:
    """The text with calls for launches.

    ``k<<<dim, type, queue>>>(a, b)`` becomes ``uir_bang::Launch("k", k, dim, type, queue)(a, b)``, and the
    instruction by which kernels for cncc 3 wait for all queues a call.
    """
    return _LAUNCH.sub(r'uir_bang::Launch("\1", \1, \3)\2', source).replace(_SYNC, "__sync();")


#: How BANG C text is compiled.
MODEL = TextModel(
    name="bang",
    header="bang.h",
    prelude="bang.h",
    suffix=".mlu",
    # Instructions are calls of the library; what is left are loops around them and scalars, whose accesses
    # stay as the text has them: more optimisation reads scalars ahead of loops that are not walked, and takes
    # longer than it spares.
    flags=(
        "-std=c++17",
        "-Og",
        "-g1",
        "-fPIC",
        "-fsanitize=thread",
        "--param=tsan-instrument-func-entry-exit=0",
        "-fno-strict-aliasing",
        "-fwrapv",
        "-ffp-contract=off",
        "-fno-exceptions",
        "-Wno-attributes",
        "-Wno-unknown-pragmas",
    ),
    language="BANG C",
    hooks="uir_bang/hooks.h",
    rewrite=rewrite_launches,
)
compile = MODEL.compile
headers = MODEL.headers

_ENTRY = LaunchFunction(
    "uir_bang_launch",
    (("groups", ctypes.c_int32), ("units", ctypes.c_int32), ("device", ctypes.c_char_p)),
    (("timeline", ctypes.c_int32), ("times_only", ctypes.c_int32)),
)


def launch(
    compiled: pathlib.Path,
    kernel: str,
    args: Sequence[np.ndarray | DeviceArray | int],
    *,
    grid: int = 1,
    block: int = 1,
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
    grid : int
        Groups of the launch: tasks of a Block launch, clusters of a Union1 launch.
    block : int
        Cores of a group.  1: a Block launch of ``{grid, 1, 1}``; 4: a Union1 launch of ``{4, grid, 1}``.
        0: ``kernel`` is a host function of the text, which takes the queue and then ``args``; the launches
        that it makes are run.
    device : mapping, optional
        Sizes and costs, as `uir_tvm.device.device_kernel.describe_device` gives them; without it no time is
        counted, and sizes are those of the MLU370.
    max_seconds : float
        Ends a launch that takes longer, with a finding; 0: no limit.
    names : sequence of str
        Of the parameters, for findings.
    timeline : bool
        Whether the result holds each instruction with its modelled time.
    values : bool
        Without, instructions take their time alone, unless scalar code accesses memory: then the launch runs
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
        (grid, block, described(device)),
        max_findings=max_findings,
        max_seconds=max_seconds,
        names=names,
        rest=(int(timeline), int(not values)),
    )
