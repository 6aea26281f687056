# SPDX-License-Identifier: Apache-2.0
"""Check architectures, a process each, so that a crash or a hang is a row and not the end."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import attrs

from . import SUITES
from .outcome import CRASHED, TIMEOUT, Outcome

Key = tuple[str, str]


def sweep(
    keys: Sequence[Key],
    jobs: int = 1,
    limit: float = 300.0,
    target: str = "uir-cpu",
    start: str = "forkserver",
) -> Iterator[Outcome]:
    """Outcomes of architectures, as they come.

    Parameters
    ----------
    keys : sequence of (suite, name)
    jobs : int
        Processes at a time.
    limit : float
        Seconds after which a process is ended.
    start : str
        How processes are made (`multiprocessing.get_context`).
    """
    context = multiprocessing.get_context(start)
    context.set_forkserver_preload(["tests.model_suites.preload"])
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_watched, context, key, limit, target) for key in keys]
        try:
            for each in as_completed(waiting):
                yield each.result()
        finally:
            for each in waiting:
                each.cancel()


def _watched(context: Any, key: Key, limit: float, target: str) -> Outcome:
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, *key, target), daemon=True)
    process.start()
    theirs.close()
    family = SUITES[key[0]][key[1]].family
    try:
        if not ours.poll(limit):
            return Outcome(*key, family, TIMEOUT, reason=f"longer than {limit:.0f} s", seconds=limit)
        return ours.recv()
    except EOFError:
        process.join(10)
        return Outcome(*key, family, CRASHED, reason=f"the process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()
        ours.close()


def _work(connection: Connection, suite: str, name: str, target: str) -> None:
    from .check import check

    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        connection.send(check(suite, name, target))
    connection.close()


def load(path: Path) -> dict[Key, Outcome]:
    """The outcomes in a file; none where there is no file."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return {(row["suite"], row["name"]): Outcome(**row) for row in rows}


def save(path: Path, outcomes: dict[Key, Outcome]) -> None:
    """Write outcomes, ordered as the suites are."""
    order = [(suite, name) for suite, cases in SUITES.items() for name in cases]
    rows = [attrs.asdict(outcomes[key]) for key in order if key in outcomes]
    path.write_text(json.dumps(rows, indent=1) + "\n")
