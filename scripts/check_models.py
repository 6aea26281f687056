# SPDX-License-Identifier: Apache-2.0
"""Compile the models of tests/models through every front end and compare them with torch.

``scripts/check_models.py [--scale full|small] [--route torch|onnx|all] [MODEL ...]`` prints one line per
model and route; exit code 1 when a model is wrong or one of its kernels has no iGraph.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table

from tests.conformance.model_check import LIMIT, Outcome, check_model
from tests.models import MODELS

COLUMNS = ("model", "route", "compile s", "peak MiB", "kernels", "without iGraph", "max rel error", "")


def main() -> int:
    """Check the models that the command line names; 0 when all are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument("--route", choices=("torch", "onnx", "all"), default="all")
    args = parser.parse_args()
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
            table.add_row(*_row(outcome))
            console.print(f"{name} through {route}: {time.perf_counter() - start:.1f} s", style="dim")
            for kernel, reason in outcome.fallbacks.items():
                console.print(f"  {kernel} has no iGraph: {reason}", style="red", markup=False)
    console.print(table)
    return 0 if right else 1


def _row(outcome: Outcome) -> tuple[str, ...]:
    # the process's peak so far: a model's own where it is the first
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        outcome.name,
        outcome.route,
        f"{outcome.seconds:.1f}",
        f"{peak:.0f}",
        str(outcome.kernels),
        str(len(outcome.fallbacks)),
        f"{outcome.error:.1e}",
        "right" if outcome.right else "[red]WRONG[/]",
    )


if __name__ == "__main__":
    sys.exit(main())
