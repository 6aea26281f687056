# SPDX-License-Identifier: Apache-2.0
"""Compile every call of PyTorch in the sweep's tables, run it, and compare with PyTorch itself.

python scripts/sweep_torch.py [--filter TEXT] [--target uir-cpu] [--json FILE] [--seed N] [--again FILE]
python scripts/sweep_torch.py --document

Calls that are right are counted; the others are listed with what is wrong. The exit status is 1 if any result
is wrong or any call crashes; a typed refusal is listed, and counts as refused.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.frontend.torch_sweep import document, tables
from tests.frontend.torch_sweep.calls import Call
from tests.frontend.torch_sweep.run import OUTSIDE, RIGHT, Outcome, agrees, sweep


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filter", default="", help="only calls whose name contains TEXT", metavar="TEXT")
    parser.add_argument("--table", choices=sorted(tables.TABLES), help="only one table")
    parser.add_argument("--target", default="uir-cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=24, help="calls that are compiled together")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome")
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="only calls that FILE (of --json) lacks or has not right"
    )
    parser.add_argument("--each", action="store_true", help="only the first call of every function")
    parser.add_argument(
        "--document", action="store_true", help="write the record of these calls and docs/torch-operators.md"
    )
    parser.add_argument("--fast", action="store_true", help="only the calls that the test suite makes")
    parser.add_argument(
        "--outside", action="store_true", help="list calls that PyTorch or torch.export refuses"
    )
    return parser.parse_args(arguments)


def main() -> int:
    """Run the sweep; returns the exit status."""
    options = parse()
    logging.getLogger("uir_tvm").setLevel(logging.ERROR)
    calls = chosen(options)
    print(f"seed {options.seed}, {len(calls)} calls, {options.target}", flush=True)
    start, outcomes = time.perf_counter(), []
    for outcome in sweep(calls, options.target, options.seed, options.size):
        outcomes.append(outcome)
        if outcome.state != RIGHT and (outcome.state != OUTSIDE or options.outside):
            print(f"{outcome.state:8s} {outcome.call.name}: {outcome.text[:400]}", flush=True)
        if len(outcomes) % 100 == 0:
            print(f"... {len(outcomes)} of {len(calls)}, {time.perf_counter() - start:.0f} s", flush=True)
    counts = Counter(outcome.state for outcome in outcomes)
    print(", ".join(f"{count} {state}" for state, count in counts.most_common()))
    print(f"{time.perf_counter() - start:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([as_row(outcome) for outcome in outcomes], indent=1))
    if options.document:
        document.save(outcomes, tables.table())
    return 0 if outcomes and all(map(agrees, outcomes)) and counts[RIGHT] else 1


def chosen(options: argparse.Namespace) -> list[Call]:
    """The calls that the command line asks for."""
    calls = tables.table(options.table, fast=options.fast)
    calls = [call for call in calls if options.filter in call.name]
    if options.again:
        rows = json.loads(options.again.read_text())
        done = {row["call"] for row in rows if row["state"] in (RIGHT, OUTSIDE)}
        calls = [call for call in calls if call.name not in done]
    if options.each:
        first = {document.function_and_inputs(call)[0]: call for call in reversed(calls)}
        calls = list(first.values())[::-1]
    return calls


def as_row(outcome: Outcome) -> dict[str, object]:
    """An outcome for a file."""
    return {
        "call": outcome.call.name,
        "inputs": outcome.call.inputs,
        "state": outcome.state,
        "text": outcome.text,
        "fallbacks": list(outcome.fallbacks),
    }


if __name__ == "__main__":
    sys.exit(main())
