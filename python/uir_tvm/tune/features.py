# SPDX-License-Identifier: Apache-2.0
"""What a learned cost model sees of a graph: a fixed row of numbers, which means the same on every target.

Counts and sizes stand as ``log2(1 + x)``, so that a model sees ratios; shares stand as they are.  What a
kernel asks for is put beside what the hardware has, so that what was learned on one device says something of
another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..explain.analytic import PIPES, Estimate, estimate
from ..explain.sampled_counts import counts_of
from ..hardware.machine_model import (
    CONTRACT,
    IRREGULAR,
    LOAD,
    NOTHING,
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
from ..target import registry

#: Categories of iOps whose runs are counted.
_COUNTED = (LOAD, STORE, ONCHIP, VECTOR, REDUCE, CONTRACT, IRREGULAR, SYNC)
#: Kinds of target that a model may tell apart; another kind has zeros.
KINDS = tuple(sorted(spec.kind for spec in registry.TARGETS.values()))
#: Figures of hardware models, 0 where a model has none.
_FIGURES = (
    "clock_hz",
    "dram_bytes_per_second",
    "cluster_bytes_per_second",
    "l1_bytes",
    "l2_bytes",
    "line_bytes",
    "tile_bytes",
    "transfer_bytes",
    "sms",
    "registers_per_sm",
    "late_stores",
    "move_stages",
)
_LEVELS = ("dram", "sram", "reg")

#: Name of every column -> what it holds ("log": ``log2(1 + x)``).
COLUMNS: Mapping[str, str] = {
    **{
        f"{level}_{way}": f"log of bytes of {level} that iOps of all units have {way}"
        for level in _LEVELS
        for way in ("read", "written")
    },
    "dram_unit": "log of bytes between dram and a unit",
    "dram_parameters": "log of bytes of all pointers in dram",
    "dram_again": "log of bytes between dram and units over those of all pointers in dram",
    **{f"operations_{kind}": f"log of operations of a unit: {what}" for kind, what in WORK.items()},
    "words": "log of 4-byte words that vector instructions of a unit work on",
    "intensity": "log of operations over bytes of dram",
    **{f"runs_{category}": f"log of iOps that a unit runs: {category}" for category in _COUNTED},
    **{f"static_{category}": f"iOps of the graph: {category}" for category in _COUNTED},
    **{
        f"{category}_bytes": f"log of bytes of a run, mean over runs: {category}"
        for category in (LOAD, STORE, ONCHIP)
    },
    **{
        f"{category}_piece": f"log of contiguous bytes, mean over bytes: {category}"
        for category in (LOAD, STORE, ONCHIP)
    },
    **{
        f"{category}_least_piece": f"log of contiguous bytes of the shortest: {category}"
        for category in (LOAD, STORE)
    },
    **{f"{category}_pieces": f"log of contiguous pieces of a unit: {category}" for category in (LOAD, STORE)},
    "line_share": "share of bytes of dram in pieces that are whole lines",
    "short_share": "share of bytes of dram in transfers below the size that reaches full bandwidth",
    "vector_elements": "log of elements of a vector iOp, mean over runs",
    "vector_cols": "log of columns of its slices, mean over runs",
    "vector_rows": "log of rows of its slices, mean over runs",
    "vector_filled": "share of vectors' bytes that hold elements of slices' rows",
    "reduce_cols": "log of columns of what a reduction reads, mean over runs",
    "reduce_rows": "log of rows of what a reduction reads, mean over runs",
    "contract_elements": "log of multiplications of a contraction, mean over runs",
    "guarded": "share of elements of slices that guards leave out",
    "width": "bytes of an element, mean over what is computed and moved",
    "loops": "loops of the graph",
    "depth": "loops around the innermost iOp",
    "trips": "log of the longest loop nest of a unit",
    "stages": "most iterations in flight",
    "flight_share": "share of bytes of dram that loops with iterations in flight move",
    "flight_trips": "log of iterations of these loops, mean over bytes",
    "group_share": "share of runs that units of a group join in",
    "units": "log of units",
    "vectors": "registers of a vector of a unit's code; 1: as the hardware has them",
    "groups": "log of groups",
    "group_units": "units of a group",
    "busy": "units over those of the hardware, at most 1",
    "turns": "log of turns that units take",
    "last_turn": "share of units at work in the last turn",
    "slowest": "log of seconds of the slowest unit over those of an average one",
    **{f"{level}_held": f"log of bytes of {level}, all pointers side by side" for level in ("reg", "sram")},
    **{f"{level}_live": f"log of bytes of {level} at the fullest moment" for level in ("reg", "sram")},
    **{
        f"{level}_share": f"share of the hardware's {level} at the fullest moment"
        for level in ("reg", "sram")
    },
    "tile_share": "log of bytes of reg at the fullest moment over what the hardware wants a tile to have",
    **{f"seconds_{pipe}": f"log of reckoned nanoseconds of a unit: {pipe}" for pipe in PIPES},
    **{f"balance_{pipe}": f"their share of all pipes: {pipe}" for pipe in PIPES},
    "balance_starts": "share of reckoned time that starts take",
    "seconds_memory": "log of reckoned nanoseconds of dram",
    "memory_share": "the same over the reckoned time",
    "seconds_sync": "log of reckoned nanoseconds of meetings",
    "seconds": "log of reckoned nanoseconds of the launch",
    "hw_groups": "log of groups of the hardware",
    "hw_units": "log of units of a group of the hardware",
    "hw_reg": "log of bytes of reg",
    "hw_sram": "log of bytes of sram",
    "hw_vector": "log of bytes of a vector",
    **{f"hw_{name}": f"log of the figure {name}" for name in _FIGURES},
    **{f"is_{kind}": f"whether the hardware is of the kind {kind}" for kind in KINDS},
}

NAMES: tuple[str, ...] = tuple(COLUMNS)


def features(graph: IGraph, hw: HardwareModel | None = None) -> np.ndarray:
    """The row of a graph.

    Parameters
    ----------
    graph : IGraph
        Well-formed, as extracted: what the passes make of it is not known when schedules are compared.
    hw : HardwareModel, optional
        Default: that of the graph.

    Returns
    -------
    ndarray
        float32, one number for each of `COLUMNS`, all finite.
    """
    hw = graph.hardware if hw is None else hw
    counts = counts_of(graph)
    found: dict[str, float] = {"vectors": counts.vectors}
    for part in (
        _traffic(counts),
        _runs(counts),
        _pieces(counts, hw),
        _widths(counts, hw),
        _loops(counts),
        _units(counts, hw),
        _memory(counts, hw),
        _reckoned(estimate(graph, hw)),
        _hardware(hw),
    ):
        found.update(part)
    return np.array([found[name] for name in NAMES], np.float32)


def _log(value: float) -> float:
    return float(np.log2(1.0 + max(value, 0.0)))


def _mean(pairs: Iterable[tuple[float, float]]) -> float:
    """The mean of (value, weight); 0 of nothing."""
    total, weight = 0.0, 0.0
    for value, share in pairs:
        total, weight = total + value * share, weight + share
    return total / weight if weight else 0.0


def _moved(counts: GraphCounts, row: IOpCounts, level: str = "dram") -> float:
    """Bytes of an average unit."""
    return row.runs * sum(counts.mean(t.bytes) for t in row.transfers if t.level == level)


def _traffic(counts: GraphCounts) -> dict[str, float]:
    sums = {f"{level}_{way}": 0.0 for level in _LEVELS for way in ("read", "written")}
    for row in counts.rows:
        for transfer in row.transfers:
            way = "written" if transfer.write else "read"
            sums[f"{transfer.level}_{way}"] += row.runs * counts.mean(transfer.bytes)
        sums["reg_read"] += row.runs * row.local_bytes[0]
        sums["reg_written"] += row.runs * row.local_bytes[1]
    unit = sums["dram_read"] + sums["dram_written"]
    parameters = sum(counts.parameters.values())
    out = {name: _log(value * counts.units) for name, value in sums.items()}
    out["dram_unit"], out["dram_parameters"] = _log(unit), _log(parameters)
    out["dram_again"] = _log(unit * counts.units / parameters) if parameters else 0.0
    operations = dict.fromkeys(WORK, 0.0)
    words = 0.0
    for row in counts.rows:
        amount = row.runs * counts.mean(row.elements)
        if row.kind:
            operations[row.kind] += amount * (2 if row.kind == "contract" else 1)
        if row.category in (VECTOR, REDUCE, IRREGULAR):
            words += amount * row.words
    out.update({f"operations_{kind}": _log(value) for kind, value in operations.items()})
    out["words"] = _log(words)
    out["intensity"] = _log(sum(operations.values()) / unit) if unit else 0.0
    return out


def _runs(counts: GraphCounts) -> dict[str, float]:
    runs, static = dict.fromkeys(_COUNTED, 0.0), dict.fromkeys(_COUNTED, 0.0)
    for row in counts.rows:
        if row.category != NOTHING:
            runs[row.category] += row.runs * counts.mean(row.present)
            static[row.category] += 1.0
    out = {f"runs_{name}": _log(value) for name, value in runs.items()}
    out.update({f"static_{name}": value for name, value in static.items()})
    out["group_share"] = _mean((float(row.group > 1), row.runs) for row in counts.rows)
    return out


def _pieces(counts: GraphCounts, hw: HardwareModel) -> dict[str, float]:
    """Of transfers: how much one moves, in how many pieces."""
    out: dict[str, float] = {}
    for category in (LOAD, STORE, ONCHIP):
        rows = [row for row in counts.rows if row.category == category]
        sizes, pieces, least, count = [], [], [], 0.0
        for row in rows:
            for transfer in row.transfers:
                moved, present = counts.mean(transfer.bytes), counts.mean(row.present)
                if moved <= 0 or transfer.level == "sram" and category != ONCHIP:
                    continue
                sizes.append((_log(moved / present), row.runs * present))
                pieces.append((_log(transfer.contiguous), row.runs * moved))
                least.append(_log(transfer.contiguous))
                count += row.runs * present * transfer.segments
        out[f"{category}_bytes"], out[f"{category}_piece"] = _mean(sizes), _mean(pieces)
        if category != ONCHIP:
            out[f"{category}_least_piece"] = min(least, default=0.0)
            out[f"{category}_pieces"] = _log(count)
    line, enough = figure(hw, "line_bytes"), figure(hw, "transfer_bytes")
    whole, short = [], []
    for row in counts.rows:
        for transfer in row.transfers:
            if transfer.level == "dram":
                moved, present = counts.mean(transfer.bytes), counts.mean(row.present)
                whole.append((float(line > 0 and transfer.contiguous % line == 0), row.runs * moved))
                short.append((float(moved < enough * present), row.runs * moved))
    out["line_share"], out["short_share"] = _mean(whole), _mean(short)
    return out


def _widths(counts: GraphCounts, hw: HardwareModel) -> dict[str, float]:
    """Of what computes: sizes of slices."""
    vector = [row for row in counts.rows if row.category == VECTOR]
    reductions = [row for row in counts.rows if row.category == REDUCE]
    contractions = [row for row in counts.rows if row.category == CONTRACT]
    wide = max(int(hw.vector_bytes), 1)
    filled, guarded = [], []
    for row in vector:
        size = row.shape[1] * row.width
        filled.append((size / (-(-size // wide) * wide), float(row.runs)))
    for row in (*vector, *reductions):
        full = row.shape[0] * row.shape[1]
        guarded.append((1.0 - min(counts.mean(row.elements) / full, 1.0), float(row.runs * full)))
    return {
        "vector_elements": _mean((_log(counts.mean(r.elements)), r.runs) for r in vector),
        "vector_cols": _mean((_log(r.shape[1]), r.runs) for r in vector),
        "vector_rows": _mean((_log(r.shape[0]), r.runs) for r in vector),
        "vector_filled": _mean(filled),
        "reduce_cols": _mean((_log(r.shape[1]), r.runs) for r in reductions),
        "reduce_rows": _mean((_log(r.shape[0]), r.runs) for r in reductions),
        "contract_elements": _mean((_log(counts.mean(r.elements)), r.runs) for r in contractions),
        "guarded": _mean(guarded),
        "width": _mean((r.width, r.runs * counts.mean(r.elements)) for r in counts.rows),
    }


def _loops(counts: GraphCounts) -> dict[str, float]:
    flights = [(row, _moved(counts, row)) for row in counts.rows]
    return {
        "loops": float(counts.loops),
        "depth": float(max((row.depth for row in counts.rows), default=0)),
        "trips": _log(max((row.runs for row in counts.rows), default=0)),
        "stages": float(max((row.stages for row in counts.rows), default=1)),
        "flight_share": _mean((float(row.stages > 1), moved) for row, moved in flights),
        "flight_trips": _mean((_log(row.trips), moved) for row, moved in flights if row.stages > 1),
    }


def _units(counts: GraphCounts, hw: HardwareModel) -> dict[str, float]:
    most = max(int(hw.num_groups) * int(hw.num_units), 1)
    turns = -(-counts.units // most)
    last = counts.units - (turns - 1) * most
    return {
        "units": _log(counts.units),
        "groups": _log(counts.groups),
        "group_units": float(counts.num_units),
        "busy": min(counts.units / most, 1.0),
        "turns": _log(turns),
        "last_turn": last / most,
    }


def _memory(counts: GraphCounts, hw: HardwareModel) -> dict[str, float]:
    out = {}
    for level in ("reg", "sram"):
        limit = int(getattr(hw, f"{level}_bytes"))
        out[f"{level}_held"] = _log(counts.held[level])
        out[f"{level}_live"] = _log(counts.live[level])
        out[f"{level}_share"] = counts.live[level] / limit if limit else 0.0
    wanted = figure(hw, "tile_bytes")
    out["tile_share"] = _log(counts.live["reg"] / wanted) if wanted else 0.0
    return out


def _reckoned(found: Estimate) -> dict[str, float]:
    every = sum(found.pipes.values())
    out = {f"seconds_{pipe}": _log(1e9 * value) for pipe, value in found.pipes.items()}
    out.update({f"balance_{pipe}": value / every if every else 0.0 for pipe, value in found.pipes.items()})
    out["balance_starts"] = found.starts / every if every else 0.0
    out["seconds_memory"] = _log(1e9 * found.memory)
    out["memory_share"] = found.memory / found.seconds
    out["seconds_sync"] = _log(1e9 * found.sync)
    out["seconds"] = _log(1e9 * found.seconds)
    out["slowest"] = _log(found.slowest / found.unit) if found.unit else 0.0
    return out


def _hardware(hw: HardwareModel) -> dict[str, float]:
    return {
        "hw_groups": _log(int(hw.num_groups)),
        "hw_units": _log(int(hw.num_units)),
        "hw_reg": _log(int(hw.reg_bytes)),
        "hw_sram": _log(int(hw.sram_bytes)),
        "hw_vector": _log(int(hw.vector_bytes)),
        **{f"hw_{name}": _log(figure(hw, name)) for name in _FIGURES},
        **{f"is_{kind}": float(str(hw.kind) == kind) for kind in KINDS},
    }
