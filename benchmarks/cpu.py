# SPDX-License-Identifier: Apache-2.0
"""uir-cpu against torch eager, torch.compile, ONNX Runtime, XLA, IREE and stock TVM, interleaved in one run.

    python benchmarks/cpu.py                       models and fused operators
    python benchmarks/cpu.py --only minilm softmax
    python benchmarks/cpu.py --json out.json
    python benchmarks/cpu.py --only resnet gpt2 "graph break" --ours "backend uir, frozen" \\
        --peers "torch eager" "torch.compile" "backend uir" "backend uir, frozen"

Every peer runs a case in a process of its own; they take turns on the same inputs (`turns.py` says why).
The table shows medians and the ratio of the fastest peer to uir-cpu (above 1: uir-cpu is faster).  All
outputs of a call after the turns are held against what torch computes in float64: a peer that differs is
marked with the difference and left out of the ratio.  The last row is the geometric mean of the ratios.
A peer that is not installed is left out, and a line says how to install it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cases import BY_NAME, NAMES, build
from copy_ceiling import StreamingCopy
from rich.console import Console
from rich.table import Table
from runners import ASKED, RUNNERS, left_out, reference
from turns import Peer, take_turns

OURS = "uir-cpu"
#: Relative to the largest value: what fp32 models of some ten layers agree to.
AGREEMENT = 2e-4


def run_case(name: str, names: list[str], seconds: float, threads: int) -> dict[str, Any]:
    """One row: seconds by peer, what failed and why, the largest difference to float64."""
    peers = {peer: Peer(name, peer, threads) for peer in names}
    try:
        expected = reference(*build(name))
        for p in peers.values():  # all prepare at once; the turns come after
            p.wait()
        alive = {peer: p for peer, p in peers.items() if not p.failed}
        take_turns(list(alive.values()), seconds)
        errors = {peer: p.error(expected) for peer, p in alive.items()}
        return {
            "case": name,
            "seconds": {peer: p.median for peer, p in alive.items()},
            "errors": errors,
            "wrong": [peer for peer, error in errors.items() if not error <= AGREEMENT],
            "failed": {peer: p.failed for peer, p in peers.items() if p.failed},
            "prepare": {peer: p.prepare for peer, p in alive.items()},
        }
    finally:
        for peer in peers.values():
            peer.stop()


def copy_bandwidth(copy: StreamingCopy, rounds: int = 7) -> float:
    """Bytes per second of the streaming copy, the median of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        copy()
        times.append(time.perf_counter() - start)
    return copy.bytes / statistics.median(times)


def main() -> int:
    """Run the cases, print the table; 1 when uir-cpu is wrong or fails anywhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these")
    parser.add_argument(
        "--peers", nargs="*", default=list(RUNNERS), choices=[*RUNNERS, *ASKED], help="which to compare"
    )
    parser.add_argument("--ours", default=OURS, choices=[OURS, *ASKED], help="which of them the ratio is of")
    parser.add_argument("--seconds", type=float, default=1.5, help="time for each peer of a case")
    parser.add_argument("--json", type=pathlib.Path, help="write everything to this file")
    arguments = parser.parse_args()
    console = Console(width=150)
    threads = len(os.sched_getaffinity(0))
    for why in filter(None, map(left_out, arguments.peers)):
        console.print(why, markup=False)
    arguments.peers = [peer for peer in arguments.peers if not left_out(peer)]
    names = [n for n in NAMES if not arguments.only or any(word in n for word in arguments.only)]

    copy = StreamingCopy(threads)
    rows = []
    for name in names:
        row = run_case(name, arguments.peers, arguments.seconds, threads)
        row["copy_bytes_per_second"] = copy_bandwidth(copy)
        if name in BY_NAME and OURS in row["seconds"]:
            row["share_of_copy"] = (
                BY_NAME[name].least_bytes() / row["seconds"][OURS] / row["copy_bytes_per_second"]
            )
            row["streaming"] = BY_NAME[name].streaming
        rows.append(row)
        console.print(line(row, arguments.peers), markup=False)
        if arguments.json:
            arguments.json.write_text(json.dumps({"threads": threads, "rows": rows}, indent=1))
    console.print(table(rows, arguments.peers, arguments.ours))
    return 1 if any(arguments.ours in {*row["wrong"], *row["failed"]} for row in rows) else 0


def ratio(row: dict[str, Any], ours: str) -> float | None:
    """Seconds of the fastest peer, ours in no form, over ours."""
    others = {p: s for p, s in row["seconds"].items() if p not in {OURS, *ASKED, *row["wrong"]}}
    return min(others.values()) / row["seconds"][ours] if others and ours in row["seconds"] else None


def line(row: dict[str, Any], peers: list[str]) -> str:
    """A row while the run goes on."""
    shown = ", ".join(f"{p} {row['seconds'][p] * 1e3:.3f} ms" for p in peers if p in row["seconds"])
    notes = [f"WRONG: {row['wrong']}"] if row["wrong"] else []
    notes += [f"{peer} failed: {why}" for peer, why in row["failed"].items()]
    return "  ".join([f"{row['case']}: {shown}", *notes])


def cell(row: dict[str, Any], peer: str) -> str:
    """Milliseconds of a peer, with the difference where it is wrong."""
    if peer not in row["seconds"]:
        return "failed"
    wrong = f" WRONG by {row['errors'][peer]:.0e}" if peer in row["wrong"] else ""
    return f"{row['seconds'][peer] * 1e3:.3f}{wrong}"


def table(rows: list[dict[str, Any]], peers: list[str], ours: str = OURS) -> Table:
    """All rows: milliseconds, the ratio, the share of the copy bandwidth."""
    out = Table(
        title=f"medians in ms; best peer / {ours} above 1 means {ours} is faster", title_justify="left"
    )
    out.add_column("case")
    for peer in peers:
        out.add_column(peer, justify="right")
    out.add_column(f"best peer / {ours}", justify="right")
    out.add_column("of copy bandwidth", justify="right")
    for row in rows:
        cells = [cell(row, peer) for peer in peers]
        speed = ratio(row, ours)
        share = f"{row['share_of_copy']:.0%}" if "share_of_copy" in row else ""
        out.add_row(row["case"], *cells, "" if speed is None else f"{speed:.2f}", share)
    speeds = [speed for row in rows if (speed := ratio(row, ours)) is not None]
    if speeds:
        blank = [""] * len(peers)
        out.add_row("geometric mean", *blank, f"{statistics.geometric_mean(speeds):.2f}", "")
    return out


if __name__ == "__main__":
    sys.exit(main())
