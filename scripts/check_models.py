# SPDX-License-Identifier: Apache-2.0
"""Compile models through the front ends and compare them with torch.

``scripts/check_models.py [--scale full|small] [--route torch|onnx|all] [MODEL ...]`` takes the models of
tests/models; exit code 1 when one is wrong or one of its kernels has no iGraph.

``scripts/check_models.py --suite torchvision transformers [--only NAME ...] [--json FILE] [--jobs N]`` takes
the architectures of tests/model_suites, each in a process of its own; exit code 1 when one is wrong, crashes,
hangs or raises what is no typed error, or fewer than the share compile of those that torch.export takes. A
sweep that is interrupted goes on where FILE ends; ``--table`` writes docs/pytorch-models.md from FILE.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.model_suites import SUITES, document, run
from tests.model_suites.outcome import RIGHT, Outcome

COLUMNS = ("model", "route", "compile s", "peak MiB", "kernels", "without iGraph", "max rel error", "")


def main() -> int:
    """Check the models that the command line names; 0 when all are right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="of tests/models")
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument("--route", choices=("torch", "onnx", "all"), default="all")
    suites = parser.add_argument_group("suites")
    suites.add_argument("--suite", nargs="+", choices=sorted(SUITES), default=[])
    suites.add_argument("--only", nargs="+", default=[], metavar="NAME", help="architectures, run again")
    suites.add_argument("--family", nargs="+", default=[], metavar="TEXT", help="families that contain TEXT")
    suites.add_argument("--json", type=pathlib.Path, default=document.RECORD, metavar="FILE")
    suites.add_argument("--again", action="store_true", help="run what FILE has as faulty or refused again")
    suites.add_argument("--fresh", action="store_true", help="run all again")
    suites.add_argument("--jobs", type=int, default=1, metavar="N")
    suites.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="for one architecture")
    suites.add_argument("--share", type=float, default=0.95, help="least share of what torch.export takes")
    suites.add_argument("--table", action="store_true", help="write the document from FILE")
    args = parser.parse_args()
    if args.suite:
        return _sweep(args)
    if args.table:
        document.write(list(run.load(args.json).values()))
        return 0
    return _models(parser, args)


def _sweep(args: argparse.Namespace) -> int:
    """The architectures of suites."""
    console = Console(soft_wrap=True)
    unknown = sorted(set(args.only) - {name for suite in args.suite for name in SUITES[suite]})
    if unknown:
        console.print(f"no architecture {', '.join(unknown)} in {', '.join(args.suite)}")
        return 2
    outcomes = run.load(args.json)
    chosen = [
        (suite, name)
        for suite in args.suite
        for name, case in SUITES[suite].items()
        if (not args.only or name in args.only)
        and (not args.family or any(text in case.family for text in args.family))
    ]
    waiting = [key for key in chosen if args.only or args.fresh or _open(outcomes.get(key), args.again)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("architectures", total=len(waiting))
        for outcome in run.sweep(waiting, args.jobs, args.limit):
            # another sweep may have written meanwhile
            outcomes = run.load(args.json) | {(outcome.suite, outcome.name): outcome}
            run.save(args.json, outcomes)
            console.print(_told(outcome), markup=False, highlight=False)
            progress.advance(task)
    found = [outcomes[key] for key in chosen]
    counts = document.counted(found)
    console.print(document.sentence(counts), highlight=False)
    if args.table:
        document.write(list(outcomes.values()))
    return 0 if counts.faults == 0 and counts.share >= args.share else 1


def _open(outcome: Outcome | None, again: bool) -> bool:
    return outcome is None or (again and outcome.state != RIGHT)


def _told(outcome: Outcome) -> str:
    said = f"{outcome.name}: {outcome.state} {outcome.by}".strip()
    said += f", {outcome.seconds:.1f} s"
    if outcome.kernels:
        opaque = sum(row["count"] for row in outcome.opaque)
        said += f", error {outcome.error:.1e}, {outcome.kernels} kernels, {outcome.library} library calls"
        said += f", {opaque} in torch" if opaque else ""
        said += f", {outcome.without_igraph} without iGraph" if outcome.without_igraph else ""
    return said + (f": {outcome.reason[:400]}" if outcome.state != RIGHT else "")


def _models(parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    """The models of tests/models."""
    from tests.conformance.model_check import LIMIT, check_model
    from tests.models import MODELS

    unknown = sorted(set(args.models) - set(MODELS))
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    console = Console()
    table = Table(*COLUMNS, title=f"{args.scale} scale, uir-cpu against torch (limit {LIMIT:.0e})")
    right = True
    for name in args.models or MODELS:
        for route in ("torch", "onnx"):
            if args.route not in (route, "all") or (route == "onnx" and not MODELS[name].onnx):
                continue
            start = time.perf_counter()
            outcome = check_model(name, route, args.scale)
            right = right and outcome.right
            # the process's peak so far: a model's own where it is the first
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.add_row(
                outcome.name,
                outcome.route,
                f"{outcome.seconds:.1f}",
                f"{peak:.0f}",
                str(outcome.kernels),
                str(len(outcome.fallbacks)),
                f"{outcome.error:.1e}",
                "right" if outcome.right else "[red]WRONG[/]",
            )
            console.print(f"{name} through {route}: {time.perf_counter() - start:.1f} s", style="dim")
            for kernel, reason in outcome.fallbacks.items():
                console.print(f"  {kernel} has no iGraph: {reason}", style="red", markup=False)
    console.print(table)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
