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
#: target -> case -> [state, reason], of the sample that runs on devices
DEVICES = pathlib.Path(__file__).with_name("devices.json")
CPU = "uir-cpu"
#: group -> case -> [state, reason]
Record = Mapping[str, Mapping[str, list[str]]]

HEAD = """# Operators of ONNX

How the ONNX standard's own backend tests (`onnx.backend.test` of the pinned package) end on `uir-cpu`.
Written by `scripts/sweep_onnx.py --document`. Results are held against the standard's expected outputs by
the standard's own comparison; in float16 two ULP are allowed, as the standard does in bfloat16.

- *passed*: as the standard says. *refused*: a typed error before anything runs; the reason is below.
- *wrong*, *untyped* (an exception without a type of ours), *crashed* and *hung* are faults of ours.

"""


DEVICES_HEAD = """
## On devices

One case of every operator and dtype of its first input, of those that pass on `uir-cpu`, on the host model of
each device: `scripts/sweep_onnx.py --sample --target TARGET --document`. What no kernel of the device takes
runs on the host. `uir-bang` divides within some ULP (see numerics.md), so that a number halfway between two
bytes may be quantised to either: bytes may differ by one there.

"""


def reason_of(outcome: Outcome) -> str:
    """Why a case is refused: the error without its place in the model."""
    if outcome.state == PASSED:
        return ""
    return outcome.text.splitlines()[0] if outcome.text else ""


def load_record() -> dict[str, dict[str, list[str]]]:
    """The record of the last sweep."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def load_devices() -> dict[str, dict[str, list[str]]]:
    """The record of the last sweep of each device."""
    return json.loads(DEVICES.read_text()) if DEVICES.exists() else {}


#: What the document says of quantised models.
QUANTISED = """\
## Quantised models

QuantizeLinear and DequantizeLinear around MatMul, Gemm and Conv, QLinearMatMul, QLinearConv,
MatMulInteger, ConvInteger and DynamicQuantizeLinear are products of integers on every target, and values
stay bytes between them; small convolutions are computed in floats on devices
([kernel-graph.md](kernel-graph.md), "Products of bytes"). Weights
of MatMulNBits (codes of 2 bits are kept in 4; where blocks are not full, or a group index is given, columns
of A are brought into the order of whole groups), and of
DequantizeLinear in blocks, by outputs or as a whole, stay packed on every target
(`tests/conformance/test_packed_weights.py`), whether what they are multiplied with is quantised or not.
Scales that are no finite numbers, scales of 0 and below by which is divided, scales and zero points that
do not fit the axis or the blocks, and an axis that is not there are a `QuantizationError`.
`com.microsoft` operators of bytes (QGemm, QLinearAdd) are refused: let the quantiser write QDQ.
"""


def save(outcomes: Iterable[Outcome], target: str = CPU) -> None:
    """Bring the record and its document up to date; what is no case any more leaves both."""
    if target == CPU:
        _save_record(outcomes)
    else:
        devices = load_devices()
        devices[target] = {o.name: [o.state, reason_of(o)] for o in outcomes}
        rows = [
            f"{json.dumps(name)}: {json.dumps(devices[name], sort_keys=True)}" for name in sorted(devices)
        ]
        DEVICES.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    DOCUMENT.write_text(rendered(load_record(), load_devices()))


def _save_record(outcomes: Iterable[Outcome]) -> None:
    old = {name: row for rows in load_record().values() for name, row in rows.items()}
    found = {o.name: [o.state, reason_of(o)] for o in outcomes}
    record: dict[str, dict[str, list[str]]] = {}
    for name, case in load().items():
        entry = found.get(name) or old.get(name)
        if entry:
            record.setdefault(case.group, {})[name] = entry
    rows = [f"{json.dumps(name)}: {json.dumps(record[name], sort_keys=True)}" for name in sorted(record)]
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")  # a line for each group


def rendered(record: Record, devices: Record) -> str:
    """The text of the document."""
    return _on_cpu(record) + "\n" + QUANTISED + (_on_devices(devices) if devices else "")


def _on_devices(devices: Record) -> str:
    lines = ["| target | " + " | ".join(STATES) + " |", "|---|" + "---|" * len(STATES)]
    listed = []
    for target in sorted(devices):
        states = Counter(state for state, _ in devices[target].values())
        lines.append(f"| `{target}` | " + " | ".join(str(states[state] or "") for state in STATES) + " |")
        listed += [
            f"- `{target}`, `{name}`: {state}: {reason}"
            for name, (state, reason) in sorted(devices[target].items())
            if state != PASSED
        ]
    return (
        DEVICES_HEAD + "\n".join(lines) + "\n" + "".join(f"\n{line}" for line in listed) + "\n" * bool(listed)
    )


def _on_cpu(record: Record) -> str:
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
