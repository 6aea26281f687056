#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels that leave sizes open, tuned at representative sizes: default and tuned times there, and elsewhere.

    python benchmarks/open_tuning.py --target uir-bang --database tuned
    python benchmarks/open_tuning.py --target uir-ascend --database tuned --trials 40

Times are modelled. The schedule is that of the database, as compilations take it.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence

import attrs
import tvm
from dynamic import LONGEST, OPERATORS
from rich.console import Console
from rich.table import Table
from tvm import te, tirx
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.schedule.size_points import SizePoint
from uir_tvm.tune import ScheduleDatabase, Task, extract_tasks, tune
from uir_tvm.tune.evaluate import run_in_turns
from uir_tvm.tune.job import Job, trace_json

#: Representative sizes, all of one weight, and sizes that are none of them.
LIST = ("n=1,s=37", "n=8,s=128", "n=64,s=128")
OTHERS = ("n=3,s=200", "n=8,s=512")
KERNELS = ("softmax of open rows", "layer norm of open rows")


def kernel(name: str) -> tirx.PrimFunc:
    """An operator of `dynamic.py` with a batch and a length that are open."""
    func = te.create_prim_func(OPERATORS[name].tensors(*(tirx.Var(n, "int64") for n in ("n", "s"))))
    known = with_sizes(func, {"n": Size("n", 1, 4096), "s": Size("s", 1, LONGEST)})
    return known.with_attr("global_symbol", name.replace(" ", "_"))


def jobs(task: Task, database: pathlib.Path, at: Sequence[SizePoint]) -> list[Job]:
    """The default schedule and that of the database, to be timed at some sizes."""
    own = attrs.evolve(Job.of(task), points=tuple(at))
    entry = ScheduleDatabase(database).best(task.func, task.target)
    if entry is None:
        return [own, own]
    begun = str(tvm.ir.save_json(entry.begun))
    return [own, attrs.evolve(own, begun=begun, trace=trace_json(entry.trace))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--target", default="uir-bang")
    parser.add_argument("--database", type=pathlib.Path, required=True)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=KERNELS)
    given = parser.parse_args()
    at = [SizePoint.of(text) for text in (*LIST, *OTHERS)]
    table = Table("kernel", *map(str, at), title=f"{given.target}, modelled")
    for name in given.only:
        func = kernel(name)
        tune(func, given.target, database=given.database, trials=given.trials, sizes=LIST, device="model")
        (task,) = extract_tasks(func, given.target, "model", sizes=LIST).tasks
        own, tuned = run_in_turns(jobs(task, given.database, at), equivalence="none")
        cells = zip(own.medians, tuned.medians, strict=True)
        table.add_row(name, *(f"{1e6 * a:.2f} / {1e6 * b:.2f} us = {a / b:.2f}" for a, b in cells))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
