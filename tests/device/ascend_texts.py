# SPDX-License-Identifier: Apache-2.0
"""Hand-written Ascend C for tests of its host model: a frame, in which the lines of a test stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from uir_tvm.device.launch import DeviceArray, LaunchResult
from uir_tvm.target.ascend import costs as ascend_costs
from uir_tvm.target.ascend import host_model as ascend

#: What stands before the lines of a test: `line_of` counts from here.
HEAD = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_%s);
"""

#: One buffer of the UB, named `ub`, and x, y, z as tensors of T.
FRAME = """  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 65536);
  GlobalTensor<{dtype}> gx, gy, gz;
  gx.SetGlobalBuffer((__gm__ {dtype}*)x);
  gy.SetGlobalBuffer((__gm__ {dtype}*)y);
  gz.SetGlobalBuffer((__gm__ {dtype}*)z);
"""

#: Waits that make everything before them happen before everything behind.
ALL = "PipeBarrier<PIPE_ALL>();"

#: What the host model is told of a 910B2.
DEVICE = {
    "name": "910b2",
    "figures": {
        "clock_hz": 1_800_000_000,
        "dram_bytes_per_second": 1_600_000_000_000,
        "l2_bytes": 192 << 20,
        "ub_bytes": 192 << 10,
    },
    "costs": ascend_costs.as_data(),
}


def text(body: str, *, dtype: str = "float", task: str = "AIV_ONLY", frame: bool = True) -> str:
    """A whole text around the lines of a test."""
    return HEAD % task + (FRAME.format(dtype=dtype) if frame else "") + body + "\n}\n"


def line_of(source: str, part: str, which: int = 0) -> int:
    """The number of a line that holds the part; `which` of them, from 0."""
    lines = [i for i, line in enumerate(source.splitlines(), 1) if part in line]
    return lines[which]


def run(
    source: str,
    arrays: Sequence[np.ndarray | DeviceArray],
    *,
    blocks: int = 1,
    core: str = "aiv",
    timed: bool = False,
    timeline: bool = False,
    max_seconds: float = 60,
    values: bool = True,
) -> LaunchResult:
    """Compile and run the kernel `k`; missing arrays are small ones."""
    given = [*arrays, *(np.zeros(64, np.float32) for _ in range(3 - len(arrays)))]
    return ascend.launch(
        ascend.compile(source),
        "k",
        given,
        blocks=blocks,
        core=core,
        names=["x", "y", "z"],
        device=DEVICE if timed else None,
        timeline=timeline,
        max_seconds=max_seconds,
        values=values,
    )


def kinds(result: LaunchResult) -> list[str]:
    """The kinds of its findings."""
    return [finding.kind for finding in result.findings]
