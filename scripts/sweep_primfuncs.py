# SPDX-License-Identifier: Apache-2.0
"""Compile PrimFuncs of many structures for every target at both doors, and compare with TVM's LLVM.

python scripts/sweep_primfuncs.py [--target uir-cpu ...] [--door tvm.compile] [--only PATTERN] [--json]

Exit code 1 where something is wrong or raises.  Fall-backs to TVM's own lowering are right; they are listed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs
from uir_tvm.target.registry import TARGETS

from tests.primfuncs.doors import DOORS, GOOD, Outcome, attempt
from tests.primfuncs.table import STRUCTURES


def outcomes(targets: list[str], doors: list[str], pattern: str) -> Iterator[Outcome]:
    """Every instance of every structure whose name fits."""
    for structure in STRUCTURES.values():
        for instance in structure.instances():
            if fnmatch.fnmatch(instance.name, pattern):
                for target in targets:
                    for door in doors:
                        yield attempt(instance, target, door)


def main() -> int:
    """Print what is not right as it is found, then counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--door", nargs="+", choices=DOORS, default=list(DOORS))
    parser.add_argument("--only", default="*", help="instances by name, such as 'scan_*' or '*-float16'")
    parser.add_argument("--json", action="store_true", help="one object for each outcome, one a line")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    counts: Counter[tuple[str, str, str]] = Counter()
    for found in outcomes(options.target, options.door, options.only):
        counts[found.target, found.door, found.state] += 1
        if options.json:
            print(json.dumps(attrs.asdict(found)), flush=True)
        elif found.state != "right":
            where = f"{found.state:9s}{found.target:11s} {found.door:16s}{found.structure}"
            print(f"{where}: {found.detail.splitlines()[0]}", flush=True)
    for (target, door, state), count in sorted(counts.items()):
        print(f"{target:11s} {door:16s}{state:9s}{count}", file=sys.stderr)
    return int(any(state not in GOOD for _, _, state in counts))


if __name__ == "__main__":
    sys.exit(main())
