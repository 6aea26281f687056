# SPDX-License-Identifier: Apache-2.0
"""One table for people, and what it says in a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .contenders import EAGER, NAMES, OURS, PEERS


def speedup(row: dict[str, Any], peers: Sequence[str] = PEERS) -> float | None:
    """The best peer's time over ours; None where either was not measured, or ours is the host model's."""
    times = {} if row.get("modelled") else row.get("times", {})
    best = min((times[name]["median_us"] for name in peers if name in times), default=None)
    return best / times[OURS]["median_us"] if best is not None and OURS in times else None


def geometric_mean(numbers: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else None


def summary(rows: dict[str, dict[str, Any]], ceilings: dict[str, float]) -> dict[str, Any]:
    """The figures that the aims are stated in."""
    operators = [row for row in rows.values() if row["group"] == "operator"]
    models = [row for row in rows.values() if row["group"] == "model"]
    faster = [ratio for row in operators if (ratio := speedup(row)) is not None]
    copy = ceilings.get("copy_bytes_per_second")
    shares = [
        row["bytes_per_second"] / copy
        for row in operators
        if copy and row.get("streaming") and row.get("bytes", 0) >= 64 << 20 and "bytes_per_second" in row
    ]
    return {
        "right": sum(bool(row.get("right")) for row in rows.values()),
        "cases": len(rows),
        "operators_geomean_over_best_peer": geometric_mean(faster),
        "operators_lowest_over_best_peer": min(faster, default=None),
        "streaming_lowest_share_of_copy": min(shares, default=None),
        "models_over_eager": {
            row["name"]: ratio for row in models if (ratio := speedup(row, [EAGER])) is not None
        },
    }


def _microseconds(row: dict[str, Any], name: str) -> str:
    timing = row.get("times", {}).get(name)
    return "" if timing is None else f"{timing['median_us']:.1f}" + ("" if timing["graph"] else "*")


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def markdown(result: dict[str, Any]) -> str:
    """The table, with what it was measured on above and the summary below."""
    rows, ceilings = result["cases"], result["ceilings"]
    copy = ceilings.get("copy_bytes_per_second")
    lines = [f"# uir-cuda on {result['machine']['device']}", ""]
    if result["model"]:
        lines += ["Host model: times are of the model on this CPU, and say nothing of a GPU.", ""]
    lines += [f"- {key}: {value}" for key, value in result["machine"].items()]
    lines += [f"- {key}: {value:.4g}" for key, value in ceilings.items()]
    names = [name for name in NAMES if any(name in row.get("times", {}) for row in rows.values())]
    times = [f"{name}, us" for name in names]
    head = ["case", "error", "right", *times, "GB/s", "of copy", "over best", "over eager"]
    lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, row in rows.items():
        if "failed" in row:
            lines.append(f"| {name} | {row['failed'].splitlines()[0][:120]} | no |" + " |" * (len(head) - 3))
            continue
        rate = row.get("bytes_per_second")
        cells = [
            name,
            f"{row['error']:.1e}",
            "yes" if row["right"] else "NO",
            *(_microseconds(row, contender) for contender in names),
            "" if rate is None else f"{rate / 1e9:.0f}",
            "" if rate is None or not copy or not row.get("streaming") else f"{rate / copy:.0%}",
            _ratio(speedup(row)),
            _ratio(speedup(row, [EAGER])),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "Medians of rounds in turn, of replayed CUDA graphs; * no graph: calls one by one, or jax's program.",
        "",
    ]
    lines += [f"- {key}: {value}" for key, value in result["summary"].items()]
    return "\n".join(lines) + "\n"
