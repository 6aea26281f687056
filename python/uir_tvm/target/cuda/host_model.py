# SPDX-License-Identifier: Apache-2.0
"""Compile CUDA text for the host model of CUDA devices, and run its kernels there.

The text is compiled as it is, by g++, against headers that stand for the toolkit's.  The compiler's thread
sanitizer puts a call before every load and store; the model's own library answers those calls, not the
sanitizer's.
"""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Sequence

import numpy as np

from ...device.launch import DeviceArray, LaunchFunction, LaunchResult
from ...device.text_model import TextModel, compiler, library

__all__ = ["MODEL", "compile", "compiler", "headers", "launch", "library"]

#: How CUDA text is compiled; all shared memory of a kernel is the dynamic pool ``smem``.
MODEL = TextModel(
    name="simt",
    header="cuda_runtime.h",
    prelude="uir_simt/prelude.h",
    suffix=".cu",
    # Little optimisation keeps every access, and the lines, of the text; more takes longer than it spares.
    flags=(
        "-std=c++17",
        "-Og",
        "-g1",
        "-fPIC",
        "-fsanitize=thread",
        "--param=tsan-instrument-func-entry-exit=0",
        # The text converts pointers between types and wraps integers; nothing may be computed more exactly.
        "-fno-strict-aliasing",
        "-fwrapv",
        "-ffp-contract=off",
        # Frames lead from a device function to the line of the kernel that calls it.
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-fno-exceptions",
        "-fvisibility=hidden",
        "-Wno-attributes",
        "-Wno-unknown-pragmas",
        "-DUIR_SIMT=1",
    ),
    language="CUDA C++",
)
compile = MODEL.compile
headers = MODEL.headers

_ENTRY = LaunchFunction(
    "uir_simt_launch",
    (
        ("grid", ctypes.c_int32),
        ("block", ctypes.c_int32),
        ("shared_bytes", ctypes.c_int64),
        ("cooperative", ctypes.c_int32),
    ),
)


def launch(
    compiled: pathlib.Path,
    kernel: str,
    args: Sequence[np.ndarray | DeviceArray | int],
    *,
    grid: int,
    block: int,
    shared_bytes: int = 0,
    cooperative: bool = False,
    max_findings: int = 16,
    max_seconds: float = 0.0,
    names: Sequence[str] = (),
) -> LaunchResult:
    """Run one kernel.

    Parameters
    ----------
    compiled : pathlib.Path
        From `compile`.
    args : sequence of ndarray, DeviceArray or int
        Arrays are copied to the device and back; all of their bytes count as written.
    grid, block : int
        Blocks, and threads of each.
    shared_bytes : int
        Of the dynamic pool of each block.
    max_seconds : float
        Ends a launch that takes longer, with a finding; 0: no limit.
    names : sequence of str
        Of the parameters, for findings.

    Returns
    -------
    LaunchResult
        With all findings; `LaunchResult.check` raises them.

    Raises
    ------
    DeviceModelError
        The launch cannot run at all: no such kernel, or a shape that no device takes.
    """
    return _ENTRY.launch(
        compiled,
        kernel,
        args,
        (grid, block, shared_bytes, int(cooperative)),
        max_findings=max_findings,
        max_seconds=max_seconds,
        names=names,
    )
