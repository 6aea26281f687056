# SPDX-License-Identifier: Apache-2.0
"""A measurer that sleeps, for servers whose work is not what is tested."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import attrs
from uir_tvm.tune.job import Job, Result, Settings
from uir_tvm.tune.measure import OnResult

#: Kernels that do something else.
CRASHES, HANGS = "crashes the server", "hangs"


@attrs.frozen
class Sleeping:
    """Sleeps for `Settings.min_repeat_seconds`, and says in which process."""

    workers: int = 1
    name: str = "sleeping"

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """As if all at once."""
        for job in jobs:
            if job.kernel == CRASHES:
                os._exit(3)
            if job.kernel == HANGS:
                time.sleep(600)
        time.sleep(max(job.settings.min_repeat_seconds for job in jobs))
        return [Result((1e-3 * (1 + job.seed),), said=str(os.getpid())) for job in jobs]

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """One after the other."""
        return [result for job in jobs for result in self.measure([job])]

    def close(self) -> None:
        """There is nothing to end."""


def jobs(count: int, seconds: float, kernel: str = "k", limit: float = 60.0) -> list[Job]:
    """So many, each asleep for so long; the seed tells them apart."""
    settings = Settings(min_repeat_seconds=seconds, timeout_seconds=limit)
    return [Job(kernel, "", "uir-cpu", "cpu", seed=seed, settings=settings) for seed in range(count)]


def want(count: int) -> list[float]:
    """The medians of `jobs`, in order."""
    return [1e-3 * (1 + seed) for seed in range(count)]
