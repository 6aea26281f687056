# SPDX-License-Identifier: Apache-2.0
"""Who measures candidates, and the one that does so in processes of this machine."""

from __future__ import annotations

import pathlib
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any, Protocol, Self

import tvm

from .. import environment
from ..target import registry
from ..target.place import MODEL
from .job import Job, Result
from .process import WorkerProcess
from .segments import Segment

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

    A process imports everything once and takes one job at a time.  What it compiles lies in a folder of its
    own, which goes with the measurer.

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
        self._environment = {
            "UIR_CACHE_DIR": self._folder.name,
            "UIR_NUM_THREADS": str(threads or environment.num_threads()),
            "TVM_NUM_THREADS": str(threads or environment.num_threads()),
        }
        self._alive: list[WorkerProcess] = []
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
        return self._share([[job] for job in jobs], on_result)

    def confirm(self, jobs: Sequence[Job] | Sequence[Segment]) -> list[Result]:
        """See `Measurer.confirm`; parts of models too.

        Raises
        ------
        DeviceError
            No process can be started.
        """
        found: list[Result] = []
        self._share([jobs] if jobs else [], None, found)
        return found

    def close(self) -> None:
        """See `Measurer.close`."""
        self._closed = True
        for process in self._alive:
            process.kill()
        self._alive.clear()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _share(
        self,
        batches: Sequence[Sequence[Job] | Sequence[Segment]],
        on_result: OnResult | None,
        together: list[Result] | None = None,
    ) -> list[Result]:
        """Results of batches: of single jobs, or (``together``) of one whose jobs take turns."""
        if self._closed:
            raise ValueError("the measurer is closed")
        results: dict[int, Result] = {}
        waiting, busy = deque(range(len(batches))), dict[WorkerProcess, int]()

        def settle(process: WorkerProcess, found: list[Result], gone: bool) -> None:
            number = busy.pop(process)
            if gone:
                self._alive.remove(process)
            if together is not None:
                together.extend(found * len(batches[number]) if gone else found)
                return
            results[number] = found[0]
            if on_result is not None:
                on_result(number, found[0])

        try:
            while waiting or busy:
                while waiting and (process := self._idle(busy)) is not None:
                    busy[process] = waiting.popleft()
                    process.give(batches[busy[process]], together is not None)
                self._listen(busy, settle)
        finally:
            # interrupted: what they still measure belongs to nobody
            for process in busy:
                process.kill()
                self._alive.remove(process)
        return [results[number] for number in range(len(results))]

    def _idle(self, busy: dict[WorkerProcess, int]) -> WorkerProcess | None:
        """A process without a job, a new one if there may be more; None where all have one."""
        for process in [process for process in self._alive if process not in busy]:
            if not process.gone:
                return process
            # something else ended it, such as a machine without memory left: no job is to blame
            process.kill()
            self._alive.remove(process)
        if len(self._alive) == self.workers:
            return None
        process = WorkerProcess(pathlib.Path(self._folder.name), self._environment, self.prepare)
        self._alive.append(process)
        return process

    def _listen(
        self, busy: dict[WorkerProcess, int], settle: Callable[[WorkerProcess, list[Result], bool], None]
    ) -> None:
        """Hear what the processes have to say, until the next one would be overdue."""
        soonest = min(process.deadline for process in busy) - time.monotonic()
        heard = wait([process.answers for process in busy], max(0.0, soonest))
        for process in list(busy):
            if process.answers in heard:
                try:
                    found = process.listen()
                except EOFError:
                    if not process.ready:
                        raise process.did_not_start() from None
                    settle(process, [process.crashed()], True)
                    continue
                if found is not None:
                    settle(process, found, False)
            elif process.overdue():
                if not process.ready:
                    raise process.did_not_start()
                settle(process, [process.timeout()], True)
