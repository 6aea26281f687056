# SPDX-License-Identifier: Apache-2.0
"""The document of operators: made of the record of a sweep, which says how each runs on every target."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from uir_tvm.target.registry import TARGETS

from . import UNCOVERED, operators

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORD = pathlib.Path(__file__).with_name("record.json")
DOCUMENT = ROOT / "docs" / "operators.md"
WORDS = {"igraph": "iGraph", "library": "library", "host": "host", "view": "no kernel", "refused": "refused"}
#: operator -> dtype -> target -> [ways, reason]
Record = Mapping[str, Mapping[str, Mapping[str, Any]]]

HEAD = """# Operators

What becomes of every Relax operator on every target. Written by `scripts/sweep_operators.py --document`,
which compiles one case of each in these dtypes: the cases are `tests/conformance/operators`, over all
dtypes and ranks 0 to 6, and are held against what stock TVM builds for LLVM.

- *iGraph*: the target's own kernel. *library*: its library. *no kernel*: a view or a constant.
- *host*: TVM's own lowering on the host, with copies where the target is a device; the report of the
  executable names the kernel and the reason.
- *refused*: a typed error; the reason is below.

Tensors without elements are legal everywhere and need no kernel.

"""


def load() -> Record:
    """The record of the last sweep."""
    return json.loads(RECORD.read_text())


def save(record: Record) -> None:
    """Write the record, and the document of it."""
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    DOCUMENT.write_text(rendered(record))


def rendered(record: Record) -> str:
    """The text of the document."""
    reasons: dict[str, int] = {}
    lines = [
        f"| operator | dtypes | {' | '.join(TARGETS)} |",
        "|---|---|" + "---|" * len(TARGETS),
    ]
    for operator in sorted(record):
        for dtypes, cells in _rows(record[operator], reasons):
            lines.append(f"| `{operator}` | {dtypes} | {' | '.join(cells)} |")
    text = HEAD + "\n".join(lines) + "\n\n## Reasons\n"
    text += "".join(f"\n{number}. {reason}" for reason, number in reasons.items()) + "\n"
    return text + "\n## Operators without a case\n\n" + "\n".join(_uncovered(record)) + "\n"


def _rows(dtypes: Mapping[str, Any], reasons: dict[str, int]) -> Iterator[tuple[str, list[str]]]:
    """Dtypes that run alike, and the cells of the targets."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for dtype, targets in dtypes.items():
        cells = tuple(_cell(*targets[target], reasons) for target in TARGETS)
        alike.setdefault(cells, []).append(dtype)
    for cells, names in alike.items():
        yield ", ".join(sorted(names)), list(cells)


def _cell(ways: list[str], reason: str, reasons: dict[str, int]) -> str:
    text = ", ".join(WORDS[way] for way in ways)
    if not reason:
        return text
    return f"{text} [{reasons.setdefault(reason, len(reasons) + 1)}]"


def _uncovered(record: Record) -> Iterator[str]:
    for operator in operators():
        reason = why_uncovered(operator)
        if operator not in record and reason:
            yield f"- `{operator}`: {reason}"


def why_uncovered(operator: str) -> str:
    """Why an operator has no case; empty where that is not said."""
    return next((why for start, why in UNCOVERED.items() if operator.startswith(start)), "")
