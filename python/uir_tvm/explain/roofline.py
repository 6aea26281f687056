# SPDX-License-Identifier: Apache-2.0
"""The roofline: how long a kernel takes at least by the rates of its hardware, and how far it is from that.

*Modelled*: every memory and every pipe is busy all of the time, all of them at once.  What no rate covers
(latency, calls, barriers, sharing of caches) takes time on top.
"""

from __future__ import annotations

import attrs

from ..hardware.rates import Rate, Rates
from ..igraph.dtypes import bytes_of
from .arithmetic import Arithmetic
from .traffic import PointerTraffic, Traffic


@attrs.frozen
class LevelTime:
    """What one resource would take alone.

    Attributes
    ----------
    resource : str
        ``dram``, ``sram`` or ``arithmetic``.
    amount : int
        Bytes, or operations.
    seconds : float or None
        None: the rate is not known.
    share : float or None
        Of the kernel's modelled time.
    rate : Rate
    """

    resource: str
    amount: int
    seconds: float | None
    share: float | None
    rate: Rate


@attrs.frozen
class Roofline:
    """The modelled times of one call.

    Attributes
    ----------
    modelled_seconds : float or None
        The longest of the levels; None where a rate that is needed is not known (see `why_unknown`).
    bound_seconds : float or None
        The same for the least possible traffic, and work dealt evenly to all units.
    limit : str
        The resource that takes longest; empty where that is not known.
    balance : float
        Part of the units that has work, on average over the rounds in which they take turns.
    memory : str
        The memory behind dram that the kernel's tensors fit into.
    """

    modelled_seconds: float | None
    bound_seconds: float | None
    limit: str
    balance: float
    memory: str
    levels: tuple[LevelTime, ...]
    why_unknown: str = ""

    @property
    def share_of_bound(self) -> float | None:
        """Bound over modelled time: 1 where nothing could be saved."""
        if self.modelled_seconds is None or self.bound_seconds is None:
            return None
        return self.bound_seconds / self.modelled_seconds if self.modelled_seconds else 1.0


def seconds_of(amount: float, rate: Rate) -> float | None:
    """Time for an amount at a rate; nothing takes none, whatever the rate."""
    if not amount:
        return 0.0
    return amount / rate.per_second if rate.per_second else None


def dram_seconds(moved: Traffic, rates: Rates) -> float | None:
    """Time for the bytes between dram and units.

    The least possible come at the rate of the memory that holds all that the kernel touches; what is moved
    again, at that of the cache that holds its pointer.
    """
    parts = [seconds_of(moved.least_bytes, rates.memory_of(footprint(moved)).rate)]
    for pointer in moved.pointers:
        again = pointer.bytes - pointer.least_bytes
        parts.append(seconds_of(again, rates.memory_of(_touched(pointer)).rate))
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def arithmetic_seconds(work: Arithmetic, rates: Rates, balance: float = 1.0) -> float | None:
    """Time for the operations: vector steps of each class by their width, contractions at their own rate."""
    vector = sum(o.count * o.words * rates.steps[o.kind] for o in work.operations if o.kind != "contract")
    contract = sum(o.count * o.words for o in work.operations if o.kind == "contract")
    parts = (seconds_of(vector, rates.operations), seconds_of(contract, rates.contract))
    if parts[0] is None or parts[1] is None:
        return None
    return (parts[0] + parts[1]) / balance


def roofline(
    moved: Traffic, work: Arithmetic, rates: Rates, num_parallel: int, num_processors: int
) -> Roofline:
    """The modelled times of a kernel.

    Parameters
    ----------
    moved, work
        What it moves and computes.
    rates : Rates
        Of its hardware.
    num_parallel, num_processors : int
        Units of the graph, and how many of them the hardware runs at once.
    """
    rounds = -(-num_parallel // max(num_processors, 1))
    balance = num_parallel / (rounds * max(num_processors, 1))
    memory = rates.memory_of(footprint(moved))
    sram = moved.level("sram").bytes
    times = [
        ("dram", moved.dram_bytes, memory.rate, dram_seconds(moved, rates)),
        ("sram", sram, rates.sram, seconds_of(sram, rates.sram)),
        ("arithmetic", work.total, _arithmetic_rate(work, rates), arithmetic_seconds(work, rates, balance)),
    ]
    unknown = [f"{name}: {rate.source}" for name, _, rate, seconds in times if seconds is None]
    known = {name: seconds for name, _, _, seconds in times if seconds is not None}
    longest = max(known, key=lambda name: known[name]) if known and not unknown else ""
    modelled = known[longest] if longest else None
    return Roofline(
        modelled,
        _bound(moved, work, rates),
        longest,
        balance,
        memory.name,
        tuple(
            LevelTime(
                name, amount, seconds, seconds / modelled if modelled and seconds is not None else None, rate
            )
            for name, amount, rate, seconds in times
            if amount
        ),
        "; ".join(dict.fromkeys(unknown)),
    )


def footprint(moved: Traffic) -> int:
    """Bytes of dram that the kernel touches: what a cache must hold to serve it."""
    return sum(_touched(pointer) for pointer in moved.pointers)


def _touched(pointer: PointerTraffic) -> int:
    if pointer.role == "tmp":
        return min(pointer.bytes, pointer.elements * bytes_of(pointer.dtype))
    return max(pointer.least_read_bytes, pointer.least_written_bytes)


def _arithmetic_rate(work: Arithmetic, rates: Rates) -> Rate:
    """The rate that the greater part of the operations runs at."""
    contract = work.count("contract")
    return rates.contract if 2 * contract > work.total else rates.operations


def _bound(moved: Traffic, work: Arithmetic, rates: Rates) -> float | None:
    rate = rates.memory_of(footprint(moved)).rate
    parts = (seconds_of(moved.least_bytes, rate), arithmetic_seconds(work, rates))
    return None if parts[0] is None or parts[1] is None else max(parts[0], parts[1])
