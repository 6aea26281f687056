# SPDX-License-Identifier: Apache-2.0
"""The bandwidth ceiling: a copy with streaming stores, compiled by g++ for this CPU, on all threads."""

from __future__ import annotations

import ctypes
import pathlib
import subprocess
import tempfile

import numpy as np

SOURCE = r"""
#include <immintrin.h>
#include <cstddef>
#include <thread>
#include <vector>
static void part(float* dst, const float* src, size_t n) {
  for (size_t i = 0; i < n; i += 8) _mm256_stream_ps(dst + i, _mm256_load_ps(src + i));
  _mm_sfence();
}
extern "C" void copy(float* dst, const float* src, size_t n, int threads) {
  std::vector<std::thread> pool;
  size_t chunk = n / threads / 16 * 16;
  for (int t = 1; t < threads; ++t)
    pool.emplace_back(part, dst + t * chunk, src + t * chunk, t + 1 == threads ? n - t * chunk : chunk);
  part(dst, src, chunk);
  for (auto& thread : pool) thread.join();
}
"""


def compiled(text: str, name: str, *flags: str) -> ctypes.CDLL:
    """A library of C++ text, compiled for this CPU."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"{name}.cc"
        library = source.with_suffix(".so")
        source.write_text(text)
        subprocess.run(
            ["g++", "-O3", *flags, "-shared", "-fPIC", "-pthread", source, "-o", library], check=True
        )
        return ctypes.CDLL(str(library))


class StreamingCopy:
    """Copies ``bytes / 2`` bytes per call (so that ``bytes`` are moved); call it, then divide."""

    def __init__(self, threads: int, elements: int = 64 * 1024 * 1024) -> None:
        self.function = compiled(SOURCE, "copy", "-mavx2").copy
        self.threads = threads
        self.source, self.target = (self._aligned(elements) for _ in range(2))
        self.bytes = 2 * self.source.nbytes

    @staticmethod
    def _aligned(elements: int) -> np.ndarray:
        raw = np.ones(elements + 16, dtype="float32")
        start = (-raw.ctypes.data % 64) // 4
        return raw[start : start + elements]

    def __call__(self) -> None:
        """One copy."""
        self.function(
            ctypes.c_void_p(self.target.ctypes.data),
            ctypes.c_void_p(self.source.ctypes.data),
            ctypes.c_size_t(self.source.size),
            ctypes.c_int(self.threads),
        )
