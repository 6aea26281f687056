# SPDX-License-Identifier: Apache-2.0
"""Run the ONNX standard's own backend tests and say of each how it ends.

python scripts/sweep_onnx.py [--filter TEXT] [--target uir-cpu] [--json FILE] [--again FILE] [--workers N]
python scripts/sweep_onnx.py --sample --target uir-ascend [--document]
python scripts/sweep_onnx.py --document

Each case runs in a worker process with a watchdog. Cases that pass are counted; the others are listed. The
exit status is 1 if any gives wrong numbers, hangs, crashes or ends in an exception without a type of ours; a
typed refusal is listed, and counts as refused. ``--json FILE`` is written as the cases end, and a sweep that
was cut off goes on with ``--resume``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs

from tests.onnx_backend import document
from tests.onnx_backend.cases import load
from tests.onnx_backend.run import PASSED, PATIENCE, REFUSED, Outcome, sweep
from tests.onnx_backend.sample import sample


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filter", default="", help="only cases whose name contains TEXT", metavar="TEXT")
    parser.add_argument("--target", default="uir-cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a case hangs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome")
    parser.add_argument("--resume", action="store_true", help="go on with the FILE of --json")
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="only cases that FILE (of --json) lacks or has not passed"
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="only one case of every operator and dtype that passes on uir-cpu",
    )
    parser.add_argument("--every", type=int, default=1, help="only each Nth case", metavar="N")
    parser.add_argument(
        "--document", action="store_true", help="write the record of these cases and docs/onnx-operators.md"
    )
    return parser.parse_args(arguments)


def main() -> int:
    """Run the sweep; returns the exit status."""
    options = parse()
    names = [name for name in (sample() if options.sample else load()) if options.filter in name]
    if options.again:
        passed = {o.name for o in read(options.again) if o.state == PASSED}
        names = [name for name in names if name not in passed]
    names = names[:: options.every]
    outcomes = read(options.json) if options.resume and options.json and options.json.exists() else []
    done = {outcome.name for outcome in outcomes}
    names = [name for name in names if name not in done]
    print(f"{len(names)} cases, {options.target}", flush=True)
    start = time.perf_counter()
    for outcome in sweep(names, options.target, options.workers, options.patience):
        outcomes.append(outcome)
        if outcome.state != PASSED:
            text = " ".join(outcome.text.split())
            print(f"{outcome.state:8s} {outcome.name}: {text[:400]}", flush=True)
        if options.json and (len(outcomes) % 20 == 0):
            write(options.json, outcomes)
        if len(outcomes) % 100 == 0:
            print(f"... {len(outcomes)}, {time.perf_counter() - start:.0f} s", flush=True)
    counts = Counter(outcome.state for outcome in outcomes)
    print(", ".join(f"{count} {state}" for state, count in counts.most_common()))
    print(f"{time.perf_counter() - start:.0f} s")
    if options.json:
        write(options.json, outcomes)
    if options.document:
        document.save(outcomes, options.target)
    return 0 if outcomes and set(counts) <= {PASSED, REFUSED} and counts[PASSED] else 1


def read(file: Path) -> list[Outcome]:
    """The outcomes in a file of --json."""
    return [Outcome(**row) for row in json.loads(file.read_text())]


def write(file: Path, outcomes: Sequence[Outcome]) -> None:
    """Outcomes to a file, whole or not at all."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps([attrs.asdict(outcome) for outcome in outcomes], indent=1))
    part.replace(file)


if __name__ == "__main__":
    sys.exit(main())
