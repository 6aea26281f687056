# SPDX-License-Identifier: Apache-2.0
"""A worker's process as its parent sees it: started, given jobs, watched, ended."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
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
from uir_tvm.tune.worker import main
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
        theirs_in, jobs = os.pipe()
        answers, theirs_out = os.pipe()
        their_life, self._life = os.pipe()
        theirs = (theirs_in, theirs_out, their_life)
        command = [sys.executable, "-c", _PROGRAM, *map(str, theirs)]
        self._log = folder / f"worker-{jobs}-{time.monotonic_ns()}.log"
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *([prepare] if prepare else [])],
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": paths, **environment},
                start_new_session=True,
            )
        for number in theirs:
            os.close(number)
        self._jobs = Connection(jobs, readable=False)
        #: To wait for: it is ready when an answer, or the end of the process, is there.
        self.answers = Connection(answers, writable=False)
        self.ready = False
        self.stage = "starting"
        self.deadline = time.monotonic() + START_SECONDS
        self._seconds = START_SECONDS
        self._given = b""

    def give(self, jobs: Sequence[Job] | Sequence[Segment], turns: bool) -> None:
        """Let it measure some jobs, in turns or one after the other, as soon as it is ready."""
        self._given = json.dumps({"jobs": [job.to_json() for job in jobs], "turns": turns}).encode()
        self._seconds = sum(job.settings.timeout_seconds for job in jobs)
        if self.ready:
            self._send()

    def _send(self) -> None:
        self.stage = "taking a job"
        self._renew()
        try:
            self._jobs.send_bytes(self._given)
        except OSError:
            # it has ended: `listen` says so
            return

    def listen(self) -> list[Result] | None:
        """What it says, after `answers` is ready; None: nothing yet that is a result.

        Raises
        ------
        EOFError
            It has ended.
        """
        try:
            message: dict[str, Any] = json.loads(self.answers.recv_bytes())
        except OSError as error:
            raise EOFError from error
        if "results" in message:
            return [Result.from_json(row) for row in message["results"]]
        if "ready" in message:
            self.ready = True
            self._send()
        else:
            self.stage = str(message["stage"])
            self._renew()
        return None

    @property
    def gone(self) -> bool:
        """Whether it has ended, which nobody may have heard yet."""
        return self._process.poll() is not None

    def overdue(self) -> bool:
        """Whether it has been at one stage for too long."""
        return time.monotonic() > self.deadline

    def timeout(self) -> Result:
        """End it, as it takes too long; what came of its job."""
        self.kill()
        return Result((), TIMEOUT, f"still {self.stage} after {self._seconds:g} s")

    def crashed(self) -> Result:
        """What came of its job, as it has ended."""
        self.kill()
        code = self._process.returncode
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        said = self._last_words()
        return Result((), CRASHED, f"ended {how} while {self.stage}" + (f": {said}" if said else ""))

    def did_not_start(self) -> DeviceError:
        """The error of a process that ended or hung before it was ready."""
        self.kill()
        return DeviceError(
            "No process that measures can be started.",
            need="uir_tvm and TVM in " + sys.executable,
            limit=self._last_words() or f"it ended with {self._process.returncode}",
            remedy="run `uir doctor`",
        )

    def kill(self) -> None:
        """End it and what it started."""
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait()
        self._jobs.close()
        self.answers.close()
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def _renew(self) -> None:
        self.deadline = time.monotonic() + self._seconds

    def _last_words(self) -> str:
        """The last line that it wrote."""
        try:
            lines = self._log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].strip()[:SAID_LENGTH] if lines else ""
