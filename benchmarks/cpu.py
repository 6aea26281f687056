# SPDX-License-Identifier: Apache-2.0
"""uir-cpu against torch eager, torch.compile, ONNX Runtime and stock TVM, interleaved in one run.

    python benchmarks/cpu.py                       models and fused operators
    python benchmarks/cpu.py --only minilm softmax
    python benchmarks/cpu.py --json out.json

Every case runs all peers in turn, round after round, on the same inputs; the table shows medians and the
ratio of the fastest peer to uir-cpu (above 1: uir-cpu is faster).  Results of all are compared first.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path[:0] = [
    str(pathlib.Path(__file__).resolve().parent),
    str(pathlib.Path(__file__).resolve().parents[1]),
]

import numpy as np
import torch
from copy_ceiling import StreamingCopy
from operators import OPERATORS, Operator
from rich.console import Console
from rich.table import Table
from runners import RUNNERS, first_output

from tests.models import MODELS

OURS = "uir-cpu"
#: Relative to the largest value: what fp32 models of some ten layers agree to.
AGREEMENT = 2e-4


def measure(functions: dict[str, Callable[[], Any]], seconds: float, limit: int = 200) -> dict[str, float]:
    """Median seconds of each function, all called in turn until the time is used up.

    A peer that alone would take a third of the time is called once and then left out of further rounds.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    slow: set[str] = set()
    for name, fn in functions.items():
        start = time.perf_counter()
        fn()
        if time.perf_counter() - start > seconds / 3:
            slow.add(name)
            times[name].append(time.perf_counter() - start)
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or (time.perf_counter() < end and rounds < limit):
        for name, fn in functions.items():
            if name in slow:
                continue
            start = time.perf_counter()
            fn()
            times[name].append(time.perf_counter() - start)
        rounds += 1
    return {name: statistics.median(values) for name, values in times.items()}


def run_case(
    name: str, build: Callable[[], Any], peers: list[str], seconds: float, console: Console
) -> dict[str, Any]:
    """One row: seconds by peer, what failed and why, the largest disagreement with torch."""
    module, inputs = build()
    functions: dict[str, Callable[[], Any]] = {}
    failed: dict[str, str] = {}
    prepare: dict[str, float] = {}
    for peer in peers:
        start = time.perf_counter()
        try:
            functions[peer] = RUNNERS[peer](module, inputs)
            functions[peer]()
        except (
            Exception
        ) as error:  # a peer that cannot run this case is a row of the table, not the end of it
            functions.pop(peer, None)
            failed[peer] = f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
            console.print(f"  {name}: {peer} failed: {failed[peer]}", markup=False)
        prepare[peer] = time.perf_counter() - start
    with torch.no_grad():
        expected = first_output(module(*inputs)).astype("float64")
        scale = max(1e-30, float(np.abs(expected).max()))
        errors = {
            peer: float(np.abs(first_output(fn()).astype("float64") - expected).max()) / scale
            for peer, fn in functions.items()
        }
        seconds_by_peer = measure(functions, seconds)
    wrong = [peer for peer, error in errors.items() if not error <= AGREEMENT]
    return {
        "case": name,
        "seconds": seconds_by_peer,
        "errors": errors,
        "wrong": wrong,
        "failed": failed,
        "prepare": prepare,
    }


def main() -> int:
    """Run the cases, print the table; 1 when uir-cpu is wrong or fails anywhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these")
    parser.add_argument("--peers", nargs="*", default=list(RUNNERS), help="which to compare")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each case")
    parser.add_argument("--json", type=pathlib.Path, help="write everything to this file")
    arguments = parser.parse_args()
    console = Console(width=150)
    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)

    cases: list[tuple[str, Callable[[], Any], Operator | None]] = [
        (name, lambda entry=entry: entry.build("full"), None) for name, entry in MODELS.items()
    ] + [(o.name, o.build, o) for o in OPERATORS]
    if arguments.only:
        cases = [c for c in cases if any(word in c[0] for word in arguments.only)]

    copy = StreamingCopy(threads)
    rows = []
    for name, build, operator in cases:
        with torch.no_grad():
            row = run_case(name, build, arguments.peers, arguments.seconds, console)
        ceiling = copy.bytes / measure({"copy": copy}, 0.5)["copy"]
        row["copy_bytes_per_second"] = ceiling
        if operator is not None and OURS in row["seconds"]:
            row["share_of_copy"] = operator.least_bytes() / row["seconds"][OURS] / ceiling
            row["streaming"] = operator.streaming
        rows.append(row)
        console.print(line(row, arguments.peers), markup=False)
    console.print(table(rows, arguments.peers))
    if arguments.json:
        arguments.json.write_text(json.dumps({"threads": threads, "rows": rows}, indent=1))
    return 1 if any(OURS in row["wrong"] or OURS in row["failed"] for row in rows) else 0


def ratio(row: dict[str, Any]) -> float | None:
    """Seconds of the fastest peer over ours."""
    peers = [s for p, s in row["seconds"].items() if p != OURS and p not in row["wrong"]]
    return min(peers) / row["seconds"][OURS] if peers and OURS in row["seconds"] else None


def line(row: dict[str, Any], peers: list[str]) -> str:
    """A row while the run goes on."""
    shown = ", ".join(f"{p} {row['seconds'][p] * 1e3:.3f} ms" for p in peers if p in row["seconds"])
    return f"{row['case']}: {shown}" + (f"  WRONG: {row['wrong']}" if row["wrong"] else "")


def table(rows: list[dict[str, Any]], peers: list[str]) -> Table:
    """All rows: milliseconds, the ratio, the share of the copy bandwidth."""
    out = Table(
        title="medians in ms; best peer / uir-cpu above 1 means uir-cpu is faster", title_justify="left"
    )
    out.add_column("case")
    for peer in peers:
        out.add_column(peer, justify="right")
    out.add_column("best peer / uir-cpu", justify="right")
    out.add_column("of copy bandwidth", justify="right")
    for row in rows:
        cells = [f"{row['seconds'][p] * 1e3:.3f}" if p in row["seconds"] else "failed" for p in peers]
        speed = ratio(row)
        share = f"{row['share_of_copy']:.0%}" if "share_of_copy" in row else ""
        out.add_row(row["case"], *cells, "" if speed is None else f"{speed:.2f}", share)
    return out


if __name__ == "__main__":
    sys.exit(main())
