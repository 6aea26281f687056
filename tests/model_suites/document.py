# SPDX-License-Identifier: Apache-2.0
"""The outcomes of a sweep as docs/pytorch-models.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from . import SUITES
from .outcome import FAULTS, NOT_BUILT, REFUSED, RIGHT, Outcome

RECORD = Path(__file__).with_name("record.json")
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "pytorch-models.md"

_HEAD = """# PyTorch models that compile

`scripts/check_models.py --table` makes this of the record of `make models`, a sweep with
`pip install 'uir_tvm[suites]'`; edit neither by hand. Every architecture has random weights. Those of
transformers have small configurations, those of torchvision their own, on small images.
`uir_tvm.compile(module, args=..., kwargs=...)` compiles each for uir-cpu, and torch computes the same inputs.
Right: no output differs by more than 1e-4 of its largest value, and integers are equal.

*Kernels* are distinct kernels by iGraph, *library* calls of libraries, *torch* operators that PyTorch
computes at run time, with the reason, and *s* the seconds of `compile`, `torch.export` included, on two cores
that other work shares.
"""


@attrs.frozen
class Counts:
    """Outcomes by kind; ``share`` is of right ones among what torch.export takes."""

    total: int
    right: int
    refused: int
    not_exported: int
    faults: int
    not_built: int

    @property
    def share(self) -> float:
        """Right ones among what torch.export takes; 0 where there is none."""
        taken = self.total - self.not_exported - self.not_built
        return self.right / taken if taken else 0.0


def counted(outcomes: Sequence[Outcome]) -> Counts:
    """How many of each kind."""
    states = Counter(outcome.state for outcome in outcomes)
    by_export = sum(o.state == REFUSED and o.by == "torch.export" for o in outcomes)
    return Counts(
        len(outcomes),
        states[RIGHT],
        states[REFUSED] - by_export,
        by_export,
        sum(states[state] for state in FAULTS),
        states[NOT_BUILT],
    )


def sentence(counts: Counts) -> str:
    """The counts in words."""
    said = (
        f"{counts.total} architectures: {counts.right} right, {counts.refused} refused by uir_tvm, "
        f"{counts.not_exported} by torch.export, {counts.faults} wrong, crashed or untyped"
    )
    said += f", {counts.not_built} not built" if counts.not_built else ""
    return f"{said}; {counts.share:.1%} of what torch.export takes are right"


def text(outcomes: Sequence[Outcome]) -> str:
    """The document."""
    parts = [_HEAD]
    for suite, cases in SUITES.items():
        found = {o.name: o for o in outcomes if o.suite == suite}
        if not found:
            continue
        parts.append(f"## {suite}\n\n{sentence(counted(list(found.values())))}.\n")
        for family in dict.fromkeys(case.family for case in cases.values()):
            rows = [found[name] for name, case in cases.items() if case.family == family and name in found]
            if rows:
                parts.append(f"### {family[0].upper()}{family[1:]}\n\n{_table(rows)}\n")
    return "\n".join(parts)


def _table(rows: Sequence[Outcome]) -> str:
    lines = [
        "| architecture | state | error | kernels | library | torch | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ran = row.kernels or row.library or row.opaque
        state = (
            row.state
            if row.state == RIGHT
            else f"{row.state}{f' by {row.by}' * bool(row.by)}: {_cell(row.reason)}"
        )
        figures = (
            f"{row.error:.0e}" if ran else "",
            f"{row.kernels}{f' (+{row.without_igraph} without iGraph)' * bool(row.without_igraph)}"
            if ran
            else "",
            str(row.library) if ran else "",
            "; ".join(f"{o['operator']} ×{o['count']}: {_cell(o['reason'])}" for o in row.opaque),
        )
        lines.append(f"| {row.name} | {state} | {' | '.join(figures)} | {row.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def _cell(reason: str) -> str:
    """A reason in one short line that no table takes for its own."""
    line = " ".join(reason.split()).replace("|", "/").replace("<", "&lt;")
    return line if len(line) <= 160 else line[:157] + "..."


def write(outcomes: Sequence[Outcome]) -> None:
    """Write the document."""
    DOCUMENT.write_text(text(outcomes))
