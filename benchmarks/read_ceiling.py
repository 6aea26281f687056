# SPDX-License-Identifier: Apache-2.0
"""How fast memory is read: a sum over so many bytes on all threads, compiled by g++ for this CPU."""

from __future__ import annotations

import ctypes
import statistics
import time

import numpy as np
from copy_ceiling import compiled

SOURCE = r"""
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>
typedef uint64_t Words __attribute__((vector_size(64), aligned(64)));
static void part(const char* from, size_t bytes, uint64_t* sum) {
  Words sums[4] = {};
  for (size_t i = 0; i + 256 <= bytes; i += 256) {
    for (int j = 0; j < 4; ++j) sums[j] ^= *(const Words*)(from + i + 64 * j);
  }
  const Words all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  *sum = all[0] ^ all[1] ^ all[2] ^ all[3] ^ all[4] ^ all[5] ^ all[6] ^ all[7];
}
extern "C" uint64_t read(const char* from, size_t bytes, int threads) {
  std::vector<std::thread> pool;
  std::vector<uint64_t> sums(threads);
  size_t each = bytes / threads / 256 * 256;
  for (int t = 1; t < threads; ++t) pool.emplace_back(part, from + t * each, each, &sums[t]);
  part(from, each, &sums[0]);
  for (auto& thread : pool) thread.join();
  uint64_t all = 0;
  for (uint64_t sum : sums) all ^= sum;
  return all;
}
"""


class StreamingRead:
    """Reads memory from its beginning to its end.

    Parameters
    ----------
    threads : int
    most : int
        Bytes that are read at most.
    """

    def __init__(self, threads: int, most: int) -> None:
        library = compiled(SOURCE, "read", "-march=native")
        self.function, self.threads = library.read, threads
        raw = np.ones(most + 4096, np.uint8)
        self._memory = raw[-raw.ctypes.data % 4096 :]

    def seconds(self, count: int, rounds: int = 7) -> float:
        """The median of some rounds over so many bytes; what a cache holds of them stays there."""
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            self.function(
                ctypes.c_void_p(self._memory.ctypes.data), ctypes.c_size_t(count), ctypes.c_int(self.threads)
            )
            times.append(time.perf_counter() - start)
        return statistics.median(times)
