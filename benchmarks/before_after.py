# SPDX-License-Identifier: Apache-2.0
"""A model without and with the schedules of a database, in one process, in turns.

Two processes of the same code differ by some percent, whatever their memory got of caches and huge pages, and
tuning may bring less than that to a model whose time is its library's.  Here executables share a thread pool
and take turns call by call; there are two of each kind, so that what differs between two alike is known too.
"""

from __future__ import annotations

import multiprocessing
import pathlib
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any

#: Executables of each kind.
EACH = 2
#: Rounds at least.
ROUNDS = 8
BEFORE, AFTER = "before", "after"


def before_after(name: str, database: pathlib.Path, seconds: float, threads: int) -> dict[str, list[float]]:
    """Median seconds of a call, of each executable of each kind.

    Parameters
    ----------
    name : str
        The case (`cases.build`).
    database : Path
    seconds : float
        For each executable.
    threads : int
    """
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(theirs, name, str(database), seconds, threads)
    )
    process.start()
    theirs.close()
    try:
        found: dict[str, list[float]] | str = ours.recv()
    except EOFError:
        found = "its process ended"
    process.join()
    if isinstance(found, str):
        raise RuntimeError(f"{name} cannot be compared: {found}")
    return found


def ratios(found: dict[str, list[float]]) -> tuple[float, float]:
    """What tuning brings, and the largest ratio between two executables that are alike."""
    gain = statistics.mean(found[BEFORE]) / statistics.mean(found[AFTER])
    return gain, max(max(times) / min(times) for times in found.values())


def _serve(link: Connection, name: str, database: str, seconds: float, threads: int) -> None:
    try:
        link.send(_compare(name, database, seconds, threads))
    except Exception as error:  # whatever goes wrong is said by the process that asked
        link.send(f"{type(error).__name__}: {error}")


def _compare(name: str, database: str, seconds: float, threads: int) -> dict[str, list[float]]:
    import torch
    import tvm
    import uir_tvm
    from cases import build

    torch.set_num_threads(threads)
    module, inputs = build(name)
    with torch.no_grad():
        program = torch.export.export(module, tuple(inputs))
    arguments = [tvm.runtime.tensor(x.numpy()) for x in inputs]
    kinds = [(BEFORE, None), (AFTER, database)] * EACH
    exes: list[Any] = [uir_tvm.compile(program, target="uir-cpu", database=where) for _, where in kinds]
    for exe in exes:
        exe.run_tvm(*arguments)
    times: list[list[float]] = [[] for _ in exes]
    end = time.perf_counter() + seconds * len(exes)
    while time.perf_counter() < end or len(times[0]) < ROUNDS:
        order = range(len(exes))
        for at in order if len(times[0]) % 2 else reversed(order):
            start = time.perf_counter()
            exes[at].run_tvm(*arguments)
            times[at].append(time.perf_counter() - start)
    found: dict[str, list[float]] = {BEFORE: [], AFTER: []}
    for (kind, _), row in zip(kinds, times, strict=True):
        found[kind].append(statistics.median(row))
    return found
