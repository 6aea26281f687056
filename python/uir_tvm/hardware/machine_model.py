# SPDX-License-Identifier: Apache-2.0
"""What analytic times are computed from: what the iOps of a graph do, and what a device does in a second.

The counts are those of some units, which stand for all (`uir_tvm.explain.sampled_counts`).  A machine is in
the folder of its target (``machine.py``); its figures come from the hardware model, its rates (`rates`) and
the tables of instructions' costs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs
import numpy as np

from ..igraph.nodes import HardwareModel
from .rates import Rates, rates_of

#: Where a model states no rates: two instructions of a vector in a cycle of this clock, bytes a second.
ASSUMED_CLOCK, ASSUMED_MEMORY = 2e9, 2e10
#: And words of a vector, where a machine says nothing of its units.
ASSUMED_LANES = 8

#: What an iOp is to the pipes of a core.
LOAD, STORE, ONCHIP, VECTOR, REDUCE, CONTRACT, IRREGULAR, SYNC, NOTHING = CATEGORIES = (
    "load",
    "store",
    "onchip",
    "vector",
    "reduce",
    "contract",
    "irregular",
    "sync",
    "nothing",
)


@attrs.frozen(eq=False)
class Transfer:
    """How one operand lies in dram or sram.

    Attributes
    ----------
    level : str
    write : bool
    pointer : str
    bytes : ndarray
        Of a run, on each unit that is looked at; runs of nothing count.
    segments : float
        Contiguous pieces of a run that moves anything.
    contiguous : float
        Bytes of a piece.
    """

    level: str
    write: bool
    pointer: str
    bytes: np.ndarray
    segments: float
    contiguous: float


@attrs.frozen(eq=False)
class IOpCounts:
    """What one iOp does.

    Attributes
    ----------
    op, name, category : str
        See `CATEGORIES`.
    axis : str
        ``row`` or ``col`` of a broadcast or reduction; else empty.
    kind : str
        Its class of arithmetic (`igraph.iops.WORK`); empty where it computes nothing.
    runs : int
        Of a unit: trips of its loops.
    present : ndarray
        Share of them that have any element, on each unit that is looked at.
    elements : ndarray
        Mean of a run (of those that have none too), on each unit: what is computed, or moved.
    shape : (int, int)
        Of the largest of its slices.
    width, words : float
        Bytes of an element; words of 4 bytes that one is to a vector unit.
    loop, stages, trips : str, int, int
        The innermost loop around it that has iterations in flight, how many, and how many it has in all; no
        name, 1 and 1 without one.
    depth : int
        Loops around it.
    group : int
        Units that join in it.
    transfers : tuple of Transfer
        Operands in dram and sram.
    local_bytes : (float, float)
        Bytes that a run reads from reg and writes to it, on an average unit.
    """

    op: str
    name: str
    category: str
    axis: str
    kind: str
    runs: int
    present: np.ndarray
    elements: np.ndarray
    shape: tuple[int, int]
    width: float
    words: float
    loop: str
    stages: int
    trips: int
    depth: int
    group: int
    transfers: tuple[Transfer, ...]
    local_bytes: tuple[float, float]


@attrs.frozen(eq=False)
class GraphCounts:
    """What all iOps of a graph do.

    Attributes
    ----------
    units, groups, num_units : int
        Of the graph: all units, its groups, units of a group.
    weights : ndarray
        How many units each one that is looked at stands for.
    rows : tuple of Row
        In program order.
    held : mapping of str to int
        Bytes of all pointers of reg, of a unit, and of sram, of a group, side by side.
    live : mapping of str to int
        The same at the fullest moment: from a pointer's first iOp to its last.
    parameters : mapping of str to int
        Bytes of every pointer in dram.
    loops : int
    vectors : float
        Width of vectors that the graph asks for, over that of its hardware.
    """

    units: int
    groups: int
    num_units: int
    weights: np.ndarray
    rows: tuple[IOpCounts, ...]
    held: Mapping[str, int]
    live: Mapping[str, int]
    parameters: Mapping[str, int]
    loops: int
    vectors: float

    def mean(self, values: np.ndarray) -> float:
        """The mean over all units of something known of those that were looked at."""
        return float(values @ self.weights / self.units)


@attrs.frozen
class Pipe:
    """A pipe of a unit that moves bytes.

    Attributes
    ----------
    rate : float
        Most bytes a second.
    start, head, row : float
        Seconds of each transfer, of the kernel's first one, and of each further piece of a transfer.
    """

    rate: float
    start: float = 0.0
    head: float = 0.0
    row: float = 0.0


@attrs.frozen(eq=False)
class MachineModel:
    """A device as units that take turns.

    Attributes
    ----------
    launch : float
        Seconds that no unit accounts for.
    slots : int
        Units that run at once.
    load, store, onchip : Pipe
    memory : float
        Bytes a second of dram, for all units together.
    cluster : float
        The same for the units of a group alone; 0: no such limit.
    cached : float
        Bytes a second that a unit gets of what another transfer brought from dram before; 0: there is no
        cache, everything comes from dram.
    cache_bytes : int
        What is kept so.
    vector : callable
        Seconds of a unit for one element of an iOp, and for starting it: ``(IOpCounts) -> (float, float)``.
    sync : float
        Seconds of a meeting of units.
    pipes : bool
        Whether loads, computation and stores run on pipes of their own, all at once where iterations are in
        flight; otherwise units hide each other's waits.
    words : float
        Plain operations of words of 4 bytes that a unit does in a second at its full rate.
    """

    launch: float
    slots: int
    load: Pipe
    store: Pipe
    onchip: Pipe
    memory: float
    vector: Callable[[IOpCounts], tuple[float, float]]
    cluster: float = 0.0
    cached: float = 0.0
    cache_bytes: int = 0
    sync: float = 0.0
    pipes: bool = True
    words: float = ASSUMED_LANES * 2 * ASSUMED_CLOCK

    def share(self, active: int) -> float:
        """Bytes a second of dram that each of so many units gets."""
        share = self.memory / active
        if self.cluster:
            share = min(share, self.cluster / max(active / max(self.slots // 4, 1), 1))
        return share


def figure(hw: HardwareModel, name: str, default: float = 0.0) -> float:
    """A figure of a hardware model that is a number; else a default."""
    value = hw.figures[name] if name in hw.figures else default
    return float(value) if isinstance(value, int | float) else default


@functools.lru_cache(maxsize=64)
def rates(hw: HardwareModel) -> Rates:
    """`rates_of` a hardware model, once."""
    return rates_of(hw)


def per_unit(hw: HardwareModel, units: int) -> tuple[float, float, float]:
    """Words and operations of contractions a second of one of so many units, bytes a second of dram."""
    known, lanes = rates(hw), max(int(hw.vector_bytes) // 4, 1)
    words = (known.operations.per_second or units * lanes * 2 * ASSUMED_CLOCK) / units
    contract = (known.contract.per_second or 2 * units * words) / units
    return words, contract, known.memory[-1].rate.per_second or ASSUMED_MEMORY
