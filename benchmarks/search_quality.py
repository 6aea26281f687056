# SPDX-License-Identifier: Apache-2.0
"""How near the search comes to the fastest schedule there is: 64 trials against all schedules of a kernel.

python benchmarks/search_quality.py                          # what the table lacks is measured; takes an hour
python benchmarks/search_quality.py --modelled               # without the kernels of uir-cpu
python benchmarks/search_quality.py --only softmax --most 100
python benchmarks/search_quality.py --seeds 5                # more searches of each, over the same table

All schedules of a kernel are measured, or a sample of them where there are more than ``--most`` (drawn by
``--seed``), on the host model (uir-ascend, uir-bang: *modelled* time) or on this machine (uir-cpu).  Seconds
are kept in a table (``--table``), so that searches run again and again over equal times; what a search
proposes beyond the sample is measured and kept too.  Delete the table when recipes or printers change.

Columns: combinations of decisions; different schedules that were drawn; over the fastest of the table the
compiler's own, the fastest drawn (more than 1: a search found a faster one beyond the sample), the search's
best and the best of as many random ones (median of many draws); and the trials after which the search was
within 5 %.  The search begins with no data: its cost model learns
from its own trials alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table as Grid
from tvm.relax import op
from uir_tvm.schedules import attention
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target import registry
from uir_tvm.tune.candidates import Checker, DesignPoint
from uir_tvm.tune.cost_model import CostModel
from uir_tvm.tune.job import Result, Settings
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.search import TaskSearch
from uir_tvm.tune.sources import combination, size_of
from uir_tvm.tune.spaces import DesignSpace, design_spaces
from uir_tvm.tune.task import Task

#: A search may be so much slower than the fastest, by the median of all kernels.
LIMIT = 1.05
#: Trials of a search, and how many it proposes at a time.
TRIALS, BATCH = 64, 8
#: Draws of the random baseline.
DRAWS = 301

ASCEND, BANG, CPU = "uir-ascend:910b2", "uir-bang:mlu370-x8", "uir-cpu"

Build = Callable[..., Any]


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return op.nn.layer_norm(x, gamma, beta, axes=[-1])


def _gelu(x: Any, bias: Any) -> Any:
    return op.nn.gelu(op.add(x, bias))


#: By name: an expression, shapes, dtypes (None: all float32).
KERNELS: Mapping[str, tuple[Build, list[tuple[int, ...]], list[str] | None]] = {
    "softmax": (lambda x: op.nn.softmax(x), [(12, 64, 128)], None),
    "layer_norm": (_layer_norm, [(128, 384), (384,), (384,)], None),
    "gelu": (_gelu, [(256, 768), (768,)], None),
    "transpose": (lambda x: op.permute_dims(x, [0, 2, 1]), [(12, 128, 64)], None),
    "column_mean": (lambda x: op.mean(x, axis=1), [(4, 128, 384)], None),
    "row_mean": (lambda x: op.mean(x, axis=-1), [(512, 384)], None),
    "embedding": (
        lambda table, ids: op.take(table, ids, axis=0),
        [(3000, 384), (2, 96)],
        ["float32", "int64"],
    ),
    "contraction": (lambda a, b: op.nn.relu(op.matmul(a, b)), [(64, 128), (128, 96)], None),
    "concat": (lambda x, y: op.concat([x, y], axis=1), [(8, 32, 384), (8, 96, 384)], None),
}

#: (kernel, target)
CASES = [
    *((name, ASCEND) for name in (*KERNELS, "attention")),
    *((name, BANG) for name in ("softmax", "layer_norm", "transpose", "column_mean", "embedding")),
    *((name, CPU) for name in ("softmax", "layer_norm", "gelu", "transpose")),
]


def task_of(kernel: str, target: str) -> Task:
    """A kernel for a target; for its host model, if it has one."""
    if kernel == "attention":
        func = attention.example().func
    else:
        build, shapes, dtypes = KERNELS[kernel]
        func = from_relax(build, shapes, lambda *_: (), dtypes=dtypes).func
    where = registry.resolve(target, "auto" if target == CPU else "model").target
    return Task(kernel, func.with_attr("global_symbol", kernel), where)


class Seconds:
    """Seconds of schedules by digest, in a file; what is not there is measured.

    Parameters
    ----------
    file : Path
        JSON: case -> digest -> seconds, or the outcome of what has none.
    case : str
    measurer : LocalMeasurer or None
        None: what is not there counts as lost.
    """

    def __init__(self, file: pathlib.Path, case: str, measurer: LocalMeasurer | None) -> None:
        self.file, self.measurer = file, measurer
        self.tables: dict[str, dict[str, float | str]] = json.loads(file.read_text()) if file.exists() else {}
        self.known = self.tables.setdefault(case, {})

    def results(self, candidates: Sequence[DesignPoint]) -> list[Result]:
        """What came of candidates."""
        new = [c for c in candidates if c.digest not in self.known]
        if new and self.measurer is not None:
            settings = Settings(repeats=3, min_repeat_seconds=0.01)
            for candidate, result in zip(
                new, self.measurer.measure([c.job(settings=settings) for c in new]), strict=True
            ):
                self.known[candidate.digest] = result.median if result.ok else result.outcome
            self._save()
        return [_result(self.known.get(c.digest, "lost")) for c in candidates]

    def fastest(self) -> float:
        """Of all that have a time."""
        return min((s for s in self.known.values() if isinstance(s, float)), default=math.inf)

    def _save(self) -> None:
        partial = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        partial.write_text(json.dumps(self.tables))
        partial.replace(self.file)


def _result(found: float | str) -> Result:
    return Result((found,)) if isinstance(found, float) else Result((), found)


def sample(task: Task, spaces: Sequence[DesignSpace], most: int, seed: int) -> Iterator[DesignPoint]:
    """Different schedules of a task in an order drawn by the seed, so many at most."""
    checker = Checker(task)
    sizes = [size_of(space) for space in spaces]
    every = range(sum(sizes))
    rng = random.Random(seed)
    seen: set[str] = set()
    # combinations that are refused or make equal schedules take the place of none
    for index in rng.sample(every, min(len(every), 4 * most)):
        number = 0
        while index >= sizes[number]:
            index -= sizes[number]
            number += 1
        made = checker.candidate(spaces[number], combination(spaces[number].schedule.trace, index))
        if made is not None and made.digest not in seen:
            seen.add(made.digest)
            yield made
            if len(seen) == most:
                return


@attrs.frozen
class Row:
    """What was found of one case; times are over the fastest of the table."""

    case: str
    size: int
    schedules: int
    own: float
    drawn: float
    found: float
    random: float
    within: float


def searched(
    task: Task, spaces: Sequence[DesignSpace], seconds: Seconds, trials: int, seed: int
) -> list[float]:
    """The best seconds after each trial of a search; the compiler's own schedule is the first."""
    model = CostModel(seed)
    search = TaskSearch(task, spaces, model, seed)
    curve: list[float] = []
    proposed = [] if search.default is None else [search.default]
    while len(curve) < trials:
        proposed = proposed or search.propose(min(BATCH, trials - len(curve)))
        if not proposed:
            break
        results = seconds.results(proposed)
        search.tell(proposed, results)
        right = [(c.graph, r.median) for c, r in zip(proposed, results, strict=True) if r.ok]
        if right:
            model.update(task.origin, [graph for graph, _ in right], [seconds for _, seconds in right])
        for result in results:
            curve.append(min(result.median, *curve[-1:]) if curve else result.median)
        proposed = []
    return curve


def case_of(name: str, target: str, file: pathlib.Path, given: argparse.Namespace) -> Row | None:
    """Measure a case and search it."""
    case = f"{name} {target.partition(':')[0]}"
    task = task_of(name, target)
    spaces = design_spaces(task.func, task.target)
    measurer = None if given.replay else LocalMeasurer.for_target(task.target)
    try:
        seconds = Seconds(file, case, measurer)
        drawn: list[DesignPoint] = []
        for candidate in sample(task, spaces, given.most, given.seed):
            drawn.append(candidate)
            if len(drawn) % 32 == 0:
                seconds.results(drawn[-32:])
        sampled = [result.median for result in seconds.results(drawn)]
        if not any(map(math.isfinite, sampled)):
            return None
        own = Checker(task).candidate(spaces[0], spaces[0].schedule.trace)
        default = math.nan if own is None else seconds.results([own])[0].median
        curves = [
            searched(task, spaces, seconds, given.trials, given.seed + number)
            for number in range(given.seeds)
        ]
    finally:
        if measurer is not None:
            measurer.close()
    fastest = seconds.fastest()
    rng = random.Random(given.seed)
    draws = [min(rng.sample(sampled, min(given.trials, len(sampled)))) for _ in range(DRAWS)]
    within = [next((n for n, s in enumerate(c, 1) if s <= LIMIT * fastest), math.inf) for c in curves]
    return Row(
        case,
        sum(map(size_of, spaces)),
        len(sampled),
        default / fastest,
        min(sampled) / fastest,
        statistics.median(curve[-1] for curve in curves) / fastest,
        statistics.median(draws) / fastest,
        statistics.median(within),
    )


def main() -> int:
    """The table; 1 where the search is not good enough."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", type=pathlib.Path, default=pathlib.Path("search_quality.json"))
    parser.add_argument("--only", help="kernels whose name has this in it")
    parser.add_argument("--modelled", action="store_true", help="leave out uir-cpu")
    parser.add_argument("--most", type=int, default=400, help="schedules of a kernel that are measured")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="searches of each kernel; their median counts")
    parser.add_argument("--replay", action="store_true", help="measure nothing: over the table as it is")
    given = parser.parse_args()
    grid = Grid(
        "kernel",
        "combinations",
        "drawn",
        "own",
        "fastest drawn",
        f"search {given.trials}",
        "random",
        "within 5 %",
    )
    rows = []
    console = Console(width=None if sys.stdout.isatty() else 120)
    for name, target in CASES:
        if (given.only and given.only not in name) or (given.modelled and target == CPU):
            continue
        row = case_of(name, target, given.table, given)
        if row is None:
            console.print(f"{name} {target}: no schedule of it could be measured")
            continue
        rows.append(row)
        cells = (
            f"{row.own:.3f}",
            f"{row.drawn:.3f}",
            f"{row.found:.3f}",
            f"{row.random:.3f}",
            f"{row.within:g}",
        )
        grid.add_row(row.case, str(row.size), str(row.schedules), *cells)
        console.print(row)
    console.print(grid)
    median = statistics.median(row.found for row in rows)
    by_chance = statistics.median(row.random for row in rows)
    console.print(
        f"seed {given.seed}: median over the fastest {median:.3f}, of as many random ones {by_chance:.3f}"
    )
    return 0 if median <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
