# SPDX-License-Identifier: Apache-2.0
"""The document of ONNX's operators: made of the record of a sweep, which says how each case ended."""

from __future__ import annotations

import json
import pathlib
from collections import Counter
from collections.abc import Iterable, Mapping

from .cases import load
from .run import PASSED, REFUSED, STATES, Outcome

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = pathlib.Path(__file__).with_name("record.json")
DOCUMENT = ROOT / "docs" / "onnx-operators.md"
#: group -> case -> [state, reason]
Record = Mapping[str, Mapping[str, list[str]]]

HEAD = """# Operators of ONNX

How the ONNX standard's own backend tests (`onnx.backend.test` of the pinned package) end on `uir-cpu`.
Written by `scripts/sweep_onnx.py --document`. Results are held against the standard's expected outputs by
the standard's own comparison; in float16 two ULP are allowed, as the standard does in bfloat16.

- *passed*: as the standard says. *refused*: a typed error before anything runs; the reason is below.
- *wrong*, *untyped* (an exception without a type of ours), *crashed* and *hung* are faults of ours.

"""


def reason_of(outcome: Outcome) -> str:
    """Why a case is refused: the error without its place in the model."""
    if outcome.state == PASSED:
        return ""
    return outcome.text.splitlines()[0] if outcome.text else ""


def load_record() -> dict[str, dict[str, list[str]]]:
    """The record of the last sweep."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def save(outcomes: Iterable[Outcome]) -> None:
    """Bring the record and its document up to date; what is no case any more leaves both."""
    old = {name: row for rows in load_record().values() for name, row in rows.items()}
    found = {o.name: [o.state, reason_of(o)] for o in outcomes}
    record: dict[str, dict[str, list[str]]] = {}
    for name, case in load().items():
        entry = found.get(name) or old.get(name)
        if entry:
            record.setdefault(case.group, {})[name] = entry
    rows = [f"{json.dumps(name)}: {json.dumps(record[name], sort_keys=True)}" for name in sorted(record)]
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")  # a line for each group
    DOCUMENT.write_text(rendered(record))


def rendered(record: Record) -> str:
    """The text of the document."""
    reasons: dict[str, int] = {}
    total: Counter[str] = Counter()
    lines = []
    for group in sorted(record):
        rows = [record[group][name] for name in sorted(record[group])]
        states = Counter(state for state, _ in rows)
        total += states
        refused = Counter(
            reasons.setdefault(reason, len(reasons) + 1) for state, reason in rows if state == REFUSED
        )
        cells = [str(states[state] or "") for state in STATES]
        cells[1] += "".join(f" [{number}]" for number in refused)
        lines.append(f"| `{group}` | " + " | ".join(cells) + " |")
    sums = " | ".join(f"**{total[state]}**" for state in STATES)
    table = [
        "| operator | " + " | ".join(STATES) + " |",
        "|---|" + "---|" * len(STATES),
        f"| all {sum(total.values())} | {sums} |",
        *lines,
    ]
    text = HEAD + "\n".join(table) + "\n\n## Reasons\n"
    return text + "".join(f"\n{number}. {reason}" for reason, number in reasons.items()) + "\n"
