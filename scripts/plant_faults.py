# SPDX-License-Identifier: Apache-2.0
"""Plant faults in iGraphs, one at a time, and see who catches each: verifier, check of equivalence, nobody.

``scripts/plant_faults.py`` goes through the whole corpus (``--quick``: a sample, in under a minute) and
prints how many faults of each kind were caught by what.  A fault that nobody catches must be shown to change
nothing: the same bits on random and adversarial inputs, and no two units that meet without a barrier.  Exit
code 0 only when every fault is caught or shown to be harmless, and no graph that is right raises an alarm.

``--sizes N`` looks at N random graphs with sizes instead and N with strides of sizes, all right, and plants
faults of slices, memory and syncs in a tenth as many small ones, and in what the compiler makes of each form
in which sizes occur (``--forms``: in these alone): what is said of all sizes at once must be what is said of
each.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.faults import FAULTS
from tests.faults.campaign import Tally, entries, no_alarm, plant_all, random_graphs
from tests.faults.compiled_forms import FORMS
from tests.faults.coordinate_graphs import coordinate_graph
from tests.faults.sized_campaign import SizedTally, plant, plant_in, prove

#: Faults of one kind in one graph.
QUICK_COUNT, FULL_COUNT = 1, 3
QUICK_RANDOM, FULL_RANDOM = 200, 2000
#: How far sizes of random graphs are apart.
MOST = 100_000
#: The same of graphs whose rows have an open length, and of those in which faults are planted.
MOST_COLUMNS, FEW_COLUMNS = 1000, 8
COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


def main() -> int:
    """Plant as the command line says; 0 when nothing is missed and nothing is alarmed for nothing."""
    args = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 150)
    if args.sizes or args.forms:
        return _sized(args, console)
    tally = Tally()
    start = time.monotonic()
    console.print(f"seed {args.seed}, {args.count} fault(s) of a kind in each graph", style="dim")
    try:
        _run(args, tally, console)
    except KeyboardInterrupt:
        console.print("interrupted; so far:", style="yellow")
    _report(tally, console, time.monotonic() - start)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"seed": args.seed, **tally.to_json()}, indent=1))
    return 0 if tally.good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sample: hand-written graphs and some recipes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=FAULTS, metavar="KIND", help=", ".join(FAULTS))
    parser.add_argument("--graphs", default="", help="only graphs with this in their name")
    parser.add_argument("--count", type=int, default=None, help="faults of one kind in one graph")
    parser.add_argument(
        "--random", type=int, default=None, metavar="N", help="random valid graphs to look at"
    )
    parser.add_argument("--sizes", type=int, default=0, metavar="N", help="graphs with sizes instead")
    parser.add_argument("--forms", action="store_true", help="kernels with sizes instead, of every form")
    parser.add_argument("--json", metavar="FILE", help="also write everything there")
    args = parser.parse_args()
    if args.count is None:
        args.count = QUICK_COUNT if args.quick else FULL_COUNT
    if args.random is None:
        args.random = QUICK_RANDOM if args.quick else FULL_RANDOM
    return args


def _run(args: argparse.Namespace, tally: Tally, console: Console) -> None:
    with Progress(*COLUMNS, console=console) as progress:
        # graphs are built as they are asked for, so how many there are is known at the end
        bar = progress.add_task("building the corpus", total=None)
        for entry in entries(args.quick, args.seed):
            if args.graphs not in entry.name:
                continue
            progress.update(bar, description=f"{entry.name[:40]:40s} {len(tally.failures)} missed")
            for planted in plant_all(entry, args.only or list(FAULTS), args.count, args.seed, tally):
                if planted in tally.failures[-1:]:
                    told = f"{planted.kind} in {entry.name}: {planted.what} ({planted.verdict.why})"
                    console.print(f"{planted.verdict.by}: {told}", style="red", markup=False)
            progress.advance(bar)
        progress.update(bar, total=tally.clean)
        bar = progress.add_task("random valid graphs", total=args.random)
        for number, graph in enumerate(random_graphs(args.random, args.seed)):
            no_alarm(graph, number, tally)
            progress.advance(bar)


def _sized(args: argparse.Namespace, console: Console) -> int:
    tally, small, made = SizedTally(), SizedTally(), SizedTally()
    with Progress(*COLUMNS, console=console) as progress:
        bar = progress.add_task("graphs with sizes", total=args.sizes)
        for seed in range(args.seed, args.seed + args.sizes):
            prove(seed, tally, MOST)
            prove(seed, tally, MOST_COLUMNS, coordinate_graph)
            progress.advance(bar)
        bar = progress.add_task("faults in small ones", total=args.sizes // 10)
        for seed in range(args.seed, args.seed + args.sizes // 10):
            plant(seed, small)
            plant(seed, small, FEW_COLUMNS, coordinate_graph)
            progress.advance(bar)
        bar = progress.add_task("faults in kernels", total=len(FORMS))
        for form in FORMS.values():
            plant_in(form.graph(), args.seed, made, args.count)
            progress.advance(bar)
    for told in (*tally.wrong, *small.wrong, *made.wrong):
        console.print(told, style="red", markup=False)
    console.print(
        f"{len(FORMS)} kernels of as many forms: {made.planted} faults planted, {made.found} show at "
        f"some size, {len(made.wrong)} told otherwise than size by size"
    )
    if not args.sizes:
        return 1 if made.wrong else 0
    console.print(
        f"{len(tally.seconds)} graphs with sizes: {len(tally.wrong)} false alarms, a proof takes "
        f"{tally.median * 1e3:.0f} ms in the median, {tally.worst * 1e3:.0f} ms at most; "
        f"{small.planted} faults planted, {small.found} of them show at some size, "
        f"{len(small.wrong)} told otherwise than size by size"
    )
    return 1 if tally.wrong or small.wrong or made.wrong else 0


def _report(tally: Tally, console: Console, seconds: float) -> None:
    table = Table("fault", "planted", *tally.columns, title="Planted faults, and who catches them")
    for kind, counts in tally.rows():
        table.add_row(kind, *(str(n) if n else "" for n in counts))
    table.add_section()
    table.add_row("all", str(tally.total()), *(str(tally.total(v)) for v in tally.columns))
    for column in table.columns[1:]:
        column.justify = "right"
    console.print(table)
    for name, what in tally.alarms:
        console.print(f"FALSE ALARM on {name}: {what}", style="red", markup=False)
    console.print(
        f"{tally.clean} graphs and {tally.random} random ones unplanted: {len(tally.alarms)} false alarms"
        f"; {len(tally.failures)} of {tally.total()} faults missed; {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
