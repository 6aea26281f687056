# SPDX-License-Identifier: Apache-2.0
"""Hold every Relax operator against stock TVM: compile, run, compare; and write what runs where.

python scripts/sweep_operators.py [--targets uir-cpu,...] [--operators exp,take] [--every 4] [--json FILE]
python scripts/sweep_operators.py --document
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs
from uir_tvm.target.registry import TARGETS

from tests.conformance.operators import Groups, groups, representative, thinned
from tests.conformance.operators.check import Outcome, check, expected, placed
from tests.conformance.operators.document import DOCUMENT, load, save

#: Statuses that are a fault of ours.
FAULTS = ("wrong", "refused", "crashed")


def sweep(chosen: Groups, targets: list[str], quiet: bool) -> list[Outcome]:
    """The outcomes of all cases on all targets."""
    outcomes: list[Outcome] = []
    for number, ((operator, dtype), cases) in enumerate(chosen.items(), 1):
        start = time.perf_counter()
        wanted = expected(cases)
        found = [outcome for target in targets for outcome in check(cases, target, wanted)]
        outcomes += found
        if not quiet:
            counts = ", ".join(f"{n} {status}" for status, n in Counter(o.status for o in found).items())
            seconds = time.perf_counter() - start
            print(f"{number}/{len(chosen)} {operator} {dtype}: {counts} ({seconds:.1f} s)", file=sys.stderr)
        for outcome in found:
            if outcome.status in FAULTS:
                print(f"{outcome.status}: {outcome.case.name} on {outcome.target}: {outcome.detail}")
    return outcomes


def document(chosen: Groups, targets: list[str], quiet: bool) -> None:
    """Compile one case of every group, and write the record and the document.

    What is not chosen stays as it is recorded.
    """
    known = load()
    record = {
        operator: {dtype: dict(known.get(operator, {}).get(dtype, {})) for _, dtype in keys}
        for operator, keys in itertools.groupby(sorted(groups()), key=lambda key: key[0])
    }
    for number, ((operator, dtype), cases) in enumerate(chosen.items(), 1):
        case = representative(cases)
        record[operator][dtype].update({target: placed(case, target) for target in targets})
        if not quiet:
            print(f"{number}/{len(chosen)} {case.name}", file=sys.stderr)
    save(record)
    print(f"{DOCUMENT}: {len(record)} operators")


def main() -> int:
    """Run the sweep; 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", default="", help="comma-separated, or `all` (default: uir-cpu)")
    parser.add_argument("--operators", default="", help="comma-separated names (default: all)")
    parser.add_argument("--dtypes", default="", help="comma-separated, TVM's names (default: all)")
    parser.add_argument("--every", type=int, default=1, help="one case of so many (default: all)")
    parser.add_argument("--json", type=Path, help="write the outcomes to this file")
    parser.add_argument("--document", action="store_true", help="write docs/operators.md, on all targets")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args()
    logging.getLogger("uir_tvm").setLevel(logging.ERROR)
    asked = options.targets or ("all" if options.document else "uir-cpu")
    targets = list(TARGETS) if asked == "all" else asked.split(",")
    names, dtypes = (set(filter(None, text.split(","))) for text in (options.operators, options.dtypes))
    chosen = {
        (operator, dtype): cases
        for (operator, dtype), cases in groups().items()
        if (not names or operator in names) and (not dtypes or dtype in dtypes)
    }
    if options.document:
        document(chosen, targets, options.quiet)
        return 0
    if options.every > 1:
        chosen = {key: thinned(cases, options.every, n) for n, (key, cases) in enumerate(chosen.items())}
    outcomes = sweep(chosen, targets, options.quiet)
    if options.json is not None:
        rows = [
            {**attrs.asdict(o, filter=lambda a, _: a.name != "case"), "case": o.case.name} for o in outcomes
        ]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    counts = Counter(outcome.status for outcome in outcomes)
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
    return int(any(counts[status] for status in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
