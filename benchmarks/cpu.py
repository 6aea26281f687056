# SPDX-License-Identifier: Apache-2.0
"""uir-cpu against torch eager, torch.compile, ONNX Runtime, XLA, IREE and stock TVM, interleaved in one run.

    python benchmarks/cpu.py                       models and fused operators
    python benchmarks/cpu.py --only minilm softmax
    python benchmarks/cpu.py --resume out.json     keep every case in a file; run those that it has not
    python benchmarks/cpu.py --table one.json two.json --markdown
    python benchmarks/cpu.py --only softmax swiglu --peers uir-cpu "hand-written loop"
    python benchmarks/cpu.py --only resnet gpt2 "graph break" --ours "backend uir, frozen" \\
        --peers "torch eager" "torch.compile" "backend uir" "backend uir, frozen"

Every peer runs a case in a process of its own; they take turns on the same inputs (`turns.py` says why).
The table shows medians and the ratio of the fastest peer to uir-cpu (above 1: uir-cpu is faster).  All
outputs of a call after the turns are held against what torch computes in float64: a peer that differs is
marked with the difference and left out of the ratio.  The last row is the geometric mean of the ratios.
A peer that is not installed is left out, and a line says how to install it.  A peer that raises, whose
process ends, or that does not answer in time has failed on that case, for a reason that is said.  A run
that is interrupted, told to end (SIGTERM), or at its ``--limit``, shows the cases that are there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from case_rows import OURS, OtherRun, Rows, line, markdown, read_all, reasons, table
from cases import BY_NAME, NAMES
from copy_ceiling import StreamingCopy
from one_case import run_case
from rich.console import Console
from runners import ASKED, RUNNERS, left_out
from turns import ANSWER, READY
from uir_tvm.hardware import host_cpu

#: What a run returns: our results are right, wrong or missing somewhere, the run was ended before all cases.
RIGHT, WRONG, ENDED = 0, 1, 2


def copy_bandwidth(copy: StreamingCopy, rounds: int = 7) -> float:
    """Bytes per second of the streaming copy, the median of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        copy()
        times.append(time.perf_counter() - start)
    return copy.bytes / statistics.median(times)


def with_share(row: dict[str, Any], copy: StreamingCopy) -> dict[str, Any]:
    """A row with the copy's bandwidth, and ours as a share of it where least bytes are known."""
    row["copy_bytes_per_second"] = copy_bandwidth(copy)
    if row["case"] in BY_NAME and OURS in row["seconds"]:
        operator = BY_NAME[row["case"]]
        rate = operator.least_bytes() / row["seconds"][OURS]
        row |= {"share_of_copy": rate / row["copy_bytes_per_second"], "streaming": operator.streaming}
    return row


@contextlib.contextmanager
def ends(limit: float | None) -> Iterator[None]:
    """SIGTERM, and seconds that are over, are what an interrupt is."""

    def end(number: int, _: Any) -> None:
        raise KeyboardInterrupt(f"{limit:g} s are over" if number == signal.SIGALRM else "it was told to end")

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGALRM)}
    if limit is not None:
        signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each, handler in before.items():
            signal.signal(each, handler)


def run(names: Sequence[str], rows: Rows, given: argparse.Namespace, console: Console) -> bool:
    """The cases that rows have not, into them and into the file; whether all were run."""
    file, start = given.json or given.resume, time.monotonic()
    missing = [name for name in names if not rows.has(name, given.peers)]
    try:
        with ends(given.limit):
            copy = StreamingCopy(rows.threads)
            for at, name in enumerate(missing, len(names) - len(missing) + 1):
                row = run_case(name, given.peers, given.seconds, rows.threads, given.ready, given.answer)
                rows.rows[name] = with_share(row, copy)
                if file:
                    rows.write(file)
                passed = time.strftime("%H:%M:%S", time.gmtime(time.monotonic() - start))
                place = f"[{passed}, {at} of {len(names)}]"
                console.print(f"{place} {line(row, given.peers)}", markup=False)
    except KeyboardInterrupt as why:
        done = sum(rows.has(name, given.peers) for name in names)
        told = str(why) or "it was interrupted"
        console.print(f"The run ends with {done} of {len(names)} cases: {told}", markup=False)
        return False
    return True


def options() -> argparse.ArgumentParser:
    """What a run is told."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*RUNNERS, *ASKED]
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these")
    parser.add_argument("--peers", nargs="*", default=list(RUNNERS), choices=every, help="which to compare")
    parser.add_argument("--ours", default=OURS, choices=[OURS, *ASKED], help="which of them the ratio is of")
    parser.add_argument("--seconds", type=float, default=1.5, help="time for each peer of a case")
    parser.add_argument("--limit", type=float, help="seconds after which the run ends with what is there")
    parser.add_argument("--ready", type=float, default=READY, help="seconds until a peer's first call ends")
    parser.add_argument("--answer", type=float, default=ANSWER, help="seconds that a peer has for a turn")
    file = {"type": pathlib.Path, "metavar": "FILE"}
    parser.add_argument("--json", **file, help="write everything to this file")
    parser.add_argument("--resume", **file, help="do not run what this file has; write to it, or to --json")
    parser.add_argument("--table", nargs="+", **file, help="run nothing: show the rows of these files")
    parser.add_argument("--markdown", action="store_true", help="show the table as a page has it")
    return parser


def show(rows: Rows, peers: Sequence[str], given: argparse.Namespace, console: Console) -> None:
    """The table of rows, and why peers failed."""
    machine = f"{rows.cpu}, {rows.threads} threads" if rows.cpu else ""
    if given.markdown:
        print(markdown(rows.rows.values(), peers, given.ours))
    else:
        console.print(table(rows.rows.values(), peers, given.ours, machine))
    for each in reasons(rows.rows.values()):
        console.print(each, markup=False, highlight=False, soft_wrap=True)


def main() -> int:
    """Run the cases, show the table."""
    given = options().parse_args()
    console = Console(width=150)
    order = [*RUNNERS, *ASKED]
    try:
        if given.table:
            rows = read_all(given.table)
            show(rows, rows.peers(order), given, console)
            return RIGHT
        rows = Rows(host_cpu.mcpu(), len(os.sched_getaffinity(0)))
        if given.resume and given.resume.exists():
            rows = rows.joined(Rows.read(given.resume), str(given.resume))
    except OtherRun as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return ENDED
    for why in filter(None, map(left_out, given.peers)):
        console.print(why, markup=False)
    given.peers = [peer for peer in given.peers if not left_out(peer)]
    names = [n for n in NAMES if not given.only or any(word in n for word in given.only)]
    whole = run(names, rows, given, console)
    show(rows, rows.peers(order), given, console)
    if not whole:
        return ENDED
    bad = any(given.ours in {*row["wrong"], *row["failed"]} for row in rows.rows.values())
    return WRONG if bad else RIGHT


if __name__ == "__main__":
    sys.exit(main())
