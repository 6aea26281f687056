# SPDX-License-Identifier: Apache-2.0
"""What verification costs: all rules on every distinct kernel of the test models.

``benchmarks/verification.py [--scale small|full|all] [--json FILE]`` prints the median and the worst kernels.
A kernel's time is the least of some runs, each on a graph that nothing has been computed of; the median over
kernels is what the project promises to keep under `TARGET_MS`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch
from rich.console import Console
from rich.table import Table
from uir_tvm import api, kernel_graph
from uir_tvm.errors import UirError
from uir_tvm.igraph import IGraph
from uir_tvm.pipeline import compile_kernel
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import RULE_SETS
from uir_tvm.verify.access import GraphFacts

from tests.models import MODELS, Scale

TARGET_MS = 50.0
WORST = 10


def main() -> int:
    """Measure as the command line says; 1 when a median is above the target or a kernel is refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--scale", choices=("small", "full", "all"), default="all")
    parser.add_argument("--target", choices=TARGETS, default="uir-cpu")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="also write every figure there")
    args = parser.parse_args()
    unknown = sorted(set(args.models) - set(MODELS))
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    console = Console(width=None if sys.stdout.isatty() else 140)
    figures: list[dict[str, Any]] = []
    good = True
    scales: tuple[Scale, ...] = ("small", "full") if args.scale == "all" else (args.scale,)
    for scale in scales:
        found = []
        for model in args.models or MODELS:
            for name, graph in graphs(model, scale, args.target):
                found.append({"scale": scale, "model": model, "kernel": name, **measure(graph, args.repeat)})
            console.print(f"{model}, {scale} scale: {len(found)} kernels so far", style="dim")
        good = report(console, scale, found) and good
        figures += found
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(figures, indent=1))
    return 0 if good else 1


def graphs(model: str, scale: Scale, target: str) -> Iterator[tuple[str, IGraph]]:
    """The iGraphs of a model's kernels, as the pipeline verifies them."""
    module, inputs = MODELS[model].build(scale)
    mod = api.import_model(torch.export.export(module, inputs))
    chosen = TARGETS[target].target()
    for name, func in kernel_graph.build(mod, chosen).kernels.items():
        graph = compile_kernel(func, chosen, name).igraph
        if graph is not None:
            yield name, graph


def measure(graph: IGraph, repeat: int) -> dict[str, Any]:
    """Milliseconds of all rules together, and of each rule in the fastest run."""
    best: dict[str, float] = {}
    for _ in range(repeat):
        spent: dict[str, float] = {}
        start = time.perf_counter()
        program = GraphFacts(graph)
        refused = ""
        for rule_set in RULE_SETS:
            for rule, checks in rule_set.items():
                began = time.perf_counter()
                try:
                    refused = refused or next((str(f) for check in checks for f in check(program)), "")
                except UirError as error:
                    refused = str(error)
                spent[rule] = 1e3 * (time.perf_counter() - began)
        total = 1e3 * (time.perf_counter() - start)
        if not best or total < best["ms"]:
            best = {"ms": total, **{f"ms {rule}": ms for rule, ms in spent.items()}}
    return {**best, "refused": refused, "iops": len(list(graph.walk()))}


def report(console: Console, scale: str, found: list[dict[str, Any]]) -> bool:
    """Print the median and the worst kernels of one scale; whether the median is in time and none refused."""
    times = [row["ms"] for row in found]
    median = statistics.median(times)
    columns = ("model", "kernel", "iOps", "ms", "of which")
    table = Table(*columns, title=f"Verification, {scale} scale: the worst {WORST}")
    for row in sorted(found, key=lambda row: -row["ms"])[:WORST]:
        spent = sorted(((ms, name[3:]) for name, ms in row.items() if name.startswith("ms ")), reverse=True)
        most = ", ".join(f"{rule} {ms:.1f}" for ms, rule in spent[:3])
        table.add_row(row["model"], row["kernel"][:48], str(row["iops"]), f"{row['ms']:.1f}", most)
    console.print(table)
    console.print(
        f"{scale}: {len(found)} kernels, median {median:.1f} ms (target {TARGET_MS:.0f}), "
        f"mean {statistics.mean(times):.1f}, worst {max(times):.1f}, all {sum(times) / 1e3:.1f} s"
    )
    for row in found:
        if row["refused"]:
            console.print(
                f"REFUSED {row['model']}/{row['kernel']}: {row['refused']}", style="red", markup=False
            )
    return median < TARGET_MS and not any(row["refused"] for row in found)


if __name__ == "__main__":
    sys.exit(main())
