# SPDX-License-Identifier: Apache-2.0
"""The document of operators: made of the record of a sweep, which says how each runs on every target."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from uir_tvm.target.registry import TARGETS

from . import UNCOVERED, operators
from .case import ALL, FLOATS, INTEGERS

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORD = pathlib.Path(__file__).with_name("record.json")
DOCUMENT = ROOT / "docs" / "operators.md"
WORDS = {
    "igraph": "iGraph",
    "library": "library",
    "host": "host",
    "view": "no kernel",
    "refused": "refused",
    "untaken": "—",
}
#: target -> (ways, reason)
Cells = Mapping[str, tuple[tuple[str, ...], str]]
#: operator -> dtype -> cells
Record = dict[str, dict[str, Cells]]
#: One word for dtypes that a row names all; the first that fits.
FAMILIES: dict[str, tuple[str, ...]] = {
    "all": ALL,
    "floats": tuple(name for name in FLOATS if not name.startswith("float8")),
    "float8": tuple(name for name in FLOATS if name.startswith("float8")),
    "integers": INTEGERS,
}

HEAD = f"""# Operators

What becomes of every Relax operator on every target, in every dtype. Written by
`scripts/sweep_operators.py --document`, which compiles one case of each: the cases are
`tests/conformance/operators`, over all dtypes and ranks 0 to 6, and are held against what stock TVM
builds for LLVM.

- *iGraph*: the target's own kernel. *library*: its library. *no kernel*: a view or a constant.
- *host*: TVM's own lowering on the host, with copies where the target is a device; the report of the
  executable names the kernel and the reason.
- *refused*: a typed error, and stock TVM builds it neither; the reason is below. *—*: Relax takes no such
  call.

*floats* are {", ".join(FAMILIES["floats"])}; *float8* are {", ".join(FAMILIES["float8"])}; *integers* are
{", ".join(INTEGERS)}; *all* are all of these and bool. An operator has no row for a dtype in which it means
nothing (a sine of integers, a shift of floats). Tensors without elements are legal everywhere and need no
kernel.

"""


def load() -> Record:
    """The record of the last sweep."""
    found: Record = {}
    for operator, rows in json.loads(RECORD.read_text()).items():
        for row in rows:
            cells = {target: (tuple(row[target][0]), row[target][1]) for target in TARGETS}
            found.setdefault(operator, {}).update(dict.fromkeys(row["dtypes"], cells))
    return found


def save(record: Record) -> None:
    """Write the record, one row of the table a line, and the document of it."""
    lines = []
    for operator in sorted(record):
        rows = [json.dumps({"dtypes": dtypes, **cells}) for dtypes, cells in _alike(record[operator])]
        lines.append(json.dumps(operator) + ": [\n  " + ",\n  ".join(rows) + "\n ]")
    RECORD.write_text("{\n " + ",\n ".join(lines) + "\n}\n")
    DOCUMENT.write_text(rendered(record))


def rendered(record: Record) -> str:
    """The text of the document."""
    reasons: dict[str, int] = {}
    lines = [
        f"| operator | dtypes | {' | '.join(TARGETS)} |",
        "|---|---|" + "---|" * len(TARGETS),
    ]
    for operator in sorted(record):
        for dtypes, cells in _alike(record[operator]):
            row = [_cell(*cells[target], reasons) for target in TARGETS]
            lines.append(f"| `{operator}` | {named(dtypes)} | {' | '.join(row)} |")
    text = HEAD + "\n".join(lines) + "\n\n## Reasons\n"
    text += "".join(f"\n{number}. {reason}" for reason, number in reasons.items()) + "\n"
    return text + "\n## Operators without a case\n\n" + "\n".join(_uncovered(record)) + "\n"


def listed(text: str) -> set[tuple[str, str]]:
    """The operators and dtypes that a document has rows of."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", text, re.MULTILINE)
    return {
        (operator, dtype)
        for operator, words in rows
        for word in words.split(", ")
        for dtype in FAMILIES.get(word, (word,))
    }


def named(dtypes: Collection[str]) -> str:
    """Dtypes in few words."""
    rest, words = set(dtypes), []
    for word, family in FAMILIES.items():
        if rest.issuperset(family):
            words.append(word)
            rest -= set(family)
    return ", ".join([*words, *(dtype for dtype in ALL if dtype in rest)])


def _alike(dtypes: Mapping[str, Cells]) -> Iterator[tuple[list[str], Cells]]:
    """Dtypes that run alike on all targets."""
    found: dict[Any, list[str]] = {}
    for dtype in sorted(dtypes, key=ALL.index):
        found.setdefault(tuple(dtypes[dtype][target] for target in TARGETS), []).append(dtype)
    for cells, names in found.items():
        yield names, dict(zip(TARGETS, cells, strict=True))


def _cell(ways: tuple[str, ...], reason: str, reasons: dict[str, int]) -> str:
    text = ", ".join(WORDS[way] for way in ways)
    if not reason:
        return text
    return f"{text} [{reasons.setdefault(reason, len(reasons) + 1)}]"


def _uncovered(record: Mapping[str, Any]) -> Iterator[str]:
    for operator in operators():
        reason = why_uncovered(operator)
        if operator not in record and reason:
            yield f"- `{operator}`: {reason}"


def why_uncovered(operator: str) -> str:
    """Why an operator has no case; empty where that is not said."""
    return next((why for start, why in UNCOVERED.items() if operator.startswith(start)), "")
