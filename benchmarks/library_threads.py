# SPDX-License-Identifier: Apache-2.0
"""One thread pool or two: `python benchmarks/library_threads.py`.

A compiled model alternates library calls with kernels on TVM's thread pool. Timed is such a pair, a product
and an elementwise kernel, with the product cut over TVM's pool ("pool"), left to the library's own OpenMP
threads ("openmp"), and everything on one thread ("serial"), in turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

THREADS = str(min(2, os.cpu_count() or 1))
os.environ.setdefault("TVM_NUM_THREADS", THREADS)
os.environ.setdefault("OMP_NUM_THREADS", THREADS)

import numpy as np
import tvm
from tvm.script import tirx as T
from uir_tvm.library import cpu

SHAPES = [("minilm qkv/out", 128, 384, 384), ("minilm up", 128, 384, 1536), ("minilm down", 128, 1536, 384),
          ("gpt2 qkv", 128, 768, 2304), ("gpt2 down", 128, 3072, 768)]  # fmt: skip


def elementwise(m: int, n: int) -> Any:
    """A kernel of two parallel tasks per call: y = y * 0.5 + 1 over [m, n]."""

    @T.prim_func(s_tir=True)
    def main(y: T.Buffer((m, n), "float32"), z: T.Buffer((m, n), "float32")) -> None:
        for i in T.parallel(m):
            for j in T.vectorized(n):
                z[i, j] = y[i, j] * T.float32(0.5) + T.float32(1.0)

    return tvm.compile(tvm.IRModule({"main": main}), target="llvm")["main"]


def time_us(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median and least time of a call in microseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6, min(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--best", action="store_true", help="least time instead of the median: for a busy machine"
    )
    options = parser.parse_args()
    cpu.require()
    product = tvm.get_global_func(cpu.MATMUL)
    set_threading = tvm.get_global_func("uir.library.cpu.set_threading")
    configure = tvm.get_global_func("runtime.config_threadpool")
    modes = {"pool": ("pool", int(THREADS)), "openmp": ("openmp", int(THREADS)), "serial": ("pool", 1)}
    print("microseconds of a product and an elementwise kernel,", THREADS, "threads")
    print(f"{'case':18s}" + "".join(f"{mode:>10s}" for mode in modes))
    for name, m, k, n in SHAPES:
        attrs = cpu.MatmulAttrs.contiguous((m, k), (k, n))
        text = attrs.to_json()
        rng = np.random.default_rng(0)
        a, b = (tvm.runtime.tensor(rng.standard_normal(s, dtype=np.float32)) for s in ((m, k), (k, n)))
        y, z = (tvm.runtime.tensor(np.zeros((m, n), np.float32)) for _ in range(2))
        kernel = elementwise(m, n)

        def pair() -> None:
            product(a, b, text, y)  # noqa: B023
            kernel(y, z)  # noqa: B023

        seconds: dict[str, list[float]] = {mode: [] for mode in modes}
        for _ in range(options.rounds):
            for mode, (threading, threads) in modes.items():
                set_threading(threading)
                configure(1, threads)
                time_us(pair, 5)
                seconds[mode].append(time_us(pair, 30)[1 if options.best else 0])
        pick = min if options.best else statistics.median
        print(f"{name:18s}" + "".join(f"{pick(v):10.0f}" for v in seconds.values()), flush=True)


if __name__ == "__main__":
    main()
