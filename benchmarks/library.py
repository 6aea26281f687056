# SPDX-License-Identifier: Apache-2.0
"""Compare libraries for matrix products and convolutions on the CPU: `python benchmarks/library.py`.

Every library runs in its own process with the same number of threads; in each round every library measures
the case once, so that drift of the machine meets all of them alike. Printed is the median over the rounds, in
GFLOP/s; with --best the highest rate, for a machine with other programs. Libraries that are not Python
packages are found through OPENBLAS_SO, MKL_SO (with MKL_OMP_SO) and DNNL_SO; those not set are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

MATMULS = [
    ("minilm qkv/out", 1, 128, 384, 384),
    ("minilm qkv fused", 1, 128, 384, 1152),
    ("minilm up", 1, 128, 384, 1536),
    ("minilm down", 1, 128, 1536, 384),
    ("gpt2 qkv", 1, 128, 768, 2304),
    ("gpt2 up", 1, 128, 768, 3072),
    ("gpt2 down", 1, 128, 3072, 768),
    ("gpt2 head", 1, 128, 768, 50257),
    ("minilm QK", 12, 128, 32, 128),
    ("minilm PV", 12, 128, 128, 32),
    ("gpt2 QK", 12, 128, 64, 128),
    ("gpt2 PV", 12, 128, 128, 64),
    ("vit QK", 6, 197, 64, 197),
    ("vit PV", 6, 197, 197, 64),
]
CONVS = [
    ("resnet 7x7/2", (1, 3, 224, 224), (64, 3, 7, 7), 2, 3),
    ("resnet 3x3 64", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    ("resnet 3x3/2 128", (1, 64, 56, 56), (128, 64, 3, 3), 2, 1),
    ("resnet 3x3 128", (1, 128, 28, 28), (128, 128, 3, 3), 1, 1),
    ("resnet 1x1/2 128", (1, 64, 56, 56), (128, 64, 1, 1), 2, 0),
    ("resnet 3x3 256", (1, 256, 14, 14), (256, 256, 3, 3), 1, 1),
    ("resnet 3x3 512", (1, 512, 7, 7), (512, 512, 3, 3), 1, 1),
    ("vit patch 16x16/16", (1, 3, 224, 224), (384, 3, 16, 16), 16, 0),
]
NEEDS = {
    "openblas": "OPENBLAS_SO",
    "mkl": "MKL_SO",
    "mkl-packed": "MKL_SO",
    "onednn": "DNNL_SO",
    "onednn-packed": "DNNL_SO",
}
NAMES = ["openblas", "mkl", "mkl-packed", "torch", "ort", "onednn", "onednn-packed", "ours", "ours-packed"]


def cases() -> list[dict[str, Any]]:
    """Every case with its floating point operations."""
    out: list[dict[str, Any]] = []
    for name, b, m, k, n in MATMULS:
        out.append(
            {"op": "matmul", "name": name, "b": b, "m": m, "k": k, "n": n, "flop": 2.0 * b * m * k * n}
        )
    for name, x, w, stride, pad in CONVS:
        side = (x[2] + 2 * pad - w[2]) // stride + 1
        flop = 2.0 * side * side * w[0] * w[1] * w[2] * w[3]
        out.append({"op": "conv2d", "name": name, "x": x, "w": w, "stride": stride, "pad": pad, "flop": flop})
    return out


class Worker:
    """One library in its own process (see `library_peers.py`)."""

    def __init__(self, name: str, threads: int) -> None:
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), TVM_NUM_THREADS=str(threads),
                   OPENBLAS_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))  # fmt: skip
        script = Path(__file__).with_name("library_peers.py")
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, str(script), name],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def seconds(self, case: dict[str, Any]) -> tuple[float, float] | None:
        """Median and least time of one call; None where the library has no such operator."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker for {self.name} ended at case {case['name']}")
        return json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--libraries", nargs="*", default=None, help="default: all that are found")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument(
        "--best", action="store_true", help="least time instead of the median: for a busy machine"
    )
    options = parser.parse_args()
    chosen = options.libraries or [n for n in NAMES if NEEDS.get(n, n) in os.environ or n not in NEEDS]
    workers = [Worker(n, options.threads) for n in chosen]
    print(
        "GFLOP/s,",
        "best" if options.best else "median",
        "of",
        options.rounds,
        "rounds,",
        options.threads,
        "threads",
    )
    print(f"{'case':20s}" + "".join(f"{w.name:>15s}" for w in workers))
    for case in cases():
        if options.only not in case["name"]:
            continue
        seconds: dict[str, list[float]] = {w.name: [] for w in workers}
        for _ in range(options.rounds):
            for worker in workers:
                value = worker.seconds(case)
                if value is not None:
                    seconds[worker.name].append(value[1 if options.best else 0])
        pick = min if options.best else statistics.median
        rates = [case["flop"] / pick(v) / 1e9 if v else None for v in seconds.values()]
        print(
            f"{case['name']:20s}" + "".join(f"{'-' if r is None else f'{r:.0f}':>15s}" for r in rates),
            flush=True,
        )
    for worker in workers:
        worker.process.terminate()


if __name__ == "__main__":
    main()
