# SPDX-License-Identifier: Apache-2.0
"""Tuning without a machine: schedules of one decision, whose time is a function of it and takes no time."""

from __future__ import annotations

import functools
import hashlib
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import attrs
from tvm import tirx
from tvm.s_tir import Schedule
from uir_tvm.target import registry
from uir_tvm.tune.budget import Budget
from uir_tvm.tune.database import ScheduleDatabase
from uir_tvm.tune.job import DEFAULTS, Job, Result, Settings
from uir_tvm.tune.measure import OnResult
from uir_tvm.tune.session import Session
from uir_tvm.tune.state import TuningState
from uir_tvm.tune.task import Task

from .kernels import kernel, scheduled

#: Seconds of the compiler's own schedules; candidates take half to twice as long.
DEFAULT = 1e-4
#: Columns of a tile: what the candidates of a kernel differ in.
COLUMNS = tuple(range(1, 41))


def tasks() -> list[Task]:
    """Two kernels, of which the second is launched three times in a run."""
    where = registry.resolve("uir-cpu").target
    return [Task("once", kernel(), where, 1), Task("thrice", kernel(True), where, 3)]


def seconds_of(name: str, columns: int | None) -> float:
    """What a schedule takes."""
    if columns is None:
        return DEFAULT
    number = int(hashlib.sha256(f"{name} {columns}".encode()).hexdigest()[:8], 16)
    return DEFAULT * (0.5 + 1.5 * number / 0xFFFFFFFF)


def fastest(name: str) -> int:
    """The best decision for a kernel."""
    return min(COLUMNS, key=lambda columns: seconds_of(name, columns))


@functools.cache
def _scheduled(func: tirx.PrimFunc, columns: int) -> Schedule:
    """Of each kernel and decision one schedule, which nobody changes."""
    return scheduled(func, columns)


@attrs.frozen(eq=False)
class FakeCandidate:
    """A tile of so many columns."""

    task: Task
    columns: int
    predicted: float | None = None
    graph: Any = None

    @property
    def digest(self) -> str:
        return f"columns {self.columns}"

    @property
    def space(self) -> Any:
        return SimpleNamespace(begun=self.task.func)

    @property
    def sch(self) -> Schedule:
        return _scheduled(self.task.func, self.columns)

    def job(self, *, seed: int = 0, settings: Settings = DEFAULTS) -> Job:
        decisions = {"columns": self.columns}
        return Job(self.task.name, "", "", "", None, [self.columns], seed, settings, decisions)

    def to_json(self) -> dict[str, Any]:
        return {"columns": self.columns}


class FakeSearch:
    """Proposes the columns in their order."""

    bound = 0.0

    def __init__(self, task: Task) -> None:
        self.task, self.default = task, None
        self.seen: set[int] = set()
        self.told: dict[int, float] = {}

    def propose(self, n: int) -> list[FakeCandidate]:
        left = [columns for columns in COLUMNS if columns not in self.seen][:n]
        self.seen.update(left)
        return [FakeCandidate(self.task, columns) for columns in left]

    def tell(self, candidates: Sequence[FakeCandidate], results: Sequence[Result]) -> None:
        for candidate, result in zip(candidates, results, strict=True):
            self.seen.add(candidate.columns)
            self.told[candidate.columns] = result.median

    def skip(self, digests: Iterable[str]) -> None:
        self.seen.update(int(digest.rpartition(" ")[2]) for digest in digests)

    def restore(self, data: Mapping[str, Any]) -> FakeCandidate:
        return FakeCandidate(self.task, int(data["columns"]))


def time_of(job: Job) -> Result:
    """What a machine of these times says of a job."""
    return Result((seconds_of(job.kernel, job.decisions.get("columns")),))


class FakeMeasurer:
    """Measures by a function; notes what it measured before it says so.

    Parameters
    ----------
    log : Path, optional
        A line for every measured job.
    result : callable
        Job -> Result.
    seconds : float
        That a job takes.
    """

    name = "fake"
    workers = 1

    def __init__(
        self,
        log: pathlib.Path | None = None,
        result: Callable[[Job], Result] = time_of,
        seconds: float = 0.0,
    ) -> None:
        self.log, self.result, self.seconds = log, result, seconds
        self.jobs: list[Job] = []
        self.confirmed: list[Job] = []

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """See `Measurer.measure`."""
        results = []
        for index, job in enumerate(jobs):
            time.sleep(self.seconds)
            self.jobs.append(job)
            results.append(self.result(job))
            if self.log is not None:
                with self.log.open("a") as file:
                    file.write(f"{job.kernel}: {job.decisions.get('columns')}\n")
            if on_result is not None:
                on_result(index, results[-1])
        return results

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """See `Measurer.confirm`."""
        self.confirmed += jobs
        return [self.result(job) for job in jobs]

    def close(self) -> None:
        """Nothing to end."""


def session(
    folder: pathlib.Path, measurer: FakeMeasurer, budget: Budget, modelled: bool = False, **fields: Any
) -> Session:
    """A session of the two kernels."""
    known = TuningState(tasks(), ScheduleDatabase(folder), FakeSearch, modelled=modelled)
    return Session(known, measurer, budget, **fields)
