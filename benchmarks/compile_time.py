#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of compiling: with fixed and with open sizes, the second time, and of models that grow.

    python benchmarks/compile_time.py   MiniLM, and a network of 300, 1000 and 3000 operators
    python benchmarks/compile_time.py --only gpt2 vit --operators --json out.json

A figure is the CPU time of a process (`time.process_time`) until the first call has returned, what PyTorch
exports aside; each is the median of `--repeat` fresh processes. "again" is a second compilation in the same
process, "kept" the first one of a process that finds kernels on disk. "a kernel" is what a distinct one takes
where nothing is kept and another model was compiled before: its stages, TVM's passes and LLVM, until its code
is ready, without what reads the model and maps it to kernels. Of growing networks the exponent says how the
time grows from one number of operators to the next: 1 is in proportion.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
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


def _of_kernels(name: str, link: Any) -> None:
    """In a process of its own: how many distinct kernels a model has, and the CPU seconds that they take."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import uir_tvm
    from uir_tvm import api
    from uir_tvm.target.code_parts import make_ready

    taken, build = [], api.build_library

    def timed(*args: Any) -> Any:
        start = time.process_time()
        made = build(*args)
        make_ready(made.mod)
        taken.append(time.process_time() - start)
        return made

    api.build_library = timed
    for module, inputs in ((torch.nn.Softmax(-1), (torch.randn(64, 48),)), _model(name)[:2]):
        program = torch.export.export(module.eval(), inputs)
        made = uir_tvm.compile(program, options=uir_tvm.CompileOptions(kernel_cache="off"))
    link.send((len(made.info.kernels), taken[-1]))


def _alone(function: Callable[..., None], *args: Any) -> Any:
    """What a function sends from a fresh process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=function, args=(*args, theirs), daemon=True)
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    return found


def measured(name: str, kind: str, cache: str = "off", times: int = 1) -> list[tuple[float, float]]:
    """CPU seconds in a fresh process: of each time the export, and the compilation with the first call."""
    found: list[tuple[float, float]] = _alone(_seconds, name, kind, cache, times)
    return found


def of_kernels(name: str, repeat: int) -> dict[str, float]:
    """Distinct kernels of a model with fixed sizes, and the median of the CPU seconds that each takes."""
    runs: list[tuple[int, float]] = [_alone(_of_kernels, name) for _ in range(repeat)]
    count = runs[0][0]
    return {"kernels": count, "a kernel": statistics.median(taken for _, taken in runs) / max(count, 1)}


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
    parser.add_argument("--sizes", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--json", type=pathlib.Path, help="write everything to this file")
    given = parser.parse_args()
    console = Console(soft_wrap=True)
    told: dict[str, list[dict[str, Any]]] = {"models": [], "operators": []}
    if given.only:
        columns = ("export", "first", "again", "kept")
        table = Table("model", "sizes", *(f"{each} s" for each in columns), "again", "kernels", "a kernel s")
        for name in given.only:
            for kind in given.sizes:
                row = _median(name, kind, given.repeat)
                row |= of_kernels(name, given.repeat) if kind == "fixed" else {}
                own = [str(row["kernels"]), f"{row['a kernel']:.3f}"] if "kernels" in row else ["", ""]
                share = f"{row['again'] / row['first']:.0%}"
                table.add_row(name, kind, *(f"{row[key]:.2f}" for key in columns), share, *own)
                told["models"].append({"model": name, "sizes": kind, **row})
        console.print(table)
    if given.operators:
        table = Table("operators", "sizes", "export s", "compile s", "exponent")
        for kind in given.sizes:
            before = None
            for count in given.operators:
                runs = [measured(str(count), kind)[0] for _ in range(given.repeat)]
                export, taken = (statistics.median(run[at] for run in runs) for at in (0, 1))
                grown = "" if before is None else math.log(taken / before[1]) / math.log(count / before[0])
                table.add_row(str(count), kind, f"{export:.2f}", f"{taken:.2f}", grown and f"{grown:.2f}")
                before = count, taken
                told["operators"].append(
                    {"operators": count, "sizes": kind, "export": export, "compile": taken}
                )
        console.print(table)
    if given.json:
        given.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
