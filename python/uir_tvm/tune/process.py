# SPDX-License-Identifier: Apache-2.0
"""A worker's process, both ends of it: started, given jobs, watched and ended here; measuring there.

One pipe joins them, with JSON both ways.  Its end says to the process that its parent is gone, and to the
parent that the process is.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from ..errors import DeviceError
from .job import CRASHED, TIMEOUT, Job, Result
from .segments import Segment

#: What a process runs: it needs no torch; what the worker itself calls may import it.
_PROGRAM = """
from uir_tvm import _native
_native.load(torch=False)
from uir_tvm.tune.process import main
main()
"""
#: Seconds until a process has imported everything.
START_SECONDS = 180.0
#: What a worker's complaint is cut to.
SAID_LENGTH = 300


class WorkerProcess:
    """One process, in a group of its own: what it starts ends with it, and Ctrl-C is not for it.

    Parameters
    ----------
    folder : Path
        For what it writes to its error output.
    environment : mapping of str to str
        Beside this process's own.
    prepare : str
        ``MODULE:FUNCTION`` that it calls before its first job; or empty.
    """

    def __init__(self, folder: pathlib.Path, environment: Mapping[str, str], prepare: str = "") -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._log = folder / f"worker-{theirs.fileno()}-{time.monotonic_ns()}.log"
        self._ready = False
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), prepare],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": paths, **environment},
                start_new_session=True,
            )

    @property
    def gone(self) -> bool:
        """Whether it has ended, which nobody may have heard yet."""
        return self._process.poll() is not None

    def run(self, jobs: Sequence[Job] | Sequence[Segment], turns: bool) -> list[Result]:
        """What comes of some jobs, in turns or one after the other; waits for it.

        A process that crashes, or that is at one stage for longer than all jobs may take, is ended: that is
        the result of all of them.

        Raises
        ------
        DeviceError
            It ended or hung before it was ready.
        """
        seconds, stage = sum(job.settings.timeout_seconds for job in jobs), "taking a job"
        asked = {"jobs": [job.to_json() for job in jobs], "turns": turns}
        try:
            if not self._ready:
                if not self._pipe.poll(START_SECONDS):
                    raise EOFError
                self._ready = bool(self._pipe.recv_bytes())
            self._pipe.send_bytes(json.dumps(asked).encode())
            while self._pipe.poll(seconds):
                message = json.loads(self._pipe.recv_bytes())
                if "results" in message:
                    return [Result.from_json(row) for row in message["results"]]
                stage = str(message["stage"])
        except (EOFError, OSError):
            self.kill()
            if not self._ready:
                raise self._did_not_start() from None
            said = f"ended {self._how()} while {stage}{self._last_words(': ')}"
            return [Result((), CRASHED, said)] * len(jobs)
        self.kill()
        return [Result((), TIMEOUT, f"still {stage} after {seconds:g} s")] * len(jobs)

    def kill(self) -> None:
        """End it and what it started."""
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait()

    def _how(self) -> str:
        code = self._process.returncode
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"

    def _did_not_start(self) -> DeviceError:
        return DeviceError(
            "No process that measures can be started.",
            need="uir_tvm and TVM in " + sys.executable,
            limit=self._last_words() or f"it ended {self._how()}",
            remedy="run `uir doctor`",
        )

    def _last_words(self, before: str = "") -> str:
        """The last line that it wrote, behind something; empty where there is none."""
        try:
            lines = self._log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return before + lines[-1].strip()[:SAID_LENGTH] if lines else ""


def main() -> None:
    """What the process does, with the arguments ``PIPE MODULE:FUNCTION``: answer until the parent is gone."""
    from .evaluate import run_in_turns, run_job, run_segments

    pipe, given = Connection(int(sys.argv[1])), queue.SimpleQueue[dict[str, Any]]()
    threading.Thread(target=_listen, args=(pipe, given), daemon=True).start()

    def tell(message: Mapping[str, Any]) -> None:
        pipe.send_bytes(json.dumps(message).encode())

    def at(stage: str) -> None:
        tell({"stage": stage})

    module, _, function = sys.argv[2].partition(":")
    if module:
        getattr(importlib.import_module(module), function)()
    tell({"ready": True})
    while True:
        asked = given.get()
        if any("module" in row for row in asked["jobs"]):
            results = run_segments([Segment.from_json(row) for row in asked["jobs"]])
        else:
            jobs = [Job.from_json(row) for row in asked["jobs"]]
            results = run_in_turns(jobs, at) if asked["turns"] else [run_job(job, at) for job in jobs]
        tell({"results": [result.to_json() for result in results]})


def _listen(pipe: Connection, given: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Hear the parent; when it is gone, end this process and the compilers that it started."""
    try:
        while True:
            given.put(json.loads(pipe.recv_bytes()))
    except (EOFError, OSError):
        os.killpg(os.getpgrp(), signal.SIGKILL)
