# SPDX-License-Identifier: Apache-2.0
"""Models with sizes left open: compiled once, are they right at every shape, and what is compiled later?

``scripts/check_open_models.py [--scale full|small] [--shapes N] [--route ROUTE ...] [MODEL ...]`` takes the
models of tests/models/open_models.py through PyTorch and its exporter to ONNX; exit code 1 when one
is wrong, fails, or compiles anything after its first call.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table
from uir_tvm.errors import UirError

from tests.models.open_models import OPEN_MODELS, ROUTES, TOLERANCE, Recompiled, recompilations


def main() -> int:
    """Check the models that the command line names; 0 when all are right and nothing is compiled twice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(OPEN_MODELS))
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument("--shapes", type=int, default=10, help="of each model (default: %(default)s)")
    parser.add_argument("--route", nargs="+", choices=ROUTES, default=list(ROUTES))
    given = parser.parse_args()
    console, table, failed = Console(soft_wrap=True), Table("model", "route", "error", "compiled later"), 0
    for name in given.models or OPEN_MODELS:
        for route in given.route:
            try:
                found = recompilations(name, route, given.shapes, given.scale)
            except UirError as error:
                failed += 1
                table.add_row(name, route, "-", f"{type(error).__name__}: {error.what}")
                continue
            failed += not found.error <= TOLERANCE or found.count > 0
            table.add_row(name, route, f"{found.error:.1e}", _later(found))
    console.print(table)
    return int(failed > 0)


def _later(found: Recompiled) -> str:
    """What was compiled after the first call, and why."""
    lines = [
        f"{number} of {kernel}: {reason.partition(chr(10))[0]}" for kernel, number, reason in found.kernels
    ]
    if found.programs:
        lines.append(f"{found.programs} executables. {found.by_shape}")
    return "\n".join(lines) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
