# SPDX-License-Identifier: Apache-2.0
"""Hand-written BANG C for tests of its host model: a frame, in which the lines of a test stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from uir_tvm.device.launch import DeviceArray, LaunchResult
from uir_tvm.target.bang import costs as bang_costs
from uir_tvm.target.bang import host_model as bang

#: What stands before the lines of a test.
HEAD = """#include <bang.h>
__nram__ char nram[32768];
__wram__ char wram[32768];
__mlu_shared__ char sram[16384];
__mlu_entry__ void k({dtype} *x, {dtype} *y, {dtype} *z) {{
  {dtype} *const a = ({dtype} *)(nram + 0);
  {dtype} *const b = ({dtype} *)(nram + 8192);
  {dtype} *const c = ({dtype} *)(nram + 16384);
  {dtype} *const s = ({dtype} *)(sram + 0);
  {dtype} *const w = ({dtype} *)(wram + 0);
"""

#: What the host model is told of an MLU370-X8.
DEVICE: Mapping[str, Any] = {
    "name": "mlu370-x8",
    "figures": {
        "arch": 372,
        "clusters": 4,
        "cores_per_cluster": 4,
        "nram_bytes": 768 << 10,
        "wram_bytes": 1024 << 10,
        "sram_bytes": 4096 << 10,
        "clock_hz": 1_300_000_000,
        "dram_bytes_per_second": 307_200_000_000,
        "cluster_bytes_per_second": 128_000_000_000,
        "vector_bytes_per_cycle": 128,
        "matmul_f16": 3072,
        "matmul_f32": 768,
    },
    "costs": bang_costs.as_data(),
}


def device(**figures: int) -> dict[str, Any]:
    """The device with other figures."""
    return {**DEVICE, "figures": {**DEVICE["figures"], **figures}}


def text(body: str, *, dtype: str = "float") -> str:
    """A whole text around the lines of a test."""
    return HEAD.format(dtype=dtype) + body + "\n}\n"


def line_of(source: str, part: str, which: int = 0) -> int:
    """The number of a line that holds the part; `which` of them, from 0."""
    lines = [i for i, line in enumerate(source.splitlines(), 1) if part in line]
    return lines[which]


def run(
    source: str,
    arrays: Sequence[np.ndarray | DeviceArray] = (),
    *,
    groups: int = 1,
    units: int = 1,
    on: Mapping[str, Any] | None = None,
    timeline: bool = False,
    max_seconds: float = 60,
    values: bool = True,
) -> LaunchResult:
    """Compile and run the kernel `k`; missing arrays are small ones."""
    given = [*arrays, *(np.ones(256, np.float32) for _ in range(3 - len(arrays)))]
    return bang.launch(
        bang.compile(source),
        "k",
        given,
        grid=groups,
        block=units,
        names=["x", "y", "z"],
        device=on,
        timeline=timeline,
        max_seconds=max_seconds,
        values=values,
    )


def kinds(result: LaunchResult) -> list[str]:
    """The kinds of its findings."""
    return [finding.kind for finding in result.findings]
