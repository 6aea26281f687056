# SPDX-License-Identifier: Apache-2.0
"""Plant faults in the project's own code, one at a time, and see which the tests find.

``scripts/mutate.py --count 200`` draws faults (swapped comparison, condition left out, off by one, ...) from
the compiler's folders, plants each in a copy of the package, and runs the tests that run the faulty line, the
quickest first.  Which those are, one run of the suite under coverage says (``--map``: made where it is
missing, in about twice the time of the suite).  A line that only runs at import is left to the tests of its
folder.  What no test finds is listed: it needs a test, or a sentence why it changes nothing.
Results are kept in ``--json`` as they come; a run with the same file goes on where the last one ended.

Exit code 0 where the tests find as many as ``--least`` says.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.mutation.mutants import Mutant, sample
from tests.mutation.reach import LINES_FILE, SECONDS, SECONDS_FILE, Reach

FOLDERS = ("igraph", "extract", "verify", "optimize", "kernel_graph", "schedule", "target")
#: Of folders whose own tests are elsewhere.
OWN = {"schedule": ("tests/schedule", "tests/schedules")}
#: Seconds beyond those that the tests should take: a fault that makes a loop endless is found as well.
PATIENCE = 120
#: How much longer a test may take than when the map was made.
SLOWER = 4


def main() -> int:
    """Plant as the command line says."""
    args = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 150)
    found = sample(ROOT, args.folders, args.count, args.seed)
    file = pathlib.Path(args.json)
    results: dict[str, str] = json.loads(file.read_text())["results"] if file.exists() else {}
    left = [mutant for mutant in found if str(mutant) not in results]
    folder_of_map = pathlib.Path(args.map)
    if left and not (folder_of_map / SECONDS_FILE).exists():
        console.print("running the suite under coverage: which tests run which lines", style="dim")
        _draw_map(folder_of_map)
    known = len(found) - len(left)
    console.print(f"seed {args.seed}, {len(found)} faults, {known} of them known", style="dim")
    if left:
        _judge(console, left, args, results)
    return _report(console, found, results, args.least)


def _judge(console: Console, left: list[Mutant], args: argparse.Namespace, results: dict[str, str]) -> None:
    """Plant what is left, and keep each result as it comes."""
    file, reach = pathlib.Path(args.json), Reach(pathlib.Path(args.map), ROOT)
    copies: queue.Queue[pathlib.Path] = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="uir-mutants-") as folder:
        for k in range(args.jobs):
            copies.put(_copy(pathlib.Path(folder) / str(k)))
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with (
            Progress(*columns, console=console) as progress,
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool,
        ):
            bar = progress.add_task("faults", total=len(left))
            waiting = {pool.submit(_judged, mutant, copies, reach, args.seconds): mutant for mutant in left}
            for done in concurrent.futures.as_completed(waiting):
                mutant = waiting[done]
                results[str(mutant)] = done.result()
                file.write_text(json.dumps({"seed": args.seed, "results": results}, indent=1))
                if not results[str(mutant)]:
                    progress.console.print(f"not found: {mutant}", style="red", highlight=False)
                progress.advance(bar)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folders", nargs="+", choices=FOLDERS, default=list(FOLDERS), metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time")
    parser.add_argument(
        "--seconds",
        type=float,
        default=300.0,
        help="that a fault's tests took (default: 300)",
    )
    parser.add_argument("--map", default="mutants-map", metavar="DIR", help="which tests run which lines")
    parser.add_argument("--least", type=float, default=0.0, metavar="SHARE", help="share that must be found")
    parser.add_argument("--json", default="mutants.json", metavar="FILE", help="results, kept as they come")
    return parser.parse_args()


def _copy(folder: pathlib.Path) -> pathlib.Path:
    """The repository without its history and builds."""
    ignored = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=ignored)
    return folder


def _draw_map(folder: pathlib.Path) -> None:
    """Run the suite and keep which tests run which lines, and their seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    environment = {
        **os.environ,
        "COVERAGE_FILE": str(folder / LINES_FILE),
        SECONDS: str(folder / SECONDS_FILE),
    }
    workers = ("-n", str(os.cpu_count() or 1), "--dist", "worksteal", "-p", "tests.mutation.reach")
    covered = ("--cov=uir_tvm", "--cov-context=test", "--cov-report=")
    # a test that fails is no obstacle: its lines were run
    subprocess.run(
        [sys.executable, "-m", "pytest", *workers, *covered], cwd=ROOT, env=environment, check=False
    )


def _judged(mutant: Mutant, copies: queue.Queue[pathlib.Path], reach: Reach, seconds: float) -> str:
    """The tests that find a fault; empty where none does."""
    copy = copies.get()
    file = copy / mutant.path
    text = file.read_text()
    chosen = reach.choose(mutant.path, mutant.lines(text), seconds)
    folder = pathlib.PurePath(mutant.path).parts[2]
    tests = chosen.tests or OWN.get(folder, (f"tests/{folder}",))
    try:
        file.write_text(mutant.planted(text))
        failed = _first_failure(copy, tests, SLOWER * seconds + PATIENCE)
        return failed if failed is not None else ""
    finally:
        file.write_text(text)
        copies.put(copy)


def _first_failure(copy: pathlib.Path, tests: tuple[str, ...], patience: float) -> str | None:
    """The first of some tests that fails, in their order; None where all pass."""
    listed = copy / "tests-of-a-fault.txt"
    listed.write_text("\n".join(tests))
    options = ("-x", "-q", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *options, f"@{listed.name}"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=patience, text=True
        )
    except subprocess.TimeoutExpired:
        return "endless"
    if done.returncode == 0:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0] if lines else f"pytest ended with {done.returncode}"


def _report(console: Console, found: list[Mutant], results: dict[str, str], least: float) -> int:
    table = Table("folder", "faults", "found", "share")
    planted, caught = Counter[str](), Counter[str]()
    for mutant in found:
        folder = pathlib.PurePath(mutant.path).parts[2]
        planted[folder] += 1
        caught[folder] += bool(results[str(mutant)])
    for folder in planted:
        share = caught[folder] / planted[folder]
        table.add_row(folder, str(planted[folder]), str(caught[folder]), f"{share:.0%}")
    total = sum(caught.values()) / max(sum(planted.values()), 1)
    table.add_row("all", str(sum(planted.values())), str(sum(caught.values())), f"{total:.0%}")
    console.print(table)
    return 0 if total >= least else 1


if __name__ == "__main__":
    sys.exit(main())
