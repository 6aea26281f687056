# SPDX-License-Identifier: Apache-2.0
"""Bandwidth of this machine, measured by a short copy."""

from __future__ import annotations

import functools
import threading
import time

import numpy as np

ROUNDS = 8
#: A round moves at least so much, so that starting threads does not count.
LEAST_BYTES = 1 << 24


@functools.cache
def copy_bytes_per_second(footprint: int, threads: int) -> float:
    """Bytes read and written per second by a copy, the best of a few rounds; measured once per process.

    Parameters
    ----------
    footprint : int
        Bytes of source and destination together, over all threads.
    threads : int
        Threads, each with its own part.

    Notes
    -----
    NumPy's copy lets other threads run meanwhile.  Lines that a store allocates are not counted as read.
    """
    size = max(footprint // (2 * threads), 4096)
    times = max(LEAST_BYTES // (2 * size * threads), 1)
    start_line = threading.Barrier(threads)
    spans: list[list[tuple[float, float]]] = [[] for _ in range(threads)]

    def copy(rounds: list[tuple[float, float]]) -> None:
        source, destination = np.ones(size, np.uint8), np.zeros(size, np.uint8)
        for _ in range(ROUNDS):
            start_line.wait()
            begin = time.perf_counter()
            for _ in range(times):
                np.copyto(destination, source)
            rounds.append((begin, time.perf_counter()))

    workers = [threading.Thread(target=copy, args=(rounds,), daemon=True) for rounds in spans]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    # from the first that began to the last that ended: the system may not run all of them at once
    seconds = min(
        max(end for _, end in row) - min(begin for begin, _ in row) for row in zip(*spans, strict=True)
    )
    return 2 * size * threads * times / seconds
