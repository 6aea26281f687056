# SPDX-License-Identifier: Apache-2.0
"""Who measures candidates, and the one that does so in processes of this machine."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from typing import Any, Protocol, Self

import tvm

from .. import environment
from ..target import registry
from ..target.place import MODEL
from .job import Job, Result
from .process import WorkerProcess
from .segments import Segment

#: Seconds between looks at whether what was interrupted has ended.
TICK = 0.05
#: Called with a job's number and its result, as results come in.
OnResult = Callable[[int, Result], None]


class Measurer(Protocol):
    """Measures jobs, whatever they do: a candidate that crashes or never ends is a result."""

    name: str

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """The results of some jobs, in their order.

        Parameters
        ----------
        on_result : callable, optional
            Called in this thread as each result comes in, in whatever order.
        """
        ...

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """Measure a few jobs in turns, in one process on one machine, so that their times compare."""
        ...

    def close(self) -> None:
        """End all workers; nothing is measured afterwards."""
        ...


class LocalMeasurer:
    """Measures in processes of this machine, which are started anew where a candidate took one along.

    A process imports everything once and takes one job at a time, from a thread that waits for it.  What it
    compiles lies in a folder of its own, which goes with the measurer.

    Parameters
    ----------
    workers : int
        Processes at most.  Where times are measured, 1: candidates must not slow each other.
    threads : int, optional
        Threads of uir-cpu in each; default: as many as this process would take.
    prepare : str
        ``MODULE:FUNCTION`` that each process calls before its first job, such as one that registers recipes.
    """

    def __init__(self, workers: int = 1, *, threads: int | None = None, prepare: str = "") -> None:
        if workers < 1:
            raise ValueError(f"{workers} workers")
        self.workers, self.prepare = workers, prepare
        self.name = f"{workers} local process{'es' if workers > 1 else ''}"
        self._folder = tempfile.TemporaryDirectory(prefix="uir_tune_")
        count = str(threads or environment.num_threads())
        self._environment = {
            "UIR_CACHE_DIR": self._folder.name,
            "UIR_NUM_THREADS": count,
            "TVM_NUM_THREADS": count,
        }
        self._pool = ThreadPoolExecutor(workers)
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._closed = False

    @classmethod
    def for_target(cls, target: tvm.target.Target, **more: Any) -> Self:
        """Processes for a target: one where times are measured, else one for each CPU."""
        modelled = registry.place_of(target).name == MODEL
        return cls(environment.num_threads() if modelled else 1, **more)

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """See `Measurer.measure`.

        Raises
        ------
        DeviceError
            No process can be started.
        """
        found = self._share([[job] for job in jobs], False, on_result)
        return [result for (result,) in found]

    def confirm(self, jobs: Sequence[Job] | Sequence[Segment]) -> list[Result]:
        """See `Measurer.confirm`; parts of models too.

        Raises
        ------
        DeviceError
            No process can be started.
        """
        return self._share([jobs], True)[0] if jobs else []

    def close(self) -> None:
        """See `Measurer.close`."""
        self._closed = True
        for process in (*self._busy, *self._idle):
            process.kill()
        self._pool.shutdown()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _share(
        self,
        batches: Sequence[Sequence[Job] | Sequence[Segment]],
        turns: bool,
        on_result: OnResult | None = None,
    ) -> list[list[Result]]:
        """Results of batches, each by one process."""
        if self._closed:
            raise ValueError("the measurer is closed")
        numbers: dict[Future[list[Result]], int] = {}
        try:
            numbers |= {self._pool.submit(self._run, b, turns): n for n, b in enumerate(batches)}
            for future in as_completed(numbers):
                found = future.result()
                if on_result is not None:
                    on_result(numbers[future], found[0])
        finally:
            # interrupted: what they still measure belongs to nobody
            for future in numbers:
                future.cancel()
            while wait(numbers, TICK).not_done:
                for process in list(self._busy):
                    process.kill()
        return [future.result() for future in numbers]

    def _run(self, jobs: Sequence[Job] | Sequence[Segment], turns: bool) -> list[Result]:
        """Results by a process without a job, or by a new one; in a thread."""
        # where something else ended it, such as a machine without memory left, no job is to blame
        process = self._idle.pop() if self._idle else None
        if process is None or process.gone:
            process = WorkerProcess(pathlib.Path(self._folder.name), self._environment, self.prepare)
        self._busy.add(process)
        try:
            found = process.run(jobs, turns)
        finally:
            self._busy.remove(process)
        if not process.gone:
            self._idle.append(process)
        return found
