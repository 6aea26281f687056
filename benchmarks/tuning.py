# SPDX-License-Identifier: Apache-2.0
"""What tuning brings: models before and after it, and beside torch.compile and ONNX Runtime in the same run.

    python benchmarks/tuning.py                               MiniLM and GPT-2, this CPU, ten minutes each
    python benchmarks/tuning.py --models minilm --time-budget 2m --database tuned
    python benchmarks/tuning.py --database tuned --no-tune    compare with what is in the database already
    python benchmarks/tuning.py --target uir-ascend           modelled times, not measured ones

The table of kernels is that of ``uir tune``.  End to end, every peer runs in a process of its own, and they
take turns on the same input (`turns.py` says why); a peer whose result differs from float64's is named.
uir-cpu without the database takes part twice: what differs between the two is no gain of tuning; what tuning
brings is measured in one process (`before_after.py`).  For a target whose host model counts time, the
modelled total of the whole model is shown before and after, library included.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
import uir_tvm
from before_after import AFTER, BEFORE, before_after, ratios
from cases import build
from one_case import AGREEMENT, run_case
from rich.console import Console
from runners import AGAIN, DATABASE, TUNED
from uir_tvm.cli.print import table_of
from uir_tvm.cli.tune_progress import Progress
from uir_tvm.tune import Summary, tune

#: Peers of an end-to-end comparison.
PEERS = ("torch eager", "torch.compile", "ONNX Runtime", "uir-cpu", TUNED, AGAIN)
CONSOLE = Console(width=150)
ERRORS = Console(stderr=True)


def tuned(name: str, target: str, arguments: argparse.Namespace) -> Summary:
    """A model tuned into the database."""
    module, inputs = build(name)
    with torch.no_grad():
        program = torch.export.export(module, tuple(inputs))
    with Progress(ERRORS) as watcher:
        return tune(
            program,
            target,
            database=arguments.database,
            time_budget=arguments.time_budget,
            trials=arguments.trials,
            seed=arguments.seed,
            device=arguments.device,
            name=name,
            watcher=watcher,
        )


def compared(name: str, database: pathlib.Path, seconds: float) -> dict[str, Any]:
    """A model end to end on this CPU: seconds by peer, and of executables before and after."""
    threads = len(os.sched_getaffinity(0))
    row = run_case(name, list(PEERS), seconds, threads)
    found = row["seconds"]
    said = ", ".join(f"{peer} {found[peer] * 1e3:.3f} ms" for peer in PEERS if peer in found)
    CONSOLE.print(f"{name}, medians: {said}", markup=False)
    if "uir-cpu" in found and AGAIN in found:
        alike = found["uir-cpu"] / found[AGAIN]
        CONSOLE.print(f"{name}: {alike:.3f}x between two processes with the same schedules", markup=False)
    for peer, why in row["failed"].items():
        CONSOLE.print(f"{name}: {peer} failed: {why}", markup=False)
    for peer in row["wrong"]:
        CONSOLE.print(f"{name}: {peer} differs from torch by {row['errors'][peer]:.1e} (> {AGREEMENT})")
    row["one process"] = times = before_after(name, database, seconds, threads)
    gain, alike = ratios(times)
    shown = {kind: " and ".join(f"{1e3 * t:.3f}" for t in medians) for kind, medians in times.items()}
    CONSOLE.print(
        f"{name}, in one process: {shown[BEFORE]} ms before, {shown[AFTER]} ms after: {gain:.3f}x by tuning "
        f"(alike ones differ by up to {alike:.3f}x)",
        markup=False,
    )
    return row


def modelled(name: str, target: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Modelled seconds of a run of the model on a device, before and after."""
    module, inputs = build(name)
    with torch.no_grad():
        program = torch.export.export(module, tuple(inputs))
    options = uir_tvm.CompileOptions(device=arguments.device or "auto")
    found = {}
    for label, database in (("before", None), ("after", arguments.database)):
        exe = uir_tvm.compile(program, target, database=database, options=options)
        times = exe.modelled(*inputs, library_computes=False)
        found[label], found["library"] = times.seconds, times.library_seconds
    before, after, library = (1e6 * found[key] for key in ("before", "after", "library"))
    CONSOLE.print(
        f"{name} on {target}: {before:.0f} us before, {after:.0f} us after, modelled, not measured; "
        f"{library:.0f} us of each is the library's"
    )
    return found


def show(summary: Summary) -> None:
    """The table of ``uir tune``."""
    CONSOLE.print(table_of([row.shown() for row in summary.rows]))
    for line in summary.lines():
        CONSOLE.print(line, markup=False, highlight=False, soft_wrap=True)


def main() -> int:
    """Tune, then compare; 1 where a result of ours is wrong or a kernel is slower than its default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="*", default=["minilm", "gpt2"], help="of tests/models")
    parser.add_argument("--target", default="uir-cpu")
    parser.add_argument("--device", help="where kernels of a device run (npu, mlu, model)")
    parser.add_argument("--database", type=pathlib.Path, help="default: a new one, which is deleted")
    parser.add_argument("--time-budget", default="10m", help="for each model")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-tune", action="store_true", help="compare with what the database has")
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each peer of a comparison")
    parser.add_argument("--json", type=pathlib.Path, help="write everything to this file")
    arguments = parser.parse_args()
    if arguments.no_tune and arguments.database is None:
        parser.error("--no-tune needs --database")
    with tempfile.TemporaryDirectory() as scratch:
        arguments.database = arguments.database or pathlib.Path(scratch) / "db"
        return run(arguments)


def run(arguments: argparse.Namespace) -> int:
    """All models."""
    rows: dict[str, Any] = {}
    bad = False
    for name in arguments.models:
        row: dict[str, Any] = {}
        if not arguments.no_tune:
            start = time.perf_counter()
            summary = tuned(name, arguments.target, arguments)
            show(summary)
            row["tuning"] = summary.to_json() | {"wall": time.perf_counter() - start}
            bad = bad or any((r.best or 0) > (r.default or 0) for r in summary.rows)
        if arguments.target.partition(":")[0] == "uir-cpu":
            os.environ[DATABASE] = str(arguments.database.resolve())
            row["end to end"] = compared(name, arguments.database, arguments.seconds)
            ours = {"uir-cpu", TUNED}
            bad = bad or bool(ours & {*row["end to end"]["wrong"], *row["end to end"]["failed"]})
        else:
            row["modelled"] = modelled(name, arguments.target, arguments)
        rows[name] = row
        if arguments.json:
            found = {"target": arguments.target, "budget": arguments.time_budget, "models": rows}
            arguments.json.write_text(json.dumps(found, indent=1, default=str))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
