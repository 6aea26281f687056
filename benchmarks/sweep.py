# SPDX-License-Identifier: Apache-2.0
"""uir-cpu against its peers in many operators of the sizes that models have, in a few minutes.

    python benchmarks/sweep.py [--only softmax transpose] [--peers "torch eager" uir-cpu] [--seconds 0.2]

Each peer has one process, in which it prepares all cases; then they take turns case by case.  The table has
medians in microseconds and the ratio of the fastest peer to uir-cpu (above 1: uir-cpu is faster), slowest
first.  Results are held against float64 as `cpu.py` does; a peer that is wrong, or cannot compile a case,
takes no part.
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
import time
import types
from multiprocessing.connection import Connection
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

OURS, AGREEMENT = "uir-cpu", 2e-4
PEERS = ("torch eager", "torch.compile", "ONNX Runtime", OURS)
#: Seconds of one turn, and before it, while threads of the peer before still look for work.
TURN, PAUSE = 0.04, 0.03


def _serve(link: Connection, peer: str, names: list[str], threads: int) -> None:
    """The process of a peer: prepare all cases, then take turns at those that it is told."""
    import torch
    from runners import RUNNERS, outputs, reference
    from turns import difference
    from usual_operators import build

    torch.set_num_threads(threads)
    thunks: dict[str, Any] = {}
    with torch.no_grad():
        for name in names:
            module, inputs = build(name)
            _set_apart(module)
            try:
                thunks[name] = RUNNERS[peer](module, inputs)
                found, expected = outputs(thunks[name]()), reference(*build(name))
                error = max(map(difference, found, expected))
                link.send(error if [a.shape for a in found] == [b.shape for b in expected] else math.inf)
            except Exception as failure:  # whatever a peer raises becomes a cell of the table
                link.send(f"{type(failure).__name__}: {str(failure)[:120]}")
        while (name := link.recv()) is not None:
            thunk, times = thunks[name], []
            for _ in range(3):
                thunk()
            end = time.perf_counter() + TURN
            while not times or time.perf_counter() < end:
                start = time.perf_counter()
                thunk()
                times.append(time.perf_counter() - start)
            link.send(times)


def _set_apart(module: Any) -> None:
    """Give a module a ``forward`` that is no other's: dynamo asks each graph of a function in turn."""
    shared = type(module).forward
    own = types.FunctionType(shared.__code__.replace(), shared.__globals__, "forward")
    module.__class__ = type("Apart", (type(module),), {"forward": own})


def prepared(
    names: list[str], peers: list[str], threads: int
) -> tuple[dict[str, Connection], list[multiprocessing.process.BaseProcess], dict[str, dict[str, Any]]]:
    """The peers' links, their processes, and by case what is wrong of whom."""
    context = multiprocessing.get_context("spawn")
    links: dict[str, Connection] = {}
    processes: list[multiprocessing.process.BaseProcess] = []
    rows: dict[str, dict[str, Any]] = {name: {"seconds": {}, "failed": {}} for name in names}
    for peer in peers:
        links[peer], theirs = context.Pipe()
        processes.append(context.Process(target=_serve, args=(theirs, peer, names, threads), daemon=True))
        processes[-1].start()
    for peer, link in links.items():  # all prepare at once
        for name in names:
            said = link.recv()
            if isinstance(said, str) or not said <= AGREEMENT:
                rows[name]["failed"][peer] = said if isinstance(said, str) else f"wrong by {said:.1e}"
    return links, processes, rows


def measure(links: dict[str, Connection], rows: dict[str, dict[str, Any]], seconds: float) -> None:
    """Median seconds of each case by peer, into its row."""
    for name, row in rows.items():
        times: dict[str, list[float]] = {peer: [] for peer in links if peer not in row["failed"]}
        for _ in range(max(2, round(seconds / TURN))):
            for peer, found in times.items():
                time.sleep(PAUSE)
                links[peer].send(name)
                found += links[peer].recv()
        row["seconds"] = {peer: statistics.median(found) for peer, found in times.items()}


def ratio(row: dict[str, Any]) -> float:
    """The fastest peer over ours; 0 where ours failed, infinite where no peer is there."""
    if OURS not in row["seconds"]:
        return 0.0
    others = [value for peer, value in row["seconds"].items() if peer != OURS]
    return min(others, default=math.inf) / row["seconds"][OURS]


def main() -> int:
    """Run the cases, print the table; 1 when uir-cpu is wrong or fails anywhere."""
    from usual_operators import USUAL

    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--only", nargs="*", help="words of cases")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), help="which to compare")
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each peer of a case")
    parser.add_argument("--json", type=pathlib.Path, help="write everything to this file")
    arguments = parser.parse_args()
    names = [n for n in USUAL if not arguments.only or any(word in n for word in arguments.only)]
    links, processes, rows = prepared(names, arguments.peers, len(os.sched_getaffinity(0)))
    measure(links, rows, arguments.seconds)
    for process in processes:
        process.terminate()
        process.join()
    print(" | ".join([f"{'':32}", *(f"{peer:>13}" for peer in arguments.peers), "ratio"]))
    for name, row in sorted(rows.items(), key=lambda each: ratio(each[1])):
        held = row["seconds"]
        cells = [f"{held[p] * 1e6:13.2f}" if p in held else f"{'-':>13}" for p in arguments.peers]
        print(" | ".join([f"{name:32}", *cells, f"{ratio(row):5.2f}"]))
    for name, row in rows.items():
        for peer, why in row["failed"].items():
            print(f"{name}: {peer}: {why}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return int(any(OURS in row["failed"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
