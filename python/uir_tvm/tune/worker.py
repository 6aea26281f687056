# SPDX-License-Identifier: Apache-2.0
"""The process that measures for `measure.LocalMeasurer`: takes jobs, answers results, dies with its parent.

`process.WorkerProcess` starts it with the arguments ``JOBS ANSWERS LIFE [MODULE:FUNCTION]``.  The first three
are numbers of open files: messages in, messages out, and a pipe that nothing is ever written to, whose end
says that the parent is gone.  The function is called once before the first job.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any


def main() -> None:
    """Answer until the parent is gone or closes the pipe of jobs."""
    jobs, answers, life = (int(number) for number in sys.argv[1:4])
    threading.Thread(target=_die_with_parent, args=(life,), daemon=True).start()
    incoming = Connection(jobs, writable=False)
    outgoing = Connection(answers, readable=False)

    def tell(message: dict[str, Any]) -> None:
        outgoing.send_bytes(json.dumps(message).encode())

    from .evaluate import run_in_turns, run_job, run_segments
    from .job import Job
    from .segments import Segment

    if len(sys.argv) > 4:
        module, _, function = sys.argv[4].partition(":")
        getattr(importlib.import_module(module), function)()
    tell({"ready": True})
    while True:
        try:
            given = json.loads(incoming.recv_bytes())
        except (EOFError, OSError):
            return

        def at(stage: str) -> None:
            tell({"stage": stage})

        if any("module" in row for row in given["jobs"]):
            results = run_segments([Segment.from_json(row) for row in given["jobs"]])
        else:
            batch = [Job.from_json(row) for row in given["jobs"]]
            results = run_in_turns(batch, at) if given["turns"] else [run_job(job, at) for job in batch]
        tell({"results": [result.to_json() for result in results]})


def _die_with_parent(life: int) -> None:
    """End this process and the compilers that it started when the parent is gone."""
    os.read(life, 1)
    os.killpg(os.getpgrp(), signal.SIGKILL)
