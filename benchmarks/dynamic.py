#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of uir-cpu that are compiled once for all sizes, against kernels that are compiled for one size.

    python benchmarks/dynamic.py                            seven operators at five sizes
    python benchmarks/dynamic.py --only softmax --rows 1 37

Both run in turns on the same tensors; the ratio is of the medians. `--json FILE` keeps every figure.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tvm import te, tirx, topi

#: Rows at which they are compared.
ROWS = (1, 7, 64, 1000, 4096)
TARGET = "uir-cpu"


def _layer_norm(n: Any) -> list[Any]:
    x, gain, shift = (te.placeholder(s, name=f"x{k}") for k, s in enumerate([(n, 384), (384,), (384,)]))
    return [x, gain, shift, topi.nn.layer_norm(x, gain, shift, [1], 1e-5)]


def _softmax(n: Any) -> list[Any]:
    x = te.placeholder((n, 12, 128), name="x")
    return [x, topi.nn.softmax(x, -1)]


def _bias_tanh(n: Any) -> list[Any]:
    x, b = te.placeholder((n, 1536), name="x"), te.placeholder((1536,), name="b")
    return [x, b, te.compute((n, 1536), lambda i, j: te.tanh(x[i, j] + b[j]), "y")]


def _residual(n: Any) -> list[Any]:
    x, y = te.placeholder((n, 384), name="x"), te.placeholder((n, 384), name="y")
    return [x, y, te.compute((n, 384), lambda i, j: x[i, j] + y[i, j], "z")]


def _transpose(n: Any) -> list[Any]:
    x = te.placeholder((n, 64, 12), name="x")
    return [x, topi.transpose(x, (0, 2, 1))]


def _sum_of_rows(n: Any) -> list[Any]:
    x = te.placeholder((n, 768), name="x")
    return [x, topi.sum(x, 1)]


def _concat(n: Any) -> list[Any]:
    x, y = te.placeholder((n, 200), name="x"), te.placeholder((n, 312), name="y")
    return [x, y, topi.concatenate([x, y], 1)]


#: Name -> the tensors of an operator of so many rows, its result last.
OPERATORS: dict[str, Callable[[Any], list[Any]]] = {
    "layer norm": _layer_norm,
    "softmax": _softmax,
    "tanh of bias": _bias_tanh,
    "residual": _residual,
    "transpose": _transpose,
    "sum of rows": _sum_of_rows,
    "concat": _concat,
}


def kernel(tensors: Sequence[Any]) -> Any:
    """The kernel of an operator."""
    return tvm.tirx.build(tvm.IRModule({"main": te.create_prim_func(list(tensors))}), target=TARGET)["main"]


def compare(name: str, rows: int, always: Any, seconds: float) -> tuple[float, float]:
    """Median seconds of a call: compiled for all sizes, compiled for this one."""
    tensors = OPERATORS[name](tirx.IntImm("int64", rows))
    once = kernel(tensors)
    rng = np.random.default_rng(0)
    given = [
        tvm.runtime.tensor(rng.standard_normal([int(d) for d in t.shape]).astype("float32")) for t in tensors
    ]
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, into in zip((always, once), times, strict=True):
            start = time.perf_counter()
            call(*given)
            into.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=OPERATORS, default=list(OPERATORS), help="operators")
    parser.add_argument(
        "--rows", nargs="+", type=int, default=list(ROWS), help="sizes (default: %(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="of measuring a row of the table")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    given = parser.parse_args()
    table = Table("operator", "rows", "all sizes, us", "one size, us", "ratio")
    figures = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(given.only) * len(given.rows))
        for name in given.only:
            always = kernel(OPERATORS[name](tirx.Var("n", "int64")))
            for rows in given.rows:
                progress.update(task, advance=1, description=f"{name}, {rows} rows")
                one, other = compare(name, rows, always, given.seconds)
                figures.append({"operator": name, "rows": rows, "all_sizes_s": one, "one_size_s": other})
                table.add_row(name, str(rows), f"{one * 1e6:.1f}", f"{other * 1e6:.1f}", f"{one / other:.2f}")
    console = Console()
    console.print(table)
    ratios = [row["all_sizes_s"] / row["one_size_s"] for row in figures]
    console.print(f"ratio: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
