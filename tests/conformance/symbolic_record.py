# SPDX-License-Identifier: Apache-2.0
"""What each target makes of functions with open axes: the record, and the page that shows it.

``python scripts/sweep_open_axes.py --write`` makes both anew.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping

from uir_tvm.schedules import fallback
from uir_tvm.target.registry import TARGETS

from .symbolic import Form, widest

RECORD = pathlib.Path(__file__).with_name("symbolic.json")
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "open-axes.md"
#: A form on a target: ``recipe`` and ``least`` (the least size) of its kernel, or ``error`` and ``reason``.
Entry = dict[str, str | int]
#: By function, form and target.
Record = dict[str, dict[str, dict[str, Entry]]]

ABOUT = """\
# Open axes

What becomes of an operator when one of its axes is a size that is known only at the call, each axis in turn,
then all: the examples of all recipes, and further operators. `n`, `m`, `k` and so on are sizes from 0 to at
least what the example has; where a kernel begins at 1 the table says so. A recipe's name says that **one
kernel serves all sizes**: proved for all of them by the verifier, printed once, and compared with NumPy and
with the interpreter at sizes of 0, 1, 2, around its tiles, at a prime and at the greatest. "One unit" is such
a kernel that one unit walks alone. What has none would have a number, and its refusal listed below: it is
compiled for the sizes of each call then (in a model), or left to TVM's own lowering, which takes any shape
(`tvm.build`).

`tests/conformance/test_symbolic.py` holds the table to the code: a sample in each run of the suite, all of it
in the campaign. `python scripts/sweep_open_axes.py --write` makes it anew.
"""


def load() -> Record:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def entry_of(form: Form, target: str) -> Entry:
    """What a target makes of a form now."""
    best, made = widest(form, target)
    refused = made.refused
    if refused is not None:
        return dict(refused)
    return {"recipe": str(made.record.recipe), "least": best.least}


def differs(found: Entry, known: Entry) -> bool:
    """Whether a kernel came or went; recipes and reasons may depend on the host that is compiled for."""
    return ("recipe" in found, found.get("least"), found.get("error")) != (
        "recipe" in known,
        known.get("least"),
        known.get("error"),
    )


def write(record: Record) -> None:
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    DOCUMENT.write_text(rendered(record))


def rendered(record: Record) -> str:
    """The page of a record."""
    reasons: dict[str, int] = {}
    rows = [
        f"| {function if not number else ''} | {_code(label)} | "
        + " | ".join(_cell(entries[target], reasons) for target in TARGETS)
        + " |"
        for function, forms in record.items()
        for number, (label, entries) in enumerate(forms.items())
    ]
    entries = [
        entry for forms in record.values() for by_target in forms.values() for entry in by_target.values()
    ]
    kernels = sum("recipe" in entry for entry in entries)
    head = "| operator | inputs | " + " | ".join(TARGETS) + " |\n" + "|---" * (2 + len(TARGETS)) + "|\n"
    told = "\n".join(f"{number}. {reason}" for reason, number in reasons.items()) or "None is refused."
    count = f"One kernel for all sizes: {kernels} of {len(entries)}.\n"
    return f"{ABOUT}\n{count}\n{head}" + "\n".join(rows) + f"\n\n## Reasons\n\n{told}\n"


def _code(label: str) -> str:
    return f"`{label}`"


def _cell(entry: Mapping[str, str | int], reasons: dict[str, int]) -> str:
    if "recipe" not in entry:
        return f"[{reasons.setdefault(_reason(entry), len(reasons) + 1)}]"
    name = "one unit" if entry["recipe"] == fallback.RECIPE.hero else str(entry["recipe"])
    return name + (f", from {entry['least']}" if entry["least"] else "")


def _reason(entry: Mapping[str, str | int]) -> str:
    return f"`{entry['error']}`: {entry['reason']}"
