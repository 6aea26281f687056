#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Open every axis of every recipe's example in turn, then all, and say what each target makes of it.

scripts/sweep_open_axes.py                     what differs from the record
scripts/sweep_open_axes.py --functions gather  of some functions alone
scripts/sweep_open_axes.py --run               runs the kernels too, at sizes around their tiles
scripts/sweep_open_axes.py --write             the record and docs/open-axes.md
"""

from __future__ import annotations

import argparse
import logging
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from uir_tvm.target.registry import TARGETS

from tests.conformance.symbolic import check, forms, widest
from tests.conformance.symbolic_operators import EXAMPLES
from tests.conformance.symbolic_record import Record, differs, entry_of, load, write


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--functions", nargs="+", choices=list(EXAMPLES), default=list(EXAMPLES), metavar="NAME"
    )
    parser.add_argument(
        "--targets", nargs="+", choices=list(TARGETS), default=list(TARGETS), metavar="TARGET"
    )
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    known, found = load(), Record()
    looked, wrong = 0, 0
    for function in options.functions:
        for form in forms(function):
            before = known.get(function, {}).get(form.label, {})
            now = found.setdefault(function, {})[form.label] = dict(before)
            for target in options.targets:
                looked += 1
                now[target] = entry_of(form, target)
                if target not in before or differs(now[target], before[target]):
                    wrong += 1
                    print(f"{form.name} on {target}: {now[target]}", flush=True)
                if options.run and "recipe" in now[target]:
                    best, made = widest(form, target)
                    count = check(best, made, target, best.points(made.record.products["igraph"]), True)
                    print(f"{form.name} on {target}: right at {count} sizes", flush=True)
    if options.write:
        kept = {name: found.get(name, known.get(name, {})) for name in EXAMPLES}
        write({name: rows for name, rows in kept.items() if rows})
        return 0
    print(f"{looked} forms on targets: {looked - wrong} as recorded, {wrong} others")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
