# SPDX-License-Identifier: Apache-2.0
"""Kernels with one fault and their corrected twins, run on the host model of CUDA devices."""

from __future__ import annotations

import attrs
import numpy as np
from uir_tvm.device import launch
from uir_tvm.target.cuda import host_model as simt

HEADER = """#include <cuda_runtime.h>
#include <cooperative_groups.h>
extern "C" __global__ void __launch_bounds__({block}) k(const float* __restrict__ x, float* __restrict__ y) {{
  extern __shared__ __align__(1024) unsigned char smem[];
  const int thread = threadIdx.x, lane = threadIdx.x % 32, unit = threadIdx.x / 32, block = blockIdx.x;
"""


@attrs.frozen
class Twins:
    """One check: a body whose ``@`` stands for ``bad`` or for ``good``.

    Attributes
    ----------
    kind : str
        Of the finding that the faulty twin must give.
    body : str
        Of the kernel ``k(x, y)``; the line that the finding must name ends in ``//!``.
    thread : int
        That the finding must name; None: any.
    """

    kind: str
    body: str
    bad: str
    good: str
    thread: int | None = None
    grid: int = 1
    block: int = 32
    shared_bytes: int = 1024
    cooperative: bool = False
    words: int = 1024

    def text(self, choice: str) -> str:
        return HEADER.format(block=self.block) + self.body.replace("@", choice).strip("\n") + "\n}\n"

    def run(self, choice: str) -> launch.LaunchResult:
        x = np.arange(self.words, dtype=np.float32)
        y = launch.DeviceArray(self.words, np.float32, "y")
        return simt.launch(
            simt.compile(self.text(choice)),
            "k",
            [x, y],
            grid=self.grid,
            block=self.block,
            shared_bytes=self.shared_bytes,
            cooperative=self.cooperative,
            max_seconds=20,
            names=("x", "y"),
        )

    def check(self) -> None:
        """The faulty twin gives the finding at the marked line; the other is clean."""
        clean = self.run(self.good)
        assert not clean.findings, [str(finding) for finding in clean.findings]
        found = self.run(self.bad).findings
        shown = [str(finding) for finding in found]
        marked = [
            i for i, line in enumerate(self.text(self.bad).splitlines(), 1) if line.rstrip().endswith("//!")
        ]
        # Which side of a race is met second, and so reported, depends on the order in which lanes run.
        sides = [
            side
            for finding in found
            if finding.kind == self.kind and finding.kernel == "k"
            for side in ((finding.line, finding.thread), (finding.other_line, finding.other_thread))
        ]
        assert any(line in marked and self.thread in (None, thread) for line, thread in sides), (
            marked,
            shown,
        )
