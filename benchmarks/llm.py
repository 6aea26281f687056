# SPDX-License-Identifier: Apache-2.0
"""A language model on uir-cpu beside llama.cpp, ONNX Runtime and torch, on the same file in one run.

    python benchmarks/llm.py SmolLM2-135M-Instruct.Q4_1.gguf
    python benchmarks/llm.py FILE --peers uir-cpu llama.cpp --only decode --kept FOLDER --json out.json

Every runtime has a process of its own; they take turns (`turns.py` says why). Prompts are of 128 and 512
tokens, single tokens stand behind caches of 32, 512 and 2,000. The table has tokens per second (medians), the
ratio of uir-cpu to each other runtime, and for single tokens the share of the memory's bound: the bytes of
weights and cache that a token reads, in the time that reading as many bytes takes all threads, over its time
(what a cache holds is read faster). A runtime that is
not installed, ends, or does not answer is named with the reason, and the others go on; llama.cpp is the
package llama-cpp-python, its products on AMX left out (`llm_peers.py`). How far the logits of every point are
from those of uir-cpu is said, and at the end whether all choose the same tokens. Compiling takes minutes and
is in no figure: with --kept models that were compiled are there for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
from typing import Any

THREADS = str(min(2, len(os.sched_getaffinity(0))))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
for variable in ("OMP_NUM_THREADS", "TVM_NUM_THREADS"):
    os.environ.setdefault(variable, THREADS)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np
from llm_peers import KEPT, PEERS, PROMPTS
from llm_turns import Runtime
from read_ceiling import StreamingRead
from rich.console import Console
from rich.table import Table

POINTS = (*(("prefill", size) for size in PROMPTS), *(("decode", size) for size in (32, 512, 2000)))
#: Tokens that caches have room for.
ROOM = 2048
#: Tokens whose choice is compared, and the prompt that they follow.
GREEDY, PROMPT = 24, [1, 504, 260, 1998, 282, 4649]


def measure(
    runtimes: dict[str, Runtime],
    points: list[tuple[str, int]],
    ours: str,
    rounds: int,
    reading: StreamingRead,
    console: Console,
) -> list[dict[str, Any]]:
    """A row for each point: tokens per second, ratios, shares of the memory's bound."""
    rows = []
    for kind, size in points:
        for runtime in _alive(runtimes).values():
            runtime.ask("fill", size if kind == "decode" else 0)
        logits = {name: each.ask("logits", kind, size) for name, each in _alive(runtimes).items()}
        for _ in range(rounds):
            for runtime in _alive(runtimes).values():
                runtime.turn(kind, size)
        alive = _alive(runtimes)
        seconds = {name: each.median(kind, size) for name, each in alive.items() if each.times[kind, size]}
        tokens = size if kind == "prefill" else 1
        least = {}
        if kind == "decode":
            least = {name: reading.seconds(each.read_bytes(kind, size)) for name, each in alive.items()}
        rows.append(
            {
                "point": f"{kind} {size}",
                "tokens_per_second": {name: tokens / each for name, each in seconds.items()},
                "ratio": {
                    name: each / seconds[ours]
                    for name, each in seconds.items()
                    if ours in seconds and name != ours
                },
                "share_of_bound": {
                    name: least[name] / each for name, each in seconds.items() if name in least
                },
                "apart": apart(logits, ours),
            }
        )
        rates = ", ".join(f"{name} {rate:.1f}" for name, rate in rows[-1]["tokens_per_second"].items())
        far = ", ".join(f"{name} {each:.1e}" for name, each in rows[-1]["apart"].items())
        console.print(f"{kind} {size}: {rates} tokens/s; apart: {far}", markup=False, highlight=False)
    return rows


def apart(logits: dict[str, np.ndarray | None], ours: str) -> dict[str, float]:
    """How far the logits of others are from ours: the root of the mean square, by that of ours."""
    first = logits.get(ours)
    if first is None:
        return {}
    scale = float(np.linalg.norm(first))
    others = {name: each for name, each in logits.items() if each is not None and name != ours}
    return {name: float(np.linalg.norm(each - first)) / scale for name, each in others.items()}


def _alive(runtimes: dict[str, Runtime]) -> dict[str, Runtime]:
    return {name: each for name, each in runtimes.items() if not each.failed}


def table(rows: list[dict[str, Any]], names: list[str], ours: str) -> Table:
    """All points: tokens per second, with the share of the memory's bound, and the ratios."""
    out = Table(title=f"tokens per second (share of the memory's bound); x: {ours} is so many times as fast")
    out.add_column("")
    for name in names:
        out.add_column(name, justify="right")
    for row in rows:
        cells = []
        for name in names:
            rate = row["tokens_per_second"].get(name)
            share, ratio = row["share_of_bound"].get(name), row["ratio"].get(name)
            text = "" if rate is None else f"{rate:.1f}"
            text += "" if share is None else f" ({share:.0%})"
            cells.append(text + ("" if ratio is None else f" {ratio:.2f}x"))
        out.add_row(row["point"], *cells)
    return out


def main() -> int:
    """Print the table; 1 where one of ours fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=pathlib.Path, help="a .gguf file")
    parser.add_argument(
        "--peers", nargs="*", default=list(PEERS), choices=list(PEERS), help="which to compare"
    )
    parser.add_argument("--only", nargs="*", help="points whose name contains one of these, as `decode 32`")
    parser.add_argument("--ours", choices=list(PEERS), help="which the ratios are of; default: the first")
    parser.add_argument("--kept", type=pathlib.Path, help="a folder for compiled and converted models")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each point")
    parser.add_argument("--json", type=pathlib.Path, help="write everything to this file")
    arguments = parser.parse_args()
    console = Console(width=150)
    if arguments.kept is not None:
        arguments.kept.mkdir(parents=True, exist_ok=True)
        os.environ[KEPT] = str(arguments.kept.resolve())
    ours = arguments.ours or arguments.peers[0]
    points = [
        point
        for point in POINTS
        if arguments.only is None or any(text in "{} {}".format(*point) for text in arguments.only)
    ]
    runtimes: dict[str, Runtime] = {}
    for name in arguments.peers:  # one after the other: what they take is said too
        runtimes[name] = Runtime(name, arguments.file.resolve(), ROOM)
        state = runtimes[name].failed or f"ready in {runtimes[name].seconds:.1f} s"
        console.print(f"{name}: {state}", markup=False, highlight=False)
    try:
        alive = _alive(runtimes).values()
        most = max((each.read_bytes("decode", ROOM) for each in alive), default=1)
        reading = StreamingRead(int(THREADS), most)
        bandwidth = most / reading.seconds(most)
        chosen = {name: each.ask("greedy", PROMPT, GREEDY) for name, each in _alive(runtimes).items()}
        rows = measure(runtimes, points, ours, arguments.rounds, reading, console)
    finally:
        for runtime in runtimes.values():
            runtime.stop()
    console.print(table(rows, list(runtimes), ours))
    for name, each in runtimes.items():
        if each.failed:
            console.print(f"{name}: {each.failed}", markup=False, highlight=False)
    console.print(
        f"reading {most / 2**20:.0f} MiB: {bandwidth / 1e9:.1f} GB/s with {THREADS} threads", highlight=False
    )
    first = chosen.get(ours) or []
    for name, tokens in chosen.items():
        pairs = zip(first, tokens or [], strict=False)
        same = next((at for at, pair in enumerate(pairs) if len({*pair}) > 1), len(tokens or []))
        console.print(f"{name}: {same} of {GREEDY} tokens as {ours}", markup=False, highlight=False)
    if arguments.json:
        failed = {name: each.failed for name, each in runtimes.items() if each.failed}
        told = {
            "file": arguments.file.name,
            "threads": int(THREADS),
            "read_bytes_per_second": bandwidth,
            "weight_bytes": {name: each.weight_bytes for name, each in runtimes.items()},
            "seconds_until_first_answer": {name: each.seconds for name, each in runtimes.items()},
            "greedy_tokens": chosen,
            "failed": failed,
            "rows": rows,
        }
        arguments.json.write_text(json.dumps(told, indent=1))
    return 1 if any(each.failed for name, each in runtimes.items() if name.startswith("uir-cpu")) else 0


if __name__ == "__main__":
    sys.exit(main())
