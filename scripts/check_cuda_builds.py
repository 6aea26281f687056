# SPDX-License-Identifier: Apache-2.0
"""Compile every kernel that uir-cuda prints for the recipes and the models: no spills, no warnings.

``scripts/check_cuda_builds.py [--arch sm_80] [--scale small|full|both] [--json FILE] [NAME ...]`` prints a
line per kernel and architecture (registers, shared memory, spills, stack); a NAME is a model of tests/models
or ``recipes``; exit code 1 when a kernel spills, draws a warning, does not compile or has no iGraph.
Needs nvcc or NVRTC, no GPU.  Weights are random: only their shapes matter.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import attrs
import torch
from rich.console import Console
from rich.table import Table
from uir_tvm import api, kernel_graph
from uir_tvm.device.device_kernel import DeviceKernel, Launch
from uir_tvm.errors import UirError
from uir_tvm.pipeline import compile_kernel
from uir_tvm.schedules import RECIPES
from uir_tvm.target.cuda import toolchain
from uir_tvm.target.cuda.cubin import KernelFigures
from uir_tvm.target.registry import TARGETS

from tests.models import MODELS

#: The hardware preset whose kernels are compiled for an architecture.
PRESETS = {"sm_80": "a100", "sm_89": "l40s", "sm_90a": "h200"}
RECIPE_NAMES = "recipes"
COLUMNS = ("source", "kernel", "arch", "hero", "registers", "shared", "spills", "stack", "")


@attrs.frozen
class Row:
    """One kernel of one source compiled for one architecture."""

    source: str
    kernel: str
    arch: str
    hero: str
    registers: int = 0
    shared_bytes: int = 0
    spill_bytes: int = 0
    stack_bytes: int = 0
    problem: str = ""

    @property
    def right(self) -> bool:
        """Compiled, and nothing to complain of."""
        return not (self.problem or self.spill_bytes or self.stack_bytes)


def functions(name: str, scale: str, target: Any) -> Iterator[tuple[str, Any]]:
    """The PrimFuncs of the recipes' examples or of a model, by the kernel's name."""
    if name == RECIPE_NAMES:
        for recipe in RECIPES:
            yield recipe.hero.replace(" ", "_"), recipe.example().func
        return
    module, inputs = MODELS[name].build(scale)
    with torch.no_grad():
        program = torch.export.export(module, inputs)
    graph = kernel_graph.build(api.import_model(program), target)
    yield from graph.kernels.items()


@attrs.frozen
class Printed:
    """A PrimFunc as far as TVM takes it: a source with its launches, or why there is none."""

    source: str
    kernel: str
    arch: str
    hero: str
    product: DeviceKernel | None
    problem: str

    @staticmethod
    def of(source: str, kernel: str, func: Any, target: Any, arch: str) -> Printed:
        """Through the stages, up to the source text."""
        record = compile_kernel(func, target, kernel)
        hero = record.recipe or record.hero
        if record.fallback:
            return Printed(source, kernel, arch, hero, None, record.fallback)
        return Printed(source, kernel, arch, hero, record.lowered, "")

    def compiled(self) -> list[Row]:
        """The rows of its kernels."""
        if self.product is None:
            return [Row(self.source, self.kernel, self.arch, self.hero, problem=self.problem)]
        try:
            cubin = toolchain.compile(self.product.source, self.arch, name=f"{self.product.name}.cu")
        except UirError as error:
            return [Row(self.source, self.kernel, self.arch, self.hero, problem=str(error))]
        warned = "; ".join(cubin.warnings)
        return [self._row(launch, cubin[launch.name], warned) for launch in self.product.launches]

    def _row(self, launch: Launch, figures: KernelFigures, warned: str) -> Row:
        return Row(
            self.source,
            launch.name,
            self.arch,
            self.hero,
            figures.registers,
            figures.shared_bytes + launch.shared_bytes,
            figures.spill_stores + figures.spill_loads,
            figures.stack,
            warned,
        )


def main() -> int:
    """Check what the command line names; 0 when every kernel is right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{RECIPE_NAMES}, {', '.join(MODELS)}")
    parser.add_argument("--arch", action="append", choices=sorted(PRESETS))
    parser.add_argument("--scale", choices=("small", "full", "both"), default="small")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file too")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at the same time")
    args = parser.parse_args()
    known = [RECIPE_NAMES, *MODELS]
    unknown = sorted(set(args.names) - set(known))
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(known)}")
    console = Console(width=150)
    rows: list[Row] = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for name in args.names or known:
            scales = ("small", "full") if args.scale == "both" else (args.scale,)
            for scale in scales if name != RECIPE_NAMES else ("small",):
                start = time.perf_counter()
                done = [row for found in _checks(pool, name, scale, args.arch) for row in found]
                rows += done
                label = name if name == RECIPE_NAMES else f"{name} {scale}"
                wrong = sum(not row.right for row in done)
                seconds = time.perf_counter() - start
                console.print(f"{label}: {len(done)} kernels, {wrong} wrong, {seconds:.0f} s", style="dim")
    console.print(table(rows))
    for row in rows:
        if row.problem:
            console.print(f"{row.source}/{row.kernel} ({row.arch}): {row.problem}", style="red", markup=False)
    if args.json:
        args.json.write_text(json.dumps([attrs.asdict(row) for row in rows], indent=1))
    return 0 if rows and all(row.right for row in rows) else 1


def _checks(pool: ThreadPoolExecutor, name: str, scale: str, archs: list[str] | None) -> Iterator[list[Row]]:
    """The rows of every function; sources are compiled side by side, TVM works in this thread alone."""
    label = name if name == RECIPE_NAMES else f"{name} {scale}"
    waiting = []
    for arch in archs or ("sm_80", "sm_90a"):
        target = TARGETS["uir-cuda"].target(PRESETS[arch])
        for kernel, func in functions(name, scale, target):
            waiting.append(pool.submit(Printed.of(label, kernel, func, target, arch).compiled))
    for future in waiting:
        yield future.result()


def table(rows: list[Row]) -> Table:
    """All rows, for people."""
    made = Table(*COLUMNS, title=f"{len(rows)} kernels, {sum(r.right for r in rows)} right")
    for r in rows:
        verdict = "right" if r.right else "[red]WRONG[/]"
        made.add_row(
            r.source, r.kernel, r.arch, r.hero, str(r.registers), str(r.shared_bytes), str(r.spill_bytes),
            str(r.stack_bytes), verdict,
        )  # fmt: skip
    return made


if __name__ == "__main__":
    sys.exit(main())
