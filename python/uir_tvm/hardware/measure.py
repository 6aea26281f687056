# SPDX-License-Identifier: Apache-2.0
"""Bandwidth of this machine, measured by a short copy."""

from __future__ import annotations

import functools
import threading
import time

import numpy as np

ROUNDS = 3
#: A round moves at least so much, so that starting threads does not count.
LEAST_BYTES = 1 << 25


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
    parts = [(np.ones(size, np.uint8), np.zeros(size, np.uint8)) for _ in range(threads)]
    start_line, finish = threading.Barrier(threads + 1), threading.Barrier(threads + 1)

    def copy(source: np.ndarray, destination: np.ndarray) -> None:
        for _ in range(ROUNDS):
            start_line.wait()
            for _ in range(times):
                np.copyto(destination, source)
            finish.wait()

    workers = [threading.Thread(target=copy, args=part, daemon=True) for part in parts]
    for worker in workers:
        worker.start()
    best = float("inf")
    for _ in range(ROUNDS):
        start_line.wait()
        begin = time.perf_counter()
        finish.wait()
        best = min(best, time.perf_counter() - begin)
    for worker in workers:
        worker.join()
    return 2 * size * threads * times / best
