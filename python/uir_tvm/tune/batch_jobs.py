# SPDX-License-Identifier: Apache-2.0
"""Candidates that are compiled where they run: uir_tvm must be installed there, of the same version."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any


class Missing(Exception):
    """What this machine lacks."""


class Machine:
    """A machine with uir_tvm."""

    def __init__(self, folder: str, manifest: dict[str, Any], options: Any) -> None:
        try:
            from uir_tvm import _native

            _native.load(torch=False)  # kernels are no programs of it
            from uir_tvm.tune.job import Job
            from uir_tvm.tune.measure import LocalMeasurer
        except ImportError as error:
            raise Missing(f"these candidates are compiled where they run, by uir_tvm: {error}") from None
        with open(os.path.join(folder, "jobs.json"), encoding="utf-8") as file:
            self.jobs = [Job.from_json(row) for row in json.load(file)]
        self.manifest = manifest
        self.measurer = LocalMeasurer(workers=1)

    def describe(self) -> dict[str, Any]:
        """The machine, as results name it."""
        from uir_tvm.tune.key import TOOLCHAIN, Key, key_of

        job = self.jobs[0]
        key = key_of(job.target, job.place)
        differs = Key.from_json(self.manifest["key"]).differs(key.without_toolchain)
        if differs:
            raise Missing(f"this machine is not like the one that made the batch: {differs}")
        return {"name": platform.node(), "hardware": key.hardware, "toolchain": key.versions[TOOLCHAIN]}

    def measure(self, candidate: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a candidate."""
        return self.measurer.measure([self.jobs[candidate["number"]]])[0].to_json()

    def confirm(self, candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Results of candidates that are timed in turns."""
        found = self.measurer.confirm([self.jobs[candidate["number"]] for candidate in candidates])
        return [result.to_json() for result in found]
