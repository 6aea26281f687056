# SPDX-License-Identifier: Apache-2.0
"""Addresses: those that a graph gives to its reg and sram pointers keep apart what is alive at once.

``graph.attrs["addresses"]`` maps names to byte offsets, ``graph.attrs["peak"]`` says how many bytes of
each level they take (see `optimize.allocate`).  That they fit the hardware model is the capacity rule's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import VerifyError
from ..igraph.nodes import IGraph
from ..igraph.text import print_iop
from .access import GraphFacts
from .live_ranges import Live
from .placement import MEMORIES, Interference

ADDRESSES, PEAK = "addresses", "peak"

_AGAIN = "allocate again after the last change of the graph, or drop the attributes addresses and peak"


def given(graph: IGraph) -> dict[str, int] | None:
    """The addresses that a graph has; None where it has none (or none that are numbers)."""
    found = graph.attrs[ADDRESSES] if ADDRESSES in graph.attrs else None
    if not isinstance(found, Mapping) or any(type(v) is not int for v in found.values()):
        return None
    return {str(name): int(value) for name, value in found.items()}


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every address that is missing, misaligned, or meets another one that is alive at the same time."""
    graph = facts.graph
    if ADDRESSES not in graph.attrs:
        return
    addresses = given(graph)
    if addresses is None:
        yield _fault("The addresses are no mapping from names to byte offsets.", f"graph '{graph.name}'")
        return
    for pointer in graph.pointers:
        if pointer.level not in MEMORIES and str(pointer.name) in addresses:
            yield _fault(f"'{pointer.name}' has an address, but lies in {pointer.level}.", str(pointer.name))
    ends: dict[str, int] = {}
    for level in MEMORIES:
        memory = Interference.of(facts, level)
        yield from _each(memory, addresses)
        yield from _pairs(facts, memory, addresses)
        ends[level] = max((addresses.get(x.name, 0) + x.bytes for x in memory.ranges), default=0)
    said = dict(graph.attrs[PEAK].items()) if PEAK in graph.attrs else ends
    for level, end in ends.items():
        if said.get(level, 0) < end:
            yield _fault(
                f"The peak of {level} is said to be {said.get(level, 0)} bytes.",
                f"graph '{graph.name}'",
                f"{end} bytes, the end of the highest pointer",
            )


def _each(memory: Interference, addresses: Mapping[str, int]) -> Iterator[VerifyError]:
    for live in memory.ranges:
        if live.name not in addresses:
            yield _fault(
                f"The pointer '{live.name}' has no address.", str(live), "one for every pointer in use"
            )
        elif addresses[live.name] < 0 or addresses[live.name] % memory.align:
            yield _fault(
                f"The address {addresses[live.name]} of '{live.name}' is not aligned.",
                str(live),
                f"a multiple of {memory.align} bytes",
            )


def _pairs(facts: GraphFacts, memory: Interference, addresses: Mapping[str, int]) -> Iterator[VerifyError]:
    for i, others in enumerate(memory.apart):
        for j in others:
            if i < j:
                yield from _meeting(facts, memory.ranges[i], memory.ranges[j], addresses)
    for (a, b), delta in memory.shared.items():
        x, y = memory.ranges[a], memory.ranges[b]
        if x.name in addresses and y.name in addresses and addresses[y.name] != addresses[x.name] + delta:
            yield from _meeting(facts, x, y, addresses)


def _meeting(facts: GraphFacts, x: Live, y: Live, addresses: Mapping[str, int]) -> Iterator[VerifyError]:
    if x.name not in addresses or y.name not in addresses:
        return
    low = max(addresses[x.name], addresses[y.name])
    high = min(addresses[x.name] + x.bytes, addresses[y.name] + y.bytes)
    if low >= high:
        return
    if x.last < y.first or y.last < x.first:
        earlier, later = (x, y) if x.last < y.first else (y, x)
        yield _fault(
            f"'{earlier.name}' and '{later.name}' share the bytes {low} to {high - 1} of "
            f"{x.pointer.level} with no barrier between their uses.",
            f"{earlier}, then {later}",
            "a barrier of the group between the last use of the one and the first of the other, "
            "around every loop too",
        )
        return
    step = facts.steps[max(x.first, y.first)]
    yield _fault(
        f"'{x.name}' and '{y.name}' share the bytes {low} to {high - 1} of {x.pointer.level} "
        "while both are alive.",
        f"{print_iop(step.iop)}, where both {x} and {y} are alive",
        "different bytes for what is alive at once",
    )


def _fault(what: str, where: str, need: str = "") -> VerifyError:
    return VerifyError(what, rule="addresses", where=where, need=need, remedy=_AGAIN)
