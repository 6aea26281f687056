# SPDX-License-Identifier: Apache-2.0
"""The document of PyTorch's operators: made of the record of a sweep, which says how each call ended."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterable, Mapping

from .calls import Call
from .run import OUTSIDE, RIGHT, Outcome

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORD = pathlib.Path(__file__).with_name("record.json")
DOCUMENT = ROOT / "docs" / "torch-operators.md"
#: function -> inputs -> [state, reason]
Record = Mapping[str, Mapping[str, list[str]]]

HEAD = """# Operators of PyTorch

What becomes of PyTorch's functions on `uir-cpu`, through `torch.export`. Written by
`scripts/sweep_torch.py --document`: the calls are `tests/frontend/torch_sweep`, over dtypes, ranks, views,
empty tensors and edge values (NaN, infinities, zeros, halves, extremes), and each result is held against
PyTorch's.

- *works*: as PyTorch computes it, in all of these dtypes. *refused*: a typed error; the reason is below.
- Dtypes are those of the inputs; what PyTorch or `torch.export` itself refuses is not listed.
- The sign of a NaN tells nothing: `copysign` and `signbit` take it as positive.

"""


def function_and_inputs(call: Call) -> tuple[str, str]:
    """The parts of a call's name: ``add alpha``, ``f16[3] f32[3]``."""
    function, _, inputs = call.name.rpartition(" (")
    return function, inputs[:-1]


def reason_of(outcome: Outcome) -> str:
    """Why a call is refused: the error without its place in the model."""
    if outcome.state == RIGHT:
        return ""
    what, _, rest = outcome.text.partition(" where: ")
    remedy = rest.partition(" remedy: ")[2].partition("; pass custom_convert_map")[0]
    return f"{what}; {remedy}" if remedy and not remedy.startswith("pass custom_convert_map") else what


def load() -> dict[str, dict[str, list[str]]]:
    """The record of the last sweep."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def save(outcomes: Iterable[Outcome], calls: Iterable[Call]) -> None:
    """Bring the record and its document up to date; what is no call any more leaves both."""
    old = load()
    found = {o.call.name: [o.state, reason_of(o)] for o in outcomes}
    record: dict[str, dict[str, list[str]]] = {}
    for call in calls:
        function, inputs = function_and_inputs(call)
        entry = found.get(call.name) or old.get(function, {}).get(inputs)
        if entry:
            record.setdefault(function, {})[inputs] = entry
    rows = [f"{json.dumps(name)}: {json.dumps(record[name], sort_keys=True)}" for name in sorted(record)]
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")  # a line for each function
    DOCUMENT.write_text(rendered(record))


def rendered(record: Record) -> str:
    """The text of the document."""
    reasons: dict[str, int] = {}
    lines = ["| function | works | refused |", "|---|---|---|"]
    for function in sorted(record):
        works: set[str] = set()
        refused: dict[str, set[str]] = {}
        for inputs, (state, reason) in sorted(record[function].items()):
            if state != OUTSIDE:
                (works if state == RIGHT else refused.setdefault(reason, set())).update(_dtypes(inputs))
        cells = [
            f"{_listed(dtypes)} [{reasons.setdefault(reason, len(reasons) + 1)}]"
            for reason, dtypes in refused.items()
        ]
        if works or cells:
            lines.append(f"| `{function}` | {_listed(works)} | {'; '.join(cells)} |")
    text = HEAD + "\n".join(lines) + "\n\n## Reasons\n"
    return text + "".join(f"\n{number}. {reason}" for reason, number in reasons.items()) + "\n"


def _dtypes(inputs: str) -> list[str]:
    """The dtypes of a call's inputs: of several that differ, one by one."""
    return re.findall(r"(\w+)\[", inputs)


def _listed(dtypes: Iterable[str]) -> str:
    return ", ".join(sorted(set(dtypes)))
