# SPDX-License-Identifier: Apache-2.0
"""How well cost models rank schedules: reckoned ones alone, and with what was learned of other tasks.

scripts/cost_model_quality.py DATA --collect --target uir-cpu --target uir-ascend:910b2   # measure (hours)
scripts/cost_model_quality.py DATA                                                         # rank (minutes)

``--collect`` measures schedules drawn at random from the design spaces of models' kernels and of the
recipes' examples, and adds a line for each to DATA; what DATA has already is not measured again.  Without
it every task of DATA is ranked by the reckoned time (`uir_tvm.explain.analytic`) and by cost models that were
trained on the others, and the table is printed:

spearman   rank correlation of predicted and true seconds, median over tasks
top 8      whether the fastest schedule is among the 8 that are predicted to be fastest, share of tasks
best of 8  seconds of the fastest of these 8 over those of the fastest of all, median over tasks
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import attrs
import numpy as np

TOP = 8
#: Tasks with fewer schedules say nothing of ranks.
LEAST = 8


@attrs.frozen(eq=False)
class Row:
    """One measured schedule."""

    target: str
    task: str
    origin: str
    digest: str
    decisions: dict[str, int]
    seconds: float
    graph: str


def say(*words: str) -> None:
    """A line of progress."""
    print(*words, file=sys.stderr, flush=True)


def read(path: pathlib.Path) -> list[Row]:
    """The rows of a file."""
    return [Row(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


# --- measuring -----------------------------------------------------------------------------------


def tasks(target: str, models: Sequence[str], scale: str) -> Iterator[Any]:
    """The tasks of some models, then of the recipes' examples."""
    import torch
    from uir_tvm import kernel_graph
    from uir_tvm.api import import_model
    from uir_tvm.schedules import RECIPES
    from uir_tvm.target import registry
    from uir_tvm.tune.task import Task, extract_tasks

    from tests.models import MODELS

    device = "auto" if target == "uir-cpu" else "model"
    where = registry.resolve(target, device).target
    seen = set()
    for name in models:
        model, inputs = MODELS[name].build(scale)
        graph = kernel_graph.build(import_model(torch.export.export(model, inputs)), where)
        for task in extract_tasks(graph, where).tasks:
            if task.origin not in seen:
                seen.add(task.origin)
                yield Task(f"{name} {task.name}", task.func, where)
    for recipe in RECIPES:
        yield Task(f"example {recipe.hero}", recipe.example().func, where)


def drawn(task: Any, count: int, seed: int) -> list[Any]:
    """Candidates of a task: the spaces' own decisions, then any."""
    from uir_tvm.tune.candidates import Checker
    from uir_tvm.tune.mutator import options
    from uir_tvm.tune.spaces import design_spaces

    spaces, checker, rng = design_spaces(task.func, task.target), Checker(task), random.Random(seed)
    found = {}
    for attempt in range(4 * count):
        space = spaces[attempt % len(spaces)]
        trace = space.schedule.trace
        if attempt >= len(spaces):
            for inst in trace.insts:
                answers = options(inst, trace)
                if answers:
                    trace = trace.with_decision(inst, rng.choice(answers), remove_postproc=True)
        candidate = checker.candidate(space, trace)
        if candidate is not None:
            found.setdefault(candidate.digest, candidate)
        if len(found) == count:
            break
    return list(found.values())


def collect(path: pathlib.Path, args: argparse.Namespace) -> None:
    """Measure what is not in the file yet."""
    from uir_tvm.tune.job import Settings
    from uir_tvm.tune.measure import LocalMeasurer

    known = {(row.target, row.origin, row.digest) for row in read(path)}
    settings = Settings(repeats=5, min_repeat_seconds=0.01)
    for target in args.target:
        with LocalMeasurer(args.workers) as measurer:
            for task in tasks(target, args.models, args.scale):
                every, of = drawn(task, args.schedules, args.seed), (target, task.origin)
                candidates = [c for c in every if (*of, c.digest) not in known]
                results = measurer.measure([c.job(settings=settings) for c in candidates])
                rows = [
                    Row(target, task.name, of[1], c.digest, dict(c.decisions), min(r.seconds), str(c.graph))
                    for c, r in zip(candidates, results, strict=True)
                    if r.ok
                ]
                with path.open("a") as file:
                    for row in rows:
                        file.write(json.dumps(attrs.asdict(row)) + "\n")
                bad = [f"{r.outcome}: {r.said.splitlines()[0][:100]}" for r in results if not r.ok]
                say(f"{target} {task.name}: {len(rows)} of {len(results)}", *bad[:1])


def agreement(every: Sequence[Task], again: Sequence[Task]) -> dict[str, tuple[int, float]]:
    """Of each target: tasks that were measured twice, and the rank correlation of both times, the median."""
    second = {(t.target, t.origin): dict(zip(map(str, t.graphs), t.seconds, strict=True)) for t in again}
    found = defaultdict(list)
    for task in every:
        other = second.get((task.target, task.origin), {})
        both = [(s, other[str(g)]) for g, s in zip(task.graphs, task.seconds, strict=True) if str(g) in other]
        if len(both) >= LEAST:
            found[task.target].append(spearman(*map(np.array, zip(*both, strict=True))))
    return {target: (len(values), float(np.median(values))) for target, values in found.items()}


# --- ranking -------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Task:
    """The schedules of one task of one target."""

    target: str
    name: str
    origin: str
    graphs: list[Any]
    seconds: np.ndarray


def grouped(rows: Sequence[Row]) -> list[Task]:
    """The tasks of some rows that can be ranked; of a schedule that was measured twice, the shorter time."""
    from uir_tvm.igraph import parse_igraph

    groups: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        known = groups[row.target, row.origin].get(row.digest)
        if known is None or row.seconds < known.seconds:
            groups[row.target, row.origin][row.digest] = row
    found = []
    for (target, origin), members in groups.items():
        mine = list(members.values())
        seconds = np.array([row.seconds for row in mine])
        if len(mine) >= LEAST and seconds.max() > 1.02 * seconds.min():
            graphs = [parse_igraph(row.graph) for row in mine]
            found.append(Task(target, mine[0].task, origin, graphs, seconds))
    return found


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, equal values sharing theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2)[inverse])


def spearman(found: np.ndarray, wanted: np.ndarray) -> float:
    """Rank correlation; 0 where either is all equal."""
    a, b = ranks(found), ranks(wanted)
    return 0.0 if a.std() == 0 or b.std() == 0 else float(np.corrcoef(a, b)[0, 1])


def judged(found: np.ndarray, task: Task) -> tuple[float, float, float]:
    """(spearman, whether the fastest is among the first, fastest of these over fastest of all)."""
    first = np.argsort(found, kind="stable")[:TOP]
    best = task.seconds[first].min() / task.seconds.min()
    return spearman(found, task.seconds), float(best <= 1.001), float(best)


def others(task: Task, every: Sequence[Task], same: bool) -> list[Task]:
    """Tasks of other kernels: of the same target, or of all."""
    return [t for t in every if t.origin != task.origin and (not same or t.target == task.target)]


def learned(train: Sequence[Task], task: Task, own: int = 0) -> np.ndarray:
    """What a model predicts that was trained on some tasks, and on the first few schedules of its own."""
    from uir_tvm.tune.cost_model import CostModel

    model = CostModel(seed=0)
    for t in train:
        model.update(t.origin, t.graphs, t.seconds)
    if own:
        model.update(task.origin, task.graphs[:own], task.seconds[:own])
    return model.predict(task.graphs)


def main() -> int:
    """Measure, or rank and print the table."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--collect", action="store_true")
    parser.add_argument("--target", action="append", help="default: those of DATA")
    parser.add_argument("--models", nargs="*", default=["minilm", "gpt2", "llama", "vit", "resnet"])
    parser.add_argument("--scale", choices=("small", "full"), default="small")
    parser.add_argument("--schedules", type=int, default=24, help="of each task")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=pathlib.Path, help="a second DATA: how far both agree")
    parser.add_argument("--tasks", action="store_true", help="a line for each task")
    parser.add_argument("--quick", action="store_true", help="the reckoned time alone")
    args = parser.parse_args()
    if args.collect:
        collect(args.data, args)
        return 0
    every = grouped(read(args.data))
    every = [task for task in every if not args.target or task.target in args.target]
    if args.again:
        for target, (count, value) in agreement(every, grouped(read(args.again))).items():
            print(f"{target}: two measurements of {count} tasks agree with a rank correlation of {value:.2f}")
        return 0
    from uir_tvm.explain import analytic

    ways: dict[str, Callable[[Task], np.ndarray]] = {
        "reckoned": lambda t: np.array([analytic.seconds(g) for g in t.graphs])
    }
    if not args.quick:
        ways["learned, other kernels, same target"] = lambda t: learned(others(t, every, True), t)
        ways["learned, other kernels, all targets"] = lambda t: learned(others(t, every, False), t)
    print("| target | tasks | schedules | model | spearman | top 8 | best of 8 |")
    print("|---|---|---|---|---|---|---|")
    for target in sorted({task.target for task in every}):
        mine = [task for task in every if task.target == target]
        count = sum(len(task.graphs) for task in mine)
        for way, predict in ways.items():
            scores = []
            for task in mine:
                scores.append(judged(predict(task), task))
                if args.tasks:
                    spread = task.seconds.max() / task.seconds.min()
                    figures = " ".join(f"{score:.2f}" for score in scores[-1])
                    say(f"  {way}: {task.name} ({len(task.graphs)}, x{spread:.1f}): {figures}")
            middle, _, best = np.median(scores, axis=0)
            share = np.mean(scores, axis=0)[1]
            print(f"| {target} | {len(mine)} | {count} | {way} | {middle:.2f} | {share:.0%} | {best:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
