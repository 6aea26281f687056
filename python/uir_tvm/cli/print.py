# SPDX-License-Identifier: Apache-2.0
"""What ``uir`` shows to people: tables, reports, the progress bar."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .base import ERRORS, OUT, emit

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..igraph.nodes import HardwareModel
    from ..runtime.modelled import Times


class compile_progress:
    """A progress bar for compilation, on standard error."""

    def __init__(self, quiet: bool = False) -> None:
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<14}"),
            BarColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=ERRORS,
            disable=quiet or not ERRORS.is_terminal,
            transient=True,
        )

    def __enter__(self) -> Callable[[str, int, int, str], None]:
        self.bar.start()
        task = self.bar.add_task("start", total=None, detail="")

        def notify(stage: str, done: int, total: int, detail: str) -> None:
            self.bar.update(task, description=stage, completed=done, total=total or None, detail=detail)

        return notify

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def _cell(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def table_of(rows: list[dict[str, Any]]) -> Table:
    table = Table(*(rows[0] if rows else ["nothing"]), header_style="bold")
    table.columns[0].no_wrap = True  # names are there to be copied
    for row in rows:
        table.add_row(*[escape(_cell(value)) for value in row.values()])
    return table


#: What a report shows below its table.
APART = (
    "kernel_list",
    "kernels_without_igraph",
    "kernels_split",
    "passes_refused",
    "candidates_refused",
    "fallbacks",
    "state",
)


def print_report(report: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for key, value in report.items():
        if key in APART:
            continue
        shown = value
        if key == "seconds":
            shown = ", ".join(f"{k} {v:.2f} s" for k, v in value.items())
        elif isinstance(value, Mapping):
            shown = ", ".join(f"{k} {v}" for k, v in value.items() if v) or "none"
        elif isinstance(value, list):
            shown = ", ".join(map(str, value)) or "none"
        table.add_row(key.replace("_", " "), f"{shown:,}" if isinstance(shown, int) else str(shown))
    OUT.print(table)
    left = report.get("kernels_without_igraph", [])
    if left:
        OUT.print(f"[yellow]{len(left)} kernels did not go through an iGraph:[/]")
        for row in left:
            OUT.print(f"  {row['kernel']}: {row['reason'].splitlines()[0]}", markup=False)
    else:
        OUT.print("every custom kernel went through an iGraph")
    for row in report.get("passes_refused", []):
        text = f"  {row['kernel']}: the pass {row['pass']} was left out ({row['reason'].splitlines()[0]})"
        OUT.print(text, style="yellow", markup=False)
    for row in report.get("candidates_refused", []):
        tiles = f", tiles {row['shrink']} times smaller" if row["shrink"] > 1 else ""
        said = f"{row['refused']}: {row['reason']}"
        text = f"  {row['kernel']}: recipe {row['recipe']}{tiles} was refused ({said})"
        OUT.print(text, markup=False)
    for row in report.get("kernels_split", []):
        OUT.print(f"  {row['kernel']}: {row['note']}", markup=False)
    for row in report.get("state", []):
        OUT.print(f"  state {state_line(row)}", markup=False, highlight=False)
    if "kernel_list" in report:
        OUT.print(table_of(report["kernel_list"]))


def state_line(row: Mapping[str, Any]) -> str:
    """A tensor of a model's state, as a report has it, in one line."""
    from ..state_spec import StateSpec

    return str(StateSpec(**row))


def print_specialized(report: dict[str, Any]) -> None:
    """A model with code for all sizes, or for several shapes: its inputs, its symbols, what there is."""
    OUT.print(f"{report['model']} for {report['target']}, on {report['device']}", markup=False)
    OUT.print("inputs: " + "; ".join(report["inputs"]), markup=False, highlight=False)
    said = ", ".join(f"{name} {what}" for name, what in report["symbols"].items())
    OUT.print(f"open sizes: {said or 'none'}", markup=False, highlight=False)
    for row in report["state"]:
        OUT.print(f"  state {state_line(row)}", markup=False, highlight=False)
    rows = [
        {
            "sizes": ", ".join(f"{name}={size}" for name, size in row["sizes"].items()),
            "shapes": "; ".join(f"{name} {shape}" for name, shape in row["shapes"].items()),
            "made": row["made"],
            "seconds": round(row["seconds"], 2),
        }
        for row in report["kept"]
    ]
    for program in report["programs"]:
        if "compiled_by_shape" in program:
            continue
        later, told = program["kernels_by_sizes"], " and ".join(program["conditions"])
        text = (
            f"for all sizes{' with ' * bool(told)}{told}: "
            f"{program['kernels_for_all_sizes']} kernels, {program['library']} library operators"
        )
        OUT.print(text, markup=False, highlight=False)
        if program["found"]:
            OUT.print(f"  it finds the sizes {', '.join(program['found'])} while it runs", markup=False)
        figures = program.get("figures") or {}
        for key, what in (("bytes", "bytes moved"), ("library_operations", "operations of the library")):
            if figures.get(key):
                OUT.print(f"  {what} = {figures[key]}", markup=False, highlight=False, soft_wrap=True)
        for row in later:
            text = f"  {row['kernel']} is compiled for the sizes of a call: {row['reason'].splitlines()[0]}"
            OUT.print(text, style="yellow", markup=False, highlight=False)
        for kernel, conditions in program["variants"].items():
            text = f"  {kernel} has variants for {'; '.join(conditions)}"
            OUT.print(text, markup=False, highlight=False)
    if rows:
        OUT.print(table_of(rows))
    if "file" in report:
        OUT.print(f"{report['file']}, {report['total_seconds']} s", markup=False, highlight=False)


def print_times(times: Times, hw: HardwareModel, timeline: pathlib.Path | None = None) -> None:
    """Modelled times: of all, and of every kernel; and what of the hardware is only assumed."""
    from ..hardware import assumed_figures

    OUT.print(table_of(times.table()))
    text = f"{times.seconds * 1e6:.1f} us modelled, not measured, for {len(times.launches)} launches"
    if times.library_seconds:
        text += f"; {times.library_seconds * 1e6:.1f} us of it by a roofline of the library's operators"
    OUT.print(text)
    if assumed := assumed_figures(hw):
        OUT.print(f"assumed of {hw.name}, since nobody publishes it: {', '.join(assumed)}")
    if timeline is not None:
        OUT.print(f"timeline: {timeline} (chrome://tracing, ui.perfetto.dev)")


def emit_explanation(ctx: click.Context, explanation: Explanation) -> None:
    """An explanation: JSON for machines, else its text, which no terminal's width wraps."""
    from ..explain import render

    emit(ctx, explanation.to_json(), lambda: click.echo(render(explanation)))
