# SPDX-License-Identifier: Apache-2.0
"""How long a graph takes, reckoned from what its iOps do and what its hardware does in a second.

A roofline says what no schedule can beat; here schedules of one kernel are told apart: units that take
turns, a last turn that few take part in, starts of transfers and instructions, transfers of many short
pieces, loads that run beside computation where iterations are in flight.  Used by itself where nothing was
measured yet, and as what a learned model corrects (`uir_tvm.tune.cost_model`).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from ..hardware.machine_model import (
    LOAD,
    NOTHING,
    ONCHIP,
    STORE,
    SYNC,
    GraphCounts,
    IOpCounts,
    MachineModel,
    Pipe,
    Transfer,
)
from ..hardware.rates import Rates, rates_of
from ..igraph.nodes import HardwareModel, IGraph
from ..target import registry
from ..verify.access import facts_of
from .arithmetic import arithmetic
from .at_sizes import at_sizes
from .roofline import roofline
from .sampled_counts import counts_of
from .traffic import traffic

#: The pipes of a unit.
PIPES = ("load", "compute", "store", "onchip")


@attrs.frozen(eq=False)
class Estimate:
    """How a time comes about.

    Attributes
    ----------
    seconds : float
        Of a launch.
    pipes : mapping of str to float
        Seconds of each of `PIPES` on an average unit, as if nothing else took time.
    starts : float
        What of them is starts.
    memory : float
        Seconds of dram for all bytes of all units.
    unit, slowest : float
        Seconds of an average unit, and of that with most work.
    turns : float
        How often units take turns.
    sync : float
        Seconds of meetings.
    """

    seconds: float
    pipes: Mapping[str, float]
    starts: float
    memory: float
    unit: float
    slowest: float
    turns: float
    sync: float


def seconds(graph: IGraph, hw: HardwareModel | None = None) -> float:
    """Seconds of a launch of a graph.

    Parameters
    ----------
    graph : IGraph
        Well-formed; before or after the passes.
    hw : HardwareModel, optional
        Default: that of the graph.
    """
    return estimate(graph, hw).seconds


def estimate(graph: IGraph, hw: HardwareModel | None = None) -> Estimate:
    """The time of a launch and what it is made of; see `seconds`."""
    counts = counts_of(graph)
    return _estimate(counts, registry.machine_of(graph.hardware if hw is None else hw, counts))


def _estimate(counts: GraphCounts, machine: MachineModel) -> Estimate:
    active = min(counts.units, machine.slots)
    missed, moved = _missed(counts, machine)
    share = machine.share(active)
    points = len(counts.weights)
    totals = {name: np.zeros(points) for name in PIPES}
    # seconds of an iteration by (loop in flight, trips, runs of the loop), and of what is in none
    flights: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    starts, sync = 0.0, 0.0
    for row in counts.rows:
        if row.category == NOTHING:
            continue
        if row.category == SYNC:
            sync += row.runs * counts.mean(row.present) * machine.sync
            continue
        pipe, busy, start = _of_row(row, machine, missed, share)
        spent = row.runs * (busy + start * row.present)
        starts += row.runs * start * counts.mean(row.present)
        if row.group > 1:
            sync += row.runs * counts.mean(row.present) * machine.sync
        totals[pipe] += spent
        key = (row.loop, row.trips)
        flights.setdefault(key, {name: np.zeros(points) for name in PIPES})[pipe] += spent
    unit = np.full(points, sync)
    for (loop, trips), pipes in flights.items():
        unit = unit + _together(list(pipes.values()), trips if loop and machine.pipes else 1, machine)
    unit = unit + machine.load.head + machine.store.head
    slowest = float(unit.max())
    mean = counts.mean(unit)
    turns = counts.units / machine.slots
    span = slowest if turns <= 1 else max(slowest, mean * _rounds(counts, machine))
    memory = moved / machine.memory
    return Estimate(
        machine.launch + max(span, memory),
        {name: counts.mean(values) for name, values in totals.items()},
        starts,
        memory,
        mean,
        slowest,
        turns,
        sync,
    )


def _rounds(counts: GraphCounts, machine: MachineModel) -> float:
    """Turns of groups: the last counts whole."""
    groups = max(machine.slots // counts.num_units, 1)
    return float(-(-counts.groups // groups))


def _missed(counts: GraphCounts, machine: MachineModel) -> tuple[dict[str, float], float]:
    """Of each pointer in dram: what share of its bytes comes from there, not from a cache; all such bytes."""
    total: dict[str, float] = {}
    for row in counts.rows:
        for transfer in row.transfers:
            if transfer.level == "dram":
                moved = row.runs * float(transfer.bytes @ counts.weights)
                total[transfer.pointer] = total.get(transfer.pointer, 0.0) + moved
    if not machine.cached:
        return dict.fromkeys(total, 1.0), sum(total.values())
    kept = sum(min(counts.parameters[name], moved) for name, moved in total.items())
    fits = min(1.0, machine.cache_bytes / kept) if kept else 1.0
    out = {}
    for name, moved in total.items():
        once = min(1.0, counts.parameters[name] / moved) if moved else 1.0
        out[name] = 1.0 - (1.0 - once) * fits
    return out, sum(total[name] * share for name, share in out.items())


def _of_row(
    row: IOpCounts, machine: MachineModel, missed: Mapping[str, float], share: float
) -> tuple[str, np.ndarray, float]:
    """(pipe, seconds of a run on each unit, seconds of its start)."""
    if row.category in (LOAD, STORE, ONCHIP):
        name = {LOAD: "load", STORE: "store", ONCHIP: "onchip"}[row.category]
        pipe: Pipe = getattr(machine, name)
        busy = sum((_transfer(t, pipe, machine, missed, share) for t in row.transfers), np.zeros(1))
        # one that goes between dram and sram has two ends, and takes the time of one
        return name, busy / max(len(row.transfers), 1) if row.category != ONCHIP else busy, pipe.start
    rate, start = machine.vector(row)
    busy = row.elements * rate
    for transfer in row.transfers:
        pipe = machine.store if transfer.write else machine.load
        busy = busy + _transfer(transfer, pipe, machine, missed, share)
    return "compute", busy, start


def _transfer(
    transfer: Transfer, pipe: Pipe, machine: MachineModel, missed: Mapping[str, float], share: float
) -> np.ndarray:
    """Seconds of a run of a transfer on each unit, without its start."""
    rows = max(transfer.segments - 1, 0.0) * pipe.row
    if transfer.level != "dram":
        return transfer.bytes / pipe.rate + rows
    part = missed[transfer.pointer]
    own = part / pipe.rate + ((1 - part) / machine.cached if machine.cached else 0.0)
    return np.maximum(transfer.bytes * own + rows, transfer.bytes * part / share)


def _together(pipes: list[np.ndarray], trips: int, machine: MachineModel) -> np.ndarray:
    """Seconds of a loop whose iterations use some pipes: one after the other, or several in flight."""
    total = np.sum(pipes, axis=0)
    if trips <= 1:
        return np.asarray(total)
    longest = np.max(pipes, axis=0)
    return np.asarray(longest + (total - longest) / trips)


def distance(graph: IGraph, seconds: float, rates: Rates | None = None) -> float | None:
    """How near a time is to the least that the kernel's work allows: 1 on the roofline, 0 far below it.

    Parameters
    ----------
    graph : IGraph
        Of the kernel; one with sizes is looked at at usual ones (`at_sizes`).
    seconds : float
        Measured, or modelled by a host model.
    rates : Rates, optional
        Default: those of its hardware.

    Returns
    -------
    float or None
        Least possible traffic, or all of the arithmetic, at full rate, over ``seconds``; None where a rate
        is not known.
    """
    rates = rates_of(graph.hardware) if rates is None else rates
    facts = facts_of(at_sizes(graph)[0])
    moved, work = traffic(facts), arithmetic(facts)
    processors = int(graph.hardware.num_groups) * int(graph.hardware.num_units)
    found = roofline(moved, work, rates, facts.num_parallel, processors).bound_seconds
    return None if found is None or seconds <= 0 else found / seconds
