# SPDX-License-Identifier: Apache-2.0
"""What a cost model sees of an iGraph: a row for each iOp, as MetaSchedule has one for each store.

Amounts are logarithms, ``log2(1 + x)``, so that trees see ratios; shares stand as they are.  What a kernel
asks for is put beside what the hardware has: what was learned on one device says something of another.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..hardware.machine_model import (
    CONTRACT,
    IRREGULAR,
    LOAD,
    ONCHIP,
    REDUCE,
    STORE,
    SYNC,
    VECTOR,
    GraphCounts,
    IOpCounts,
    figure,
)
from ..igraph.iops import WORK
from ..igraph.nodes import HardwareModel, IGraph
from .analytic import PIPES, Estimate, estimate
from .sampled_counts import counts_of

_CATEGORIES = (LOAD, STORE, ONCHIP, VECTOR, REDUCE, CONTRACT, IRREGULAR, SYNC)
_LEVELS = ("dram", "sram")

#: Name of every column -> what it holds ("log": ``log2(1 + x)``): of the iOp, then of the whole graph.
COLUMNS: Mapping[str, str] = {
    **{f"is_{category}": f"whether its category is {category}" for category in _CATEGORIES},
    **{f"operations_{kind}": f"log of operations of a unit: {what}" for kind, what in WORK.items()},
    "runs": "log of its runs on a unit",
    "present": "share of them that have any element",
    "elements": "log of elements of a run",
    "rows": "log of rows of its largest slice",
    "cols": "log of columns of its largest slice",
    "filled": "share of vectors' bytes that hold elements of a row",
    "width": "bytes of an element",
    "words": "log of 4-byte words that vector instructions of a unit work on",
    "stages": "iterations in flight",
    "trips": "log of iterations of the loop that has them in flight",
    "depth": "loops around it",
    "group": "units that join in it",
    **{
        f"{level}_{way}": f"log of bytes of {level} that all units have {way}"
        for level in _LEVELS
        for way in ("read", "written")
    },
    "piece": "log of contiguous bytes, the shortest of its transfers",
    "pieces": "log of contiguous pieces of a unit",
    "whole_lines": "whether the pieces in dram are whole lines",
    "reg_bytes": "log of bytes that a unit reads from reg and writes to it",
    "iops": "log of iOps of the graph",
    "units": "log of units",
    "group_units": "units of a group",
    "vectors": "registers of a vector of a unit's code; 1: as the hardware has them",
    "busy": "units over those of the hardware, at most 1",
    "turns": "log of turns that units take",
    "last_turn": "share of units at work in the last turn",
    "slowest": "log of seconds of the slowest unit over those of an average one",
    **{
        f"{level}_share": f"share of the hardware's {level} at the fullest moment"
        for level in ("reg", "sram")
    },
    "tile": "log of bytes of reg at the fullest moment over what the hardware wants a tile to have",
    **{f"seconds_{pipe}": f"log of reckoned nanoseconds of a unit: {pipe}" for pipe in PIPES},
    "starts": "log of reckoned nanoseconds of a unit: starts",
    "memory": "log of reckoned nanoseconds of dram",
    "sync": "log of reckoned nanoseconds of meetings",
    "seconds": "log of reckoned nanoseconds of the launch",
}

NAMES: tuple[str, ...] = tuple(COLUMNS)


def features(graph: IGraph, hw: HardwareModel | None = None) -> np.ndarray:
    """The rows of a graph.

    Parameters
    ----------
    graph : IGraph
        Well-formed, as extracted: what the passes make of it is not known when schedules are compared.
    hw : HardwareModel, optional
        Default: that of the graph.

    Returns
    -------
    ndarray
        float32, (iOps, `COLUMNS`), all finite.
    """
    hw = graph.hardware if hw is None else hw
    counts = counts_of(graph)
    whole = _whole(counts, estimate(graph, hw), hw)
    rows = [{**_of_iop(counts, row, hw), **whole} for row in counts.rows]
    return np.array([[row[name] for name in NAMES] for row in rows], np.float32).reshape(-1, len(NAMES))


def _log(value: float) -> float:
    return float(np.log2(1.0 + max(value, 0.0)))


def _of_iop(counts: GraphCounts, row: IOpCounts, hw: HardwareModel) -> dict[str, float]:
    elements, line = counts.mean(row.elements), figure(hw, "line_bytes")
    operations = row.runs * elements * (2 if row.kind == "contract" else 1)
    moved = {f"{level}_{way}": 0.0 for level in _LEVELS for way in ("read", "written")}
    for transfer in row.transfers:
        way = "written" if transfer.write else "read"
        moved[f"{transfer.level}_{way}"] += row.runs * counts.units * counts.mean(transfer.bytes)
    size, vector = row.shape[1] * row.width, max(int(hw.vector_bytes), 1)
    pieces = [t.contiguous for t in row.transfers if t.level == "dram"]
    return {
        **{f"is_{category}": float(row.category == category) for category in _CATEGORIES},
        **{f"operations_{kind}": _log(operations if row.kind == kind else 0.0) for kind in WORK},
        "runs": _log(row.runs),
        "present": counts.mean(row.present),
        "elements": _log(elements),
        "rows": _log(row.shape[0]),
        "cols": _log(row.shape[1]),
        "filled": size / (-(-size // vector) * vector) if size else 0.0,
        "width": row.width,
        "words": _log(row.runs * elements * row.words),
        "stages": float(row.stages),
        "trips": _log(row.trips if row.stages > 1 else 0.0),
        "depth": float(row.depth),
        "group": float(row.group),
        **{name: _log(value) for name, value in moved.items()},
        "piece": _log(min((t.contiguous for t in row.transfers), default=0.0)),
        "pieces": _log(row.runs * counts.mean(row.present) * sum(t.segments for t in row.transfers)),
        "whole_lines": float(bool(pieces) and line > 0 and all(piece % line == 0 for piece in pieces)),
        "reg_bytes": _log(row.runs * sum(row.local_bytes)),
    }


def _whole(counts: GraphCounts, found: Estimate, hw: HardwareModel) -> dict[str, float]:
    """What all iOps of a graph have in common."""
    most = max(int(hw.num_groups) * int(hw.num_units), 1)
    turns, wanted = -(-counts.units // most), figure(hw, "tile_bytes")
    limits = {level: int(getattr(hw, f"{level}_bytes")) for level in ("reg", "sram")}
    return {
        "iops": _log(len(counts.rows)),
        "units": _log(counts.units),
        "group_units": float(counts.num_units),
        "vectors": counts.vectors,
        "busy": min(counts.units / most, 1.0),
        "turns": _log(turns),
        "last_turn": (counts.units - (turns - 1) * most) / most,
        "slowest": _log(found.slowest / found.unit) if found.unit else 0.0,
        **{f"{level}_share": counts.live[level] / limit if limit else 0.0 for level, limit in limits.items()},
        "tile": _log(counts.live["reg"] / wanted) if wanted else 0.0,
        **{f"seconds_{pipe}": _log(1e9 * value) for pipe, value in found.pipes.items()},
        "starts": _log(1e9 * found.starts),
        "memory": _log(1e9 * found.memory),
        "sync": _log(1e9 * found.sync),
        "seconds": _log(1e9 * found.seconds),
    }
