#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of compiling: with fixed and with open sizes, the second time, and of models that grow.

    python benchmarks/compile_time.py   MiniLM, and a network of 300, 1000 and 3000 operators
    python benchmarks/compile_time.py --only gpt2 vit --operators

A figure is the CPU time of a process (`time.process_time`) until the first call has returned, what PyTorch
exports aside; each is the median of `--repeat` fresh processes. "again" is a second compilation in the same
process, "kept" the first one of a process that finds kernels on disk. Of growing networks the exponent says
how the time grows from one number of operators to the next: 1 is in proportion.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time
import warnings
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch
from rich.console import Console
from rich.table import Table
from torch.export import Dim

from benchmarks import dynamic_models

#: Operators of a layer of `Grows`.
OF_A_LAYER = 10
KINDS = ("fixed", "open")


class Grows(torch.nn.Module):
    """Layers of ten operators each."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.products = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(layers))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(16) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (rows, 16) -> (rows, 16)."""
        for product, norm in zip(self.products, self.norms, strict=True):
            y = torch.tanh(product(x)) * 0.5 + x
            y = torch.softmax(y, -1) - y.sigmoid()
            x = norm(x + y.relu().exp())
        return x


def _model(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...], Any]:
    """A model of `dynamic_models`, or a number of operators: module, inputs, open axes."""
    if name.isdigit():
        return Grows(int(name) // OF_A_LAYER).eval(), (torch.randn(4, 16),), ({0: Dim("rows", max=512)},)
    case = dynamic_models.CASES[name]
    return dynamic_models.build(name), dynamic_models.example(case), dynamic_models.dims(case)


def _seconds(name: str, kind: str, cache: str, times: int, link: Any) -> None:
    """In a process of its own: CPU seconds of the export, and of each compilation with its first call."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import uir_tvm

    module, inputs, axes = _model(name)
    options = uir_tvm.CompileOptions(kernel_cache=cache)
    found = []
    for _ in range(times):
        start = time.process_time()
        program = torch.export.export(module, inputs, dynamic_shapes=axes if kind == "open" else None)
        exported = time.process_time()
        uir_tvm.compile(program, options=options)(*inputs)
        found.append((exported - start, time.process_time() - exported))
    link.send(found)


def measured(name: str, kind: str, cache: str = "off", times: int = 1) -> list[tuple[float, float]]:
    """CPU seconds in a fresh process: of each time the export, and the compilation with the first call."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_seconds, args=(name, kind, cache, times, theirs), daemon=True)
    process.start()
    theirs.close()
    found: list[tuple[float, float]] = ours.recv()
    process.join()
    return found


def _median(name: str, kind: str, repeat: int) -> dict[str, float]:
    """The figures of a row."""
    runs = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["UIR_CACHE_DIR"] = folder
            first, second = measured(name, kind, "disk", 2)
            (kept,) = measured(name, kind, "disk")
        runs.append({"export": first[0], "first": first[1], "again": second[1], "kept": kept[1]})
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=list(dynamic_models.CASES), default=["minilm"])
    parser.add_argument("--operators", nargs="*", type=int, default=[300, 1000, 3000])
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    console = Console(soft_wrap=True)
    if given.only:
        table = Table("model", "sizes", "export s", "first s", "again s", "kept s", "of fixed")
        for name in given.only:
            rows = {kind: _median(name, kind, given.repeat) for kind in KINDS}
            for kind, row in rows.items():
                figures = [f"{row[key]:.2f}" for key in ("export", "first", "again", "kept")]
                table.add_row(name, kind, *figures, f"{row['first'] / rows['fixed']['first']:.2f}")
        console.print(table)
    if given.operators:
        table = Table("operators", "sizes", "export s", "compile s", "exponent")
        for kind in KINDS:
            before = None
            for count in given.operators:
                runs = [measured(str(count), kind)[0] for _ in range(given.repeat)]
                export, taken = (statistics.median(run[at] for run in runs) for at in (0, 1))
                grown = "" if before is None else math.log(taken / before[1]) / math.log(count / before[0])
                table.add_row(str(count), kind, f"{export:.2f}", f"{taken:.2f}", grown and f"{grown:.2f}")
                before = count, taken
        console.print(table)


if __name__ == "__main__":
    main()
