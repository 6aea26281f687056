# SPDX-License-Identifier: Apache-2.0
"""Bandwidth of this machine, measured by a short copy."""

from __future__ import annotations

import functools
import statistics
import threading
import time

import numpy as np

ROUNDS = 7
#: A round moves at least so much, so that starting threads does not count.
LEAST_BYTES = 1 << 24


@functools.cache
def copy_bytes_per_second(footprint: int, threads: int) -> float:
    """Bytes read and written per second by a copy, the median of a few rounds; measured once per process.

    Parameters
    ----------
    footprint : int
        Bytes of source and destination together, over all threads.
    threads : int
        Threads, each with its own part, that copy at the same time.

    Notes
    -----
    Time is that in which a thread has a CPU, so that other programs take little from the result; NumPy's copy
    lets other threads run meanwhile.  Lines that a store allocates are not counted as read.
    """
    size = max(footprint // (2 * threads), 4096)
    times = max(LEAST_BYTES // (2 * size * threads), 1)
    start_line = threading.Barrier(threads)
    spans: list[list[float]] = [[] for _ in range(threads)]

    def copy(seconds: list[float]) -> None:
        source, destination = np.ones(size, np.uint8), np.zeros(size, np.uint8)
        for _ in range(ROUNDS):
            start_line.wait()
            begin = time.thread_time()
            for _ in range(times):
                np.copyto(destination, source)
            seconds.append(time.thread_time() - begin)

    workers = [threading.Thread(target=copy, args=(seconds,), daemon=True) for seconds in spans]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    per_thread = 2 * size * times
    return statistics.median(sum(per_thread / s for s in together) for together in zip(*spans, strict=True))
