# SPDX-License-Identifier: Apache-2.0
"""What the passes save over the corpus of the tests: bytes moved per level, iOps, syncs, peak memory.

    python benchmarks/passes.py                     operators by recipe, and graphs written by hand
    python benchmarks/passes.py --full              also the kernels of the models
    python benchmarks/passes.py --passes simplify,dead  some of the passes only
    python benchmarks/passes.py --without widen     all but some
    python benchmarks/passes.py --json out.json --markdown

Bytes are those that iOps read and write at a level, over all units and iterations.  iOps and syncs are
counted as they stand in the loop tree, and as one unit runs them; peaks are bytes alive at once, of a unit
(reg) and of a group (sram).  Each cell says before -> after where they differ.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import attrs
from rich.console import Console
from rich.progress import track
from rich.table import Table
from uir_tvm.explain.traffic import touches
from uir_tvm.igraph import IGraph
from uir_tvm.optimize import PASSES, optimize
from uir_tvm.optimize.figures import peak_bytes
from uir_tvm.verify.access import GraphFacts

from tests.corpus import Entry, corpus

#: Column -> how the figures of several graphs combine.
COLUMNS = {
    "dram bytes": sum,
    "sram bytes": sum,
    "reg bytes": sum,
    "iOps": sum,
    "iOps run": sum,
    "syncs": sum,
    "syncs run": sum,
    "peak reg": max,
    "peak sram": max,
}


@attrs.frozen
class Row:
    """One graph: figures by column, as extracted and after the passes."""

    name: str
    group: str
    before: dict[str, int]
    after: dict[str, int]
    changed_by: tuple[str, ...]
    seconds: float


def figures(graph: IGraph) -> dict[str, int]:
    """The figures of one graph by column."""
    steps = GraphFacts(graph).steps
    moved = dict.fromkeys(("dram", "sram", "reg"), 0)
    for step in steps:
        for touch in touches(step):
            moved[str(touch.pointer.level)] += touch.bytes.value
    runs = [(step.iop.op == "sync", math.prod(int(n.extent) for n in step.loops)) for step in steps]
    return {
        **{f"{level} bytes": count for level, count in moved.items()},
        "iOps": len(runs),
        "iOps run": sum(count for _, count in runs),
        "syncs": sum(is_sync for is_sync, _ in runs),
        "syncs run": sum(count for is_sync, count in runs if is_sync),
        "peak reg": peak(graph, "reg"),
        "peak sram": peak(graph, "sram"),
    }


def peak(graph: IGraph, level: str) -> int:
    """Bytes of a level that are needed: those of the addresses given, where there are any."""
    given = graph.attrs.get("peak")
    return int(given[level]) if given is not None else peak_bytes(graph, level)


def group_of(entry: Entry) -> str:
    """The model, the operator without its shapes, or that it was written by hand."""
    if entry.origin == "model":
        return entry.name.split("/")[0]
    if entry.origin == "hand":
        return "by hand"
    return re.sub(r"( \d+(x\d+)*)+ on .*$", "", entry.name)


def measure(entry: Entry, passes: Sequence[str]) -> Row:
    """One row; the passes' results are verified."""
    result = optimize(entry.graph, passes)
    return Row(
        entry.name,
        group_of(entry),
        figures(entry.graph),
        figures(result.graph),
        tuple(step.name for step in result.steps if step.changed),
        sum(step.seconds for step in result.steps),
    )


def combined(rows: Iterable[Row], side: str) -> dict[str, int]:
    """The figures of several graphs together: sums, and the largest peak."""
    found = [getattr(row, side) for row in rows]
    return {name: combine(f[name] for f in found) for name, combine in COLUMNS.items()}


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """The cells of the table: a line per group, then the total."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    groups["all"] = list(rows)
    out = []
    for name, members in groups.items():
        before, after = combined(members, "before"), combined(members, "after")
        cells = [name, str(len(members))]
        for column in COLUMNS:
            same = before[column] == after[column]
            cells.append(short(before[column]) + ("" if same else f" -> {short(after[column])}"))
        out.append(cells)
    return out


def short(value: int) -> str:
    """A count in four digits."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= 10 * size:
            return f"{value / size:.2f} {unit}"
    return str(value)


HEAD = ["kernels", "graphs", *COLUMNS]


def markdown(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    body = [HEAD, ["---", *["---:"] * (len(HEAD) - 1)], *lines(rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in body)


def table(rows: Sequence[Row]) -> Table:
    """The table for a terminal."""
    made = Table(title="before -> after the passes")
    for k, name in enumerate(HEAD):
        made.add_column(name, justify="right" if k else "left")
    for cells in lines(rows):
        made.add_row(*(cell.replace(" -> ", "\n-> ") for cell in cells))
    return made


def per_pass(rows: Sequence[Row]) -> str:
    """How many graphs each pass changed."""
    counts = {p.name: sum(p.name in row.changed_by for row in rows) for p in PASSES}
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="also the kernels of the models (minutes)")
    parser.add_argument("--only", nargs="*", default=(), help="groups of kernels")
    parser.add_argument("--passes", default="", help="names, separated by commas")
    parser.add_argument("--without", default="", help="names, separated by commas")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    names = args.passes.split(",") if args.passes else [p.name for p in PASSES]
    names = [name for name in names if name not in args.without.split(",")]
    entries = [e for e in corpus(full=args.full) if not args.only or group_of(e) in args.only]
    console = Console(stderr=True)
    rows = [measure(e, names) for e in track(entries, "passes", console=console, transient=True)]
    if args.json:
        content: dict[str, Any] = {"passes": names, "rows": [attrs.asdict(row) for row in rows]}
        args.json.write_text(json.dumps(content, indent=1))
    print(markdown(rows)) if args.markdown else Console().print(table(rows))
    print(f"graphs changed by each pass: {per_pass(rows)}")
    print(f"seconds in all, with verification after each pass: {sum(row.seconds for row in rows):.1f}")


if __name__ == "__main__":
    main()
