# SPDX-License-Identifier: Apache-2.0
"""Plant faults in emitted text, one at a time, and see who catches each: the host model or the result.

``scripts/plant_text_faults.py`` prints the kernels of the recipes (and of models, without ``--quick``) for a
target, changes one place of a text (drops a barrier, shifts an address, shrinks a range, ...), runs it on the
host model of the target's devices and compares with the right text.  A dropped barrier that nobody misses is
NEEDLESS: the printer should not have printed it, or the model has a gap.  A changed number that changes no
bit of the results has ``no effect`` on the shape at hand.  Exit code 0 only when no barrier is needless and
no right text raises an alarm.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import attrs
import numpy as np
from rich.console import Console
from rich.table import Table
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.device.kind import DEVICES
from uir_tvm.errors import ToolchainError, UirError
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.pipeline import compile_kernel
from uir_tvm.target.registry import TARGETS

from tests.corpus import recipes
from tests.device import ascend_faults, bang_faults, cuda_faults, fault_graphs
from tests.device.judge_text import FINDING, NEEDLESS, VERDICTS, Judge, Verdict
from tests.device.merged_faults import can_merge, judge_all
from tests.device.text_faults import FaultTable

#: Recipes of a quick run: asynchronous copies, shared memory, shuffles, masks, vectors.
QUICK = ("product 33x65 65x17 17", "column mean 4x32x96", "layer norm 2x13x37 37 37", "transpose 3x33x65")
MODELS = ("minilm",)
TABLES: dict[str, FaultTable] = {
    "uir-cuda": cuda_faults.TABLE,
    "uir-ascend": ascend_faults.TABLE,
    "uir-bang": bang_faults.TABLE,
}
#: Kernels beyond the recipes', for kinds of fault that those have no place for.
MORE = {
    "uir-cuda": fault_graphs.cuda_kernels,
    "uir-ascend": fault_graphs.ascend_kernels,
    "uir-bang": fault_graphs.bang_kernels,
}
QUICK_COUNT, FULL_COUNT = 1, 3


@attrs.define
class Tally:
    """What was found so far."""

    verdicts: list[Verdict] = attrs.field(factory=list)
    #: Right texts in which the model finds a fault, and functions that are not printed.
    alarms: list[tuple[str, str]] = attrs.field(factory=list)
    refused: list[tuple[str, str]] = attrs.field(factory=list)
    kernels: int = 0

    @property
    def good(self) -> bool:
        """No needless barrier, no false alarm."""
        return bool(self.verdicts) and not self.alarms and not any(v.by == NEEDLESS for v in self.verdicts)


def main() -> int:
    """Plant as the command line says."""
    args = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(f"seed {args.seed}, {args.count} fault(s) of a kind in each text", style="dim")
    tally, start = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="uir_faults_") as folder:
        os.environ["UIR_CACHE_DIR"] = folder
        try:
            for name, kernel, inputs in _texts(args, tally):
                _plant(args, name, kernel, inputs, tally, console)
        except KeyboardInterrupt:
            console.print("interrupted; so far:", style="yellow")
    _report(tally, args.target, console, time.monotonic() - start)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"seed": args.seed, **_plain(tally)}, indent=1))
    return 0 if tally.good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four kernels and one fault of a kind in each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="faults of one kind in one text (barriers: all of them)")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="only these kinds, see --kinds")
    parser.add_argument("--kinds", action="store_true", help="list the kinds of the target's table, and end")
    parser.add_argument("--kernels", default="", help="only kernels with this in their name")
    parser.add_argument("--target", choices=TABLES, default="uir-cuda")
    parser.add_argument("--hardware", help="a hardware model of the target (default: its own)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="texts compiled at a time")
    parser.add_argument("--json", metavar="FILE", help="also write everything there")
    args = parser.parse_args()
    kinds = TABLES[args.target].kinds
    if args.kinds:
        print(*kinds, sep="\n")
        parser.exit()
    if unknown := [kind for kind in args.only or () if kind not in kinds]:
        parser.error(f"{args.target} has no {', '.join(unknown)}; its kinds are {', '.join(kinds)}")
    if args.count is None:
        args.count = QUICK_COUNT if args.quick else FULL_COUNT
    return args


def _texts(args: argparse.Namespace, tally: Tally) -> Iterator[tuple[str, DeviceKernel, list[np.ndarray]]]:
    """Printed functions with inputs."""
    target = TARGETS[args.target].target(args.hardware, "model")
    for name, func, inputs in _functions(args, target):
        if args.kernels not in name:
            continue
        try:
            record = compile_kernel(func, target, "kernel")
        except UirError as error:
            tally.refused.append((name, str(error)))
            continue
        if record.fallback:
            tally.refused.append((name, record.fallback))
            continue
        yield name, record.lowered, inputs if inputs is not None else _inputs(record.lowered, args.seed)
    for name, kernel, inputs in MORE.get(args.target, lambda seed: iter(()))(args.seed):
        if args.kernels in name and not args.quick:
            yield name, kernel, inputs


def _functions(args: argparse.Namespace, target: object) -> Iterator[tuple]:
    for case in recipes.CASES:
        if not args.quick or case in QUICK:
            example = recipes.example(case)
            yield case, example.func, example.inputs
    if args.quick:
        return
    from scripts.check_cuda_builds import functions

    for model in MODELS:
        for name, func in functions(model, "small", target):
            yield f"{model}/{name}", func, None


def _inputs(kernel: DeviceKernel, seed: int) -> list[np.ndarray]:
    """Random floats; integers are 0 or 1, which any table has."""
    rng = np.random.default_rng(seed)
    out = []
    for p in (p for p in kernel.params if p.role != "out"):
        dtype = np.dtype(numpy_of(p.dtype))
        whole = dtype.kind in "iub"
        out.append((rng.integers(0, 2, p.size) if whole else rng.standard_normal(p.size)).astype(dtype))
    return out


def _plant(
    args: argparse.Namespace,
    name: str,
    kernel: DeviceKernel,
    inputs: list[np.ndarray],
    tally: Tally,
    console: Console,
) -> None:
    try:
        judge = Judge(name, kernel, inputs)
    except AssertionError as alarm:
        tally.alarms.append((name, str(alarm)))
        console.print(f"ALARM {alarm}", style="red", markup=False)
        return
    tally.kernels += 1
    before = len(tally.verdicts)
    table, planted = TABLES[args.target], []
    for kind in args.only or table.kinds:
        found = list(table.faults(kernel.source, kind, kernel.report))
        if kind not in table.orders or args.quick:
            rng = random.Random(f"{args.seed}/{name}/{kind}")
            found = rng.sample(found, min(len(found), args.count))
        planted += found
    alone = [fault for fault in planted if not can_merge(kernel.source, fault)]
    with ThreadPoolExecutor(args.jobs) as pool:
        for fault in alone:
            pool.submit(_compile, kernel.kind, fault.source)
        for verdict in judge_all(judge, planted):
            tally.verdicts.append(verdict)
            if verdict.by == NEEDLESS:
                fault = verdict.fault
                console.print(f"NEEDLESS {name}, line {fault.line}: {fault.what}", style="red", markup=False)
    counts = collections.Counter(v.by for v in tally.verdicts[before:])
    told = ", ".join(f"{count} {by}" for by, count in counts.items())
    console.print(f"{name}: {told}", style="dim", markup=False)


def _compile(kind: str, source: str) -> None:
    """Compile a text ahead of its run, which finds it by its hash, or fails in the same way."""
    with contextlib.suppress(ToolchainError):
        DEVICES[kind].compile(source)


def _report(tally: Tally, target: str, console: Console, seconds: float) -> None:
    table = Table(title=f"{target}: {len(tally.verdicts)} faults in {tally.kernels} texts, {seconds:.0f} s")
    for column in ("kind", "planted", *VERDICTS):
        table.add_column(column, justify="left" if column == "kind" else "right")
    for kind in TABLES[target].kinds:
        counts = collections.Counter(v.by for v in tally.verdicts if v.fault.kind == kind)
        if counts:
            table.add_row(kind, str(counts.total()), *(str(counts[by] or "") for by in VERDICTS))
    total = collections.Counter(v.by for v in tally.verdicts)
    table.add_section()
    table.add_row("all", str(total.total()), *(str(total[by] or "") for by in VERDICTS))
    console.print(table)
    kinds = collections.Counter(v.detail.split(":")[0] for v in tally.verdicts if v.by == FINDING)
    console.print("findings: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    for name, what in tally.alarms:
        console.print(f"alarm in {name}: {what}", style="red", markup=False)
    for name, what in tally.refused:
        console.print(f"not printed: {name}: {what.splitlines()[0]}", style="yellow", markup=False)


def _plain(tally: Tally) -> dict:
    def told(v: Verdict) -> dict:
        return {
            "kernel": v.kernel,
            "kind": v.fault.kind,
            "line": v.fault.line,
            "what": v.fault.what,
            "verdict": v.by,
            "detail": v.detail,
        }

    return {
        "texts": tally.kernels,
        "faults": [told(v) for v in tally.verdicts],
        "alarms": [{"kernel": name, "what": what} for name, what in tally.alarms],
        "refused": [{"kernel": name, "why": what} for name, what in tally.refused],
    }


if __name__ == "__main__":
    sys.exit(main())
