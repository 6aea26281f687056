#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled once for all sizes, against kernels that are compiled for one size.

    python benchmarks/dynamic.py                            operators with open rows, and of open length
    python benchmarks/dynamic.py --only softmax --rows 1 37
    python benchmarks/dynamic.py --target uir-ascend        modelled times of a device that is not at hand

On uir-cpu both run in turns on the same tensors; the ratio is of the means of the middle half of all calls:
clocks step by 10 ns, so that the median of a call of 300 ns is right to 3 % alone.  Operators of open length
have a greatest one, `LONGEST`.  `--json FILE` keeps every figure.
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

import attrs
import numpy as np
import tvm
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tvm import te, tirx, topi
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.runtime.modelled import recording

#: Rows at which they are compared.
ROWS = (1, 7, 64, 1000, 4096)
#: Batches and lengths at which operators of open length are, and the greatest length.
LENGTHS = ((8, 37), (8, 128), (64, 128), (8, 512))
LONGEST = 512


def _layer_norm(n: Any, width: Any = 384) -> list[Any]:
    x, gain, shift = (te.placeholder(s, name=f"x{k}") for k, s in enumerate([(n, width), (width,), (width,)]))
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


def _open_softmax(b: Any, s: Any) -> list[Any]:
    x = te.placeholder((b, 12, s), name="x")
    return [x, topi.nn.softmax(x, -1)]


def _scores(b: Any, s: Any) -> list[Any]:
    x, mask = te.placeholder((b, 12, s, s), name="x"), te.placeholder((b, 1, 1, s), name="mask")
    return [x, mask, te.compute(x.shape, lambda n, h, i, j: x[n, h, i, j] * 0.125 + mask[n, 0, 0, j], "y")]


def _masked_softmax(b: Any, s: Any) -> list[Any]:
    x, mask, y = _scores(b, s)
    return [x, mask, topi.nn.softmax(y, -1)]


def _heads_first(b: Any, s: Any) -> list[Any]:
    x = te.placeholder((b, s, 12, 64), name="x")
    return [x, topi.transpose(x, (0, 2, 1, 3))]


def _heads_last(b: Any, s: Any) -> list[Any]:
    x = te.placeholder((b, 12, s, 64), name="x")
    return [x, topi.transpose(x, (0, 2, 1, 3))]


def _open_transpose(b: Any, s: Any) -> list[Any]:
    x = te.placeholder((b, s), name="x")
    return [x, topi.transpose(x, (1, 0))]


@attrs.frozen
class Operator:
    """The tensors of an operator by its sizes, its result last; of the second one the greatest value."""

    tensors: Callable[..., list[Any]]
    longest: int | None = None

    @property
    def names(self) -> list[str]:
        """Of its sizes."""
        return ["n"] if self.longest is None else ["n", "s"]


OPERATORS: dict[str, Operator] = {
    "layer norm": Operator(_layer_norm),
    "softmax": Operator(_softmax),
    "tanh of bias": Operator(_bias_tanh),
    "residual": Operator(_residual),
    "transpose": Operator(_transpose),
    "sum of rows": Operator(_sum_of_rows),
    "concat": Operator(_concat),
    "softmax of open rows": Operator(_open_softmax, LONGEST),
    "layer norm of open rows": Operator(_layer_norm, LONGEST),
    "scores and mask": Operator(_scores, 128),
    "masked softmax": Operator(_masked_softmax, 128),
    "heads first": Operator(_heads_first, LONGEST),
    "heads last": Operator(_heads_last, LONGEST),
    "transpose of open rows": Operator(_open_transpose, LONGEST),
}


def kernel(operator: Operator, sizes: Sequence[int], target: str) -> Any:
    """The kernel of an operator: for some sizes, or without these for all."""
    if sizes:
        func = te.create_prim_func(operator.tensors(*(tirx.IntImm("int64", size) for size in sizes)))
    else:
        func = te.create_prim_func(operator.tensors(*(tirx.Var(name, "int64") for name in operator.names)))
        if operator.longest is not None:
            func = with_sizes(func, {"n": Size("n", 1, 4096), "s": Size("s", 1, operator.longest)})
    return tvm.tirx.build(tvm.IRModule({"main": func}), target=target)["main"]


def middle(times: Sequence[float]) -> float:
    """The mean of the middle half: as little moved by interruptions as the median, and finer than a clock."""
    quarter = len(times) // 4
    return statistics.fmean(sorted(times)[quarter : len(times) - quarter])


def compare(
    operator: Operator, sizes: Sequence[int], always: Any, target: str, seconds: float
) -> tuple[float, float]:
    """Seconds of a call: compiled for all sizes, compiled for these; measured, or modelled."""
    tensors = operator.tensors(*(tirx.IntImm("int64", size) for size in sizes))
    once = kernel(operator, sizes, target)
    rng = np.random.default_rng(0)
    device = tvm.cpu() if target == "uir-cpu" else tvm.ext_dev(0)
    given = [
        tvm.runtime.tensor(rng.standard_normal([int(d) for d in t.shape]).astype("float32"), device)
        for t in tensors
    ]
    if target != "uir-cpu":
        found = []
        for call in (always, once):
            with recording() as noted:
                call(*given)
            found.append(noted.times.seconds)
        return found[0], found[1]
    times: tuple[list[float], list[float]] = ([], [])
    turns = [(always, times[0]), (once, times[1])]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, into in turns:
            start = time.perf_counter()
            call(*given)
            into.append(time.perf_counter() - start)
        turns.reverse()  # the first of two pays for what Python did since
    return middle(times[0]), middle(times[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=OPERATORS, default=list(OPERATORS), help="operators")
    parser.add_argument(
        "--rows", nargs="+", type=int, default=list(ROWS), help="sizes (default: %(default)s)"
    )
    parser.add_argument("--target", choices=("uir-cpu", "uir-ascend", "uir-bang"), default="uir-cpu")
    parser.add_argument("--seconds", type=float, default=0.5, help="of measuring a row of the table")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    given = parser.parse_args()
    modelled = "" if given.target == "uir-cpu" else "modelled "
    table = Table("operator", "sizes", f"all sizes, {modelled}us", f"one size, {modelled}us", "ratio")
    rows = [(name, (n,)) for name in given.only if OPERATORS[name].longest is None for n in given.rows]
    for name in given.only:
        longest = OPERATORS[name].longest
        rows += [(name, sizes) for sizes in LENGTHS if longest is not None and sizes[1] <= longest]
    figures: list[dict[str, Any]] = []
    kernels: dict[str, Any] = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(rows))
        for name, sizes in rows:
            text = " x ".join(map(str, sizes))
            progress.update(task, advance=1, description=f"{name}, {text}")
            if name not in kernels:
                kernels[name] = kernel(OPERATORS[name], (), given.target)
            one, other = compare(OPERATORS[name], sizes, kernels[name], given.target, given.seconds)
            figures.append({"operator": name, "sizes": sizes, "all_sizes_s": one, "one_size_s": other})
            table.add_row(name, text, f"{one * 1e6:.1f}", f"{other * 1e6:.1f}", f"{one / other:.2f}")
    console = Console()
    console.print(table)
    ratios = [row["all_sizes_s"] / row["one_size_s"] for row in figures]
    console.print(f"ratio: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")
    if given.json is not None:
        given.json.write_text(json.dumps({"target": given.target, "rows": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
