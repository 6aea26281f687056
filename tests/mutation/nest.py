# SPDX-License-Identifier: Apache-2.0
"""A process that has imported what takes long and no fault changes, and runs pytest in forks of itself.

``python nest.py MODULE...`` in the folder of a copy imports the modules, and keeps TVM from importing the
package, which is to be imported with its fault.  Each line that it reads is a run of
pytest, as JSON: ``arguments``, ``variables`` of the environment, ``printed`` (the file for what pytest says)
and ``patience`` in seconds.  It answers with a line: the exit status (of a signal, below zero), or null where
the run took longer and was ended, with all processes that it started.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from typing import Any
from unittest import mock

import pytest

#: Seconds between two looks at a run.
PAUSE = 0.02
#: The group of entry points by which `import tvm` imports the package.
BACKENDS = "tvm.backends"
ENTRY_POINTS = metadata.entry_points


def main() -> None:
    """Import, then run what is asked for until the input ends."""
    # as `python -m pytest` has it: the copy, not the folder of this file
    sys.path[0] = os.getcwd()
    with mock.patch("importlib.metadata.entry_points", _not_ours):
        for name in sys.argv[1:]:
            importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.flush()
        process = os.fork()
        if not process:
            _run(asked)
        print(json.dumps(_status(process, asked["patience"])), flush=True)


def _not_ours(**selected: str) -> Iterable[metadata.EntryPoint]:
    return () if selected.get("group") == BACKENDS else ENTRY_POINTS(**selected)


def _run(asked: dict[str, Any]) -> None:
    """What the fork does; it does not return."""
    status = 1
    try:
        os.setsid()
        os.environ.update(asked["variables"])
        printed = os.open(asked["printed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDWR)
        for old, new in ((nothing, 0), (printed, 1), (nothing, 2)):
            os.dup2(old, new)
        status = int(pytest.main(asked["arguments"]))
        sys.stdout.flush()
    finally:
        os._exit(status)


def _status(process: int, patience: float) -> int | None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(PAUSE)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


if __name__ == "__main__":
    main()
