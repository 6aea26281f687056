# SPDX-License-Identifier: Apache-2.0
"""Plant faults in the project's own code, one at a time, and see which the tests find.

``scripts/mutate.py --count 200`` draws faults (swapped comparison, condition left out, off by one, ...) from
the compiler's folders, plants each in a copy of the repository, and runs the tests that run the faulty line,
the quickest first.  Which those are, one run of the tests under coverage says (``--map``: made where it is
missing, in about twice the time of these tests; ``--tests`` narrows them).

Results are kept in ``--json`` as they come; a run with the same file goes on where the last one ended, and
``--folders`` judges those of the draw that are in some folders.  What no test finds is listed: it needs a
test, or an entry in tests/mutation/equivalent.json that says why it changes nothing.  ``--again`` judges it
once more, first by the tests that changed since the map was made; the table then has what was found before
and what is now.

Exit code 0 where the tests find the share that ``--least`` says, of the faults that a test could find.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.mutation.equivalent import listed, reasons
from tests.mutation.judge import Copy, Judge
from tests.mutation.mutants import Mutant, sample
from tests.mutation.reach import LINES_FILE, SECONDS, SECONDS_FILE, Reach
from tests.mutation.results import Results

FOLDERS = ("igraph", "extract", "verify", "optimize", "kernel_graph", "schedule", "target")


def main() -> int:
    """Plant as the command line says."""
    args = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 150)
    found = [m for m in sample(ROOT, FOLDERS, args.count, args.seed) if m.folder in args.folders]
    equivalent = reasons(ROOT, found, listed())
    results = Results.load(pathlib.Path(args.json), args.seed)
    left = [mutant for mutant in found if mutant.name not in results.now]
    if args.again:
        left += [m for m in found if results.now.get(m.name) == "" and m not in equivalent]
    console.print(f"seed {args.seed}, {len(found)} faults, {len(left)} of them to judge", style="dim")
    if left:
        _judge(console, left, args, results)
    return _report(console, found, equivalent, results, args.least)


def _judge(console: Console, left: list[Mutant], args: argparse.Namespace, results: Results) -> None:
    """Plant what is left, and keep each result as it comes."""
    map_ = pathlib.Path(args.map)
    if not (map_ / SECONDS_FILE).exists():
        console.print("running tests under coverage: which of them run which lines", style="dim")
        _draw_map(map_, args.tests)
    changed = _changed_since(map_ / SECONDS_FILE) if args.again else ()
    judge = Judge(Reach(map_, ROOT), args.seconds, changed)
    copies: queue.Queue[Copy] = queue.Queue()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="uir-mutants-")))
        for k in range(args.jobs):
            copies.put(stack.enter_context(Copy(ROOT, folder / str(k))))
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with (
            Progress(*columns, console=console) as progress,
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool,
        ):
            bar = progress.add_task("faults", total=len(left))
            waiting = {pool.submit(_judged, mutant, copies, judge): mutant for mutant in left}
            try:
                for done in concurrent.futures.as_completed(waiting):
                    mutant, verdict = waiting[done], done.result()
                    results.add(mutant.name, verdict)
                    if not verdict:
                        progress.console.print(f"not found: {mutant}", style="red", highlight=False)
                    progress.advance(bar)
            except BaseException:
                # who interrupts does not wait for the rest
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        console.print("running the tests that found faults without any", style="dim")
        for fault, test in copies.get().unsound(results.now).items():
            console.print(f"fails without a fault as well: {test}", style="red", highlight=False)
            results.forget(fault)


def _judged(mutant: Mutant, copies: queue.Queue[Copy], judge: Judge) -> str:
    copy = copies.get()
    try:
        return judge.verdict(mutant, copy)
    finally:
        copies.put(copy)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="faults of all folders (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--folders", nargs="+", choices=FOLDERS, default=FOLDERS, metavar="FOLDER", help="only their faults"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="that the tests of one fault took (default: 60)"
    )
    parser.add_argument("--map", default="mutants-map", metavar="DIR", help="which tests run which lines")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="that the map knows (default: all)")
    parser.add_argument("--again", action="store_true", help="judge those that no test found once more")
    parser.add_argument("--least", type=float, default=0.0, metavar="SHARE", help="share that must be found")
    parser.add_argument("--json", default="mutants.json", metavar="FILE", help="results, kept as they come")
    return parser.parse_args()


def _draw_map(folder: pathlib.Path, tests: list[str]) -> None:
    """Run tests and keep which of them run which lines, and their seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    environment = {
        **os.environ,
        "COVERAGE_FILE": str(folder / LINES_FILE),
        SECONDS: str(folder / SECONDS_FILE),
    }
    workers = ("-n", str(os.cpu_count() or 1), "--dist", "worksteal", "-p", "tests.mutation.reach")
    # as paths: to find a module by its name imports what is above it, before pytest is ready
    sources = [f"--cov={pathlib.Path('python', 'uir_tvm', name)}" for name in FOLDERS]
    # a test that fails is no obstacle: it is left out
    subprocess.run(
        [sys.executable, "-m", "pytest", *workers, *sources, "--cov-context=test", "--cov-report=", *tests],
        cwd=ROOT,
        env=environment,
        check=False,
    )


def _changed_since(file: pathlib.Path) -> tuple[str, ...]:
    """Files of tests that are newer than a file, but for those of this tool itself."""
    made, tool = file.stat().st_mtime, ROOT / "tests/mutation"
    paths = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if path.parent != tool)
    return tuple(str(path.relative_to(ROOT)) for path in paths if path.stat().st_mtime > made)


def _report(
    console: Console,
    found: Iterable[Mutant],
    equivalent: Mapping[Mutant, str],
    results: Results,
    least: float,
) -> int:
    """A table by folder; the shares are of the faults that a test could find."""
    judged = [mutant for mutant in found if mutant.name in results.now]
    table = Table("folder", "faults", "equivalent", "found first", "found now", "share first", "share now")
    folders = {mutant.folder: [m for m in judged if m.folder == mutant.folder] for mutant in judged}
    share = 0.0
    for folder, mutants in {**folders, "all": judged}.items():
        able = [mutant for mutant in mutants if mutant not in equivalent]
        first = sum(bool(results.before(mutant.name)) for mutant in able)
        now = sum(bool(results.now[mutant.name]) for mutant in able)
        share = now / max(len(able), 1)
        counts = (len(mutants), len(mutants) - len(able), first, now)
        table.add_row(folder, *map(str, counts), f"{first / max(len(able), 1):.1%}", f"{share:.1%}")
    console.print(table)
    for mutant in judged:
        if not results.now[mutant.name] and mutant not in equivalent:
            console.print(f"not found: {mutant}", highlight=False)
    return 0 if share >= least else 1


if __name__ == "__main__":
    sys.exit(main())
