# SPDX-License-Identifier: Apache-2.0
"""A run over many graphs: plants faults, judges each, counts; looks for false alarms on right graphs."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from uir_tvm.igraph import IGraph

from tests.corpus import Entry, by_hand, corpus, recipes
from tests.igraph.strategies import runnable_igraphs

from . import oracle
from .equality import Reference
from .judge import CRASH, EQUIVALENT, FAILURES, VERDICTS, Verdict, alarm, judge
from .random_graphs import valid_graph
from .table import FAULTS, Fault

#: Recipes' graphs in a quick run; all texts written by hand are in it.
QUICK_RECIPES = 6


@attrs.frozen
class Planted:
    """One planted fault and what became of it."""

    kind: str
    entry: str
    what: str
    verdict: Verdict
    graph: IGraph


@attrs.define
class Tally:
    """Counts so far."""

    by: dict[str, collections.Counter[str]] = attrs.field(
        factory=lambda: {k: collections.Counter() for k in FAULTS}
    )
    failures: list[Planted] = attrs.field(factory=list)
    equivalent: list[Planted] = attrs.field(factory=list)
    #: Graphs that are right, and what the verifier holds against them.
    alarms: list[tuple[str, str]] = attrs.field(factory=list)
    clean: int = 0
    random: int = 0

    def add(self, planted: Planted) -> None:
        """Count one planted fault."""
        self.by[planted.kind][planted.verdict.by] += 1
        if planted.verdict.by in FAILURES:
            self.failures.append(planted)
        elif planted.verdict.by == EQUIVALENT:
            self.equivalent.append(planted)

    def total(self, verdict: str | None = None) -> int:
        """How many faults met a verdict; all without one."""
        return sum(c[verdict] if verdict is not None else c.total() for c in self.by.values())

    @property
    def good(self) -> bool:
        """Whether every fault was caught or shown to change nothing, without a false alarm."""
        return not self.failures and not self.alarms

    def rows(self) -> Iterator[tuple[str, list[int]]]:
        """(kind, [planted, then one count for each of `columns`]) of every kind that was planted."""
        for kind, counts in self.by.items():
            if counts.total():
                yield kind, [counts.total(), *(counts[v] for v in self.columns)]

    @property
    def columns(self) -> list[str]:
        """The verdicts that occurred, and the last two of the good ones and MISSED always."""
        always = ("equivalence", EQUIVALENT, "MISSED")
        return [v for v in VERDICTS if v in always or self.total(v)]

    def to_json(self) -> dict[str, Any]:
        """Counts, failures and alarms as plain data."""

        def told(p: Planted) -> dict[str, str]:
            return {
                "kind": p.kind,
                "graph": p.entry,
                "what": p.what,
                "verdict": p.verdict.by,
                "why": p.verdict.why,
            }

        return {
            "counts": {kind: dict(c) for kind, c in self.by.items() if c},
            "failures": [told(p) | {"text": str(p.graph)} for p in self.failures],
            "equivalent": [told(p) for p in self.equivalent],
            "alarms": [{"graph": name, "what": what} for name, what in self.alarms],
            "graphs": self.clean,
            "random graphs": self.random,
        }


def entries(quick: bool, seed: int) -> Iterator[Entry]:
    """The corpus; in a quick run what is written by hand and some of what recipes make."""
    if not quick:
        yield from corpus(full=True)
        return
    yield from by_hand.entries()
    for case, machine in random.Random(seed).sample(list(recipes.pairs()), QUICK_RECIPES):
        yield Entry(
            f"{case} on {machine}", recipes.example(case).func, recipes.graph(case, machine), "recipe"
        )


def plants(graph: IGraph, fault: Fault, rng: random.Random, count: int) -> Iterator[tuple[str, IGraph]]:
    """Up to ``count`` graphs with one fault of a kind; what equals the original is none."""
    made = (plant for plant in fault.plant(graph, rng) if plant[1] != graph)
    yield from itertools.islice(made, count)


def unplanted(entry: Entry, reference: Reference, tally: Tally) -> None:
    """Hold the verifier, the check of equivalence and the replay against a graph that is right."""
    tally.clean += 1
    what = alarm(entry.graph)
    if not what:
        verdict = judge(reference, entry.graph)
        what = "" if verdict.by in (EQUIVALENT, "unshown") else f"{verdict.by}: {verdict.why}"
    if what:
        tally.alarms.append((entry.name, what))


def plant_all(entry: Entry, kinds: Sequence[str], count: int, seed: int, tally: Tally) -> Iterator[Planted]:
    """Plant and judge faults of every kind in one graph, after a look at the graph itself."""
    reference = Reference(entry.graph, seed)
    unplanted(entry, reference, tally)
    for kind in kinds:
        rng = random.Random(f"{seed}/{entry.name}/{kind}")
        for what, graph in plants(entry.graph, FAULTS[kind], rng, count):
            planted = Planted(kind, entry.name, what, judge(reference, graph), graph)
            tally.add(planted)
            yield planted


def random_graphs(count: int, seed: int) -> Iterator[IGraph]:
    """Random valid graphs: of groups that share memory, and complete operators with ragged tails."""
    rng = random.Random(seed)
    for _ in range(count - count // 2):
        yield valid_graph(rng)
    drawn: list[IGraph] = []

    @seeded(seed)
    @settings(
        max_examples=max(count // 2, 1),
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(runnable_igraphs())
    def draw(graph: IGraph) -> None:
        drawn.append(graph)

    if count // 2:
        draw()
    yield from drawn


def no_alarm(graph: IGraph, number: int, tally: Tally) -> None:
    """Hold the verifier against a random valid graph; the replay says that it is valid."""
    tally.random += 1
    what = alarm(graph)
    if what or oracle.first_conflict(graph) is not None:
        tally.alarms.append((f"random graph {number}:\n{graph}", what or "the replay finds a race"))


__all__ = ["CRASH", "Planted", "Tally", "entries", "no_alarm", "plant_all", "plants", "random_graphs"]
