# SPDX-License-Identifier: Apache-2.0
"""Count the kernels of tests/models and tests/corpus that fall back on each target; compare with a table.

``scripts/check_fallbacks.py [--scale full|small] [--target TARGET] [--update] [MODEL ...]`` prints one line
per model and target; exit code 1 where a kernel falls back that did not
(``tests/conformance/fallbacks.json``).  ``--update`` writes what was found into that table.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table
from uir_tvm.target.registry import TARGETS

from tests.conformance import fallbacks
from tests.models import MODELS

COLUMNS = ("model", "target", "kernels", "host", "one unit", "before", "")


def main() -> int:
    """Count what the command line names; 0 when nothing new falls back."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = (*MODELS, fallbacks.CORPUS)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(names))
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument("--target", choices=tuple(TARGETS), action="append")
    parser.add_argument("--update", action="store_true", help="write the table anew")
    args = parser.parse_args()
    unknown = sorted(set(args.models) - set(names))
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(names)}")
    console, known, right = Console(), fallbacks.known(), True
    table = Table(*COLUMNS, title=f"{args.scale} scale, kernels that fall back")
    for name in args.models or names:
        mod = fallbacks.imported(name, args.scale)
        for target in args.target or TARGETS:
            start = time.perf_counter()
            found = fallbacks.count(mod, target)
            before = known.get(args.scale, {}).get(name, {}).get(target, fallbacks.Count(0))
            news = fallbacks.new(found, before)
            right = right and not news
            known.setdefault(args.scale, {}).setdefault(name, {})[target] = found
            told = [str(n) for n in (found.kernels, len(found.host), len(found.one_unit))]
            was = f"{len(before.host)} + {len(before.one_unit)}"
            table.add_row(name, target, *told, was, f"{len(news)} new" if news else "")
            console.print(f"{name} on {target}: {time.perf_counter() - start:.1f} s", style="dim")
            for line in news:
                console.print(f"  {line}", style="red", markup=False)
    console.print(table)
    if args.update:
        fallbacks.write(known)
    return 0 if right or args.update else 1


if __name__ == "__main__":
    sys.exit(main())
