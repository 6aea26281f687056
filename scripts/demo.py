# SPDX-License-Identifier: Apache-2.0
"""Compile the sentence encoder all-MiniLM-L6-v2 through iGraphs, compare it with torch, rank sentences.

Run by ``make demo``.  Exit code 1 when the numbers are not torch's.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np
import torch
import uir_tvm
from rich.console import Console
from rich.table import Table
from uir_tvm.cli import compile_progress

from tests.models import minilm

SENTENCES = (
    "A man is playing a guitar on the street.",
    "Someone performs music outdoors with a string instrument.",
    "A musician entertains people passing by.",
    "The stock market fell sharply on Monday.",
    "Shares dropped as investors sold technology companies.",
    "Compilers translate programs into machine code.",
    "The chef prepared a delicious vegetable soup.",
)
LENGTH = 64
#: What the table shows of the report.
ROWS = {
    "operators of the model": "operators",
    "library nodes": "library",
    "custom nodes": "custom",
    "distinct custom kernels": "kernels",
    "of them through an iGraph": "kernels_through_igraph",
    "DRAM bytes moved, every operator its own kernel": "bytes_before",
    "DRAM bytes moved, fused": "bytes_after",
}
MAX_ABS, MIN_COSINE = 1e-5, 0.999999
ROUNDS = 30


def main() -> int:
    """Compile, compare, rank, time; 0 when all is right."""
    console = Console()
    torch.set_num_threads(os.cpu_count() or 1)
    model = minilm.load()
    inputs = minilm.tokenize(SENTENCES, LENGTH)
    program = torch.export.export(model, inputs)

    start = time.perf_counter()
    with compile_progress() as notify:
        exe = uir_tvm.compile(program, target="uir-cpu", name="all-MiniLM-L6-v2", progress=notify)
    console.print(f"compiled all-MiniLM-L6-v2 for uir-cpu in {time.perf_counter() - start:.1f} s")

    console.print(kernel_table(exe.report()))
    with torch.no_grad():
        expected = model(*inputs).numpy()
    got = exe(*inputs).numpy()
    difference = float(np.abs(got - expected).max())
    cosine = float((got * expected).sum(1).min())
    right = difference <= MAX_ABS and cosine >= MIN_COSINE
    console.print(
        f"against torch: max abs difference {difference:.1e} (limit {MAX_ABS:.0e}), "
        f"min cosine {cosine:.7f} (limit {MIN_COSINE}): " + ("right" if right else "[red]WRONG[/]")
    )

    console.print(f"\nsimilarity to: {SENTENCES[0]}")
    scores = got @ got[0]
    for index in np.argsort(-scores)[1:]:
        console.print(f"  {scores[index]:6.3f}  {SENTENCES[index]}")

    ours, theirs = interleaved(lambda: exe(*inputs), lambda: model(*inputs))
    console.print(
        f"\n{len(SENTENCES)} sentences of {LENGTH} tokens: uir-cpu {ours * 1e3:.1f} ms, "
        f"torch eager {theirs * 1e3:.1f} ms (medians of {ROUNDS}, interleaved): {theirs / ours:.2f}x"
    )
    return 0 if right else 1


def kernel_table(report: dict) -> Table:
    """The summary of the kernel graph, one figure a line."""
    table = Table(title="kernel graph", show_header=False, title_justify="left")
    for title, key in ROWS.items():
        table.add_row(title, f"{report[key]:,}")
    table.add_row("kernels without an iGraph", str(len(report["kernels_without_igraph"])))
    return table


def interleaved(*functions: Callable[[], object]) -> list[float]:
    """Median seconds of each, called in turn."""
    times: list[list[float]] = [[] for _ in functions]
    with torch.no_grad():
        for round_ in range(ROUNDS + 3):
            for index, function in enumerate(functions):
                start = time.perf_counter()
                function()
                if round_ >= 3:
                    times[index].append(time.perf_counter() - start)
    return [statistics.median(t) for t in times]


if __name__ == "__main__":
    sys.exit(main())
