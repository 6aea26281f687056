# SPDX-License-Identifier: Apache-2.0
"""Graphs with sizes against all the static graphs that they are: no false alarm, no fault missed."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator

import attrs
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.sizes import at
from uir_tvm.verify import check

from .campaign import plants
from .sized_graphs import sized_graph
from .table import FAULTS

#: Kinds of faults that the verifier is not meant to find: they change values, not where they are.
OF_VALUES = ("wrong-pad", "wrong-op", "wrong-axis", "swap-operands", "stale-register", "drop-init")


#: Makes a random graph that is right, of sizes that are at most so far apart.
Maker = Callable[[random.Random, int], IGraph]


@attrs.define
class SizedTally:
    """Counts so far.

    Attributes
    ----------
    seconds : list of float
        What each proof took.
    planted, found : int
        Faults, and those that are none at any size left out, those that were found.
    wrong : list of str
        Alarms for nothing, faults missed, and witnesses that show nothing.
    """

    seconds: list[float] = attrs.field(factory=list)
    planted: int = 0
    found: int = 0
    wrong: list[str] = attrs.field(factory=list)

    @property
    def median(self) -> float:
        """Seconds of a proof."""
        return sorted(self.seconds)[len(self.seconds) // 2]

    @property
    def worst(self) -> float:
        """Seconds of the longest proof."""
        return max(self.seconds)


def all_sizes(graph: IGraph) -> Iterator[dict[str, int]]:
    """Every choice of the sizes of a graph."""
    values = [
        range(-(-int(s.low) // by) * by, int(s.high) + 1, by)
        for s in graph.sizes
        for by in (int(s.multiple_of),)
    ]
    for chosen in itertools.product(*values):
        yield dict(zip((str(s.name) for s in graph.sizes), chosen, strict=True))


def is_empty(graph: IGraph) -> bool:
    """Whether a static graph has no units, or memory without elements: then it is no graph of its own."""
    return graph.num_groups < 1 or any(p.size < 1 for p in graph.pointers)


def first_fault(graph: IGraph) -> tuple[dict[str, int], VerifyError] | None:
    """The least sizes at which the static graph is at fault, and that fault."""
    for sizes in all_sizes(graph):
        static = at(graph, sizes)
        if not is_empty(static) and (faults := check(static)):
            return sizes, faults[0]
    return None


def sizes_of(graph: IGraph, fault: VerifyError) -> dict[str, int] | None:
    """The sizes that a witness names; None where it names not all."""
    names = [str(size.name) for size in graph.sizes]
    return {n: fault.witness[n] for n in names} if all(n in fault.witness for n in names) else None


def prove(seed: int, tally: SizedTally, most: int = 60, made: Maker = sized_graph) -> IGraph:
    """A random graph that is right: what the verifier says of it, and how long that takes."""
    graph = made(random.Random(seed), most)
    start = time.perf_counter()
    found = check(graph)
    tally.seconds.append(time.perf_counter() - start)
    if found:
        tally.wrong.append(f"seed {seed}: alarm: {found[0]}\n{graph}")
    return graph


def plant(seed: int, tally: SizedTally, most: int = 20, made: Maker = sized_graph) -> None:
    """Faults of all kinds in a random graph: the verifier says of all sizes what it says of each."""
    graph = made(random.Random(seed), most)
    if made is not sized_graph or len(graph.sizes) == 1:
        plant_in(graph, seed, tally)


def plant_in(graph: IGraph, seed: int, tally: SizedTally, count: int = 1) -> None:
    """The same of a graph, with up to ``count`` faults of each kind."""
    for kind in FAULTS:
        if kind in OF_VALUES:
            continue
        for what, planted in plants(graph, FAULTS[kind], random.Random(seed), count):
            tally.planted += 1
            said = _disagreement(planted, tally)
            if said:
                tally.wrong.append(f"seed {seed}: {kind}, {what}: {said}\n{planted}")


def _disagreement(graph: IGraph, tally: SizedTally) -> str:
    """Where what is said of all sizes at once is not what is said of each; "" where it is."""
    found, expected = check(graph), first_fault(graph)
    if not found:
        return "" if expected is None else f"missed; at {expected[0]}: {expected[1].what}"
    sizes = sizes_of(graph, found[0])
    if found[0].rule in ("form", "shape", "dtype"):
        tally.found += 1
        return ""  # of the graph as it is, whatever its sizes are
    if found[0].rule == "bounds" and ("of dimension" in found[0].what or "not proved" in found[0].what):
        # a slice that leaves its row is refused, though all its addresses may lie in the pointer
        tally.found += 1
        return ""
    if expected is None and (sizes is None or not is_empty(at(graph, sizes))):
        return f"alarm: {found[0]}"
    tally.found += 1
    if sizes is None:
        return f"no sizes in the witness: {found[0]}"
    return "" if check(at(graph, sizes)) else f"nothing wrong at the witness: {found[0]}"
