# SPDX-License-Identifier: Apache-2.0
"""The search for a task's fastest schedule: what to measure next, given what was measured.

Candidates wait in a pool, filled by combinations of small design spaces, by evolutions of large ones, and by
the neighbours of the fastest measured ones.  Of every batch most are the ones that the cost model expects to
be fastest, some are neighbours of the fastest measured, and some anything at all.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from tvm_ffi.structural import structural_hash

from .candidates import Checker, DesignPoint
from .job import Result
from .mutator import neighbours
from .representative_graphs import AtSizes, Predictor, bound_of
from .sources import ENDLESS, Evolved, combination, size_of
from .spaces import DesignSpace
from .task import Task

#: Combinations of a design space up to which all are made.
ENUMERATED = 512
#: Shares of a batch: anything, and neighbours of the fastest measured.
EXPLORED, NEAR = 0.125, 0.25
#: Candidates made anew for each one proposed.
MADE = 4
#: The fastest measured ones whose neighbours are tried.
PARENTS = 3


@attrs.frozen
class Measured:
    """A candidate and its seconds."""

    candidate: DesignPoint
    seconds: float


class TaskSearch:
    """Proposes candidates of one task; equal arguments, equal proposals.

    Parameters
    ----------
    task : Task
    spaces : sequence of DesignSpace
        Of `design_spaces`: the compiler's own schedule is that of the first.
    cost_model : Predictor
        Asked at every proposal, so that it may learn in between.
    seed : int
    enumerated : int
        Combinations of a design space up to which all are made; larger ones are evolved.

    Attributes
    ----------
    default : DesignPoint or None
        The compiler's own schedule; None where it is refused.
    best : Measured or None
        The fastest that was measured and right.
    """

    def __init__(
        self,
        task: Task,
        spaces: Sequence[DesignSpace],
        cost_model: Predictor,
        seed: int = 0,
        *,
        enumerated: int = ENUMERATED,
    ) -> None:
        self.task, self.spaces = task, tuple(spaces)
        self.checker = Checker(task)
        self.default = self.checker.candidate(spaces[0], spaces[0].schedule.trace) if spaces else None
        if task.points:
            default = None if self.default is None else self.default.graph
            cost_model = AtSizes(cost_model, task.points, default)
        self.cost_model = cost_model
        self.best: Measured | None = None
        self._rng = random.Random(seed)
        #: Of small spaces what nobody made yet; of large ones an evolution for each beginning.
        self._combinations = [
            (space, at) for space in spaces if size_of(space) <= enumerated for at in range(size_of(space))
        ]
        self._rng.shuffle(self._combinations)
        together: dict[int, list[DesignSpace]] = {}
        for space in spaces:
            if size_of(space) > enumerated:
                together.setdefault(structural_hash(space.begun), []).append(space)
        self._evolved = [
            Evolved(group, self.checker, cost_model.predict, self._rng.randrange(ENDLESS))
            for group in together.values()
        ]
        self._measured: list[Measured] = []
        self._pool: dict[str, DesignPoint] = {}
        self._seen: set[str] = set()
        #: Of neighbours of fast ones in the pool, the seconds of the one; and whose neighbours are there.
        self._near: dict[str, float] = {}
        self._expanded: set[str] = set()
        #: Spaces of which nothing was proposed.
        self._waiting = {id(space) for space in spaces}
        for space in spaces:
            self._add(self.checker.candidate(space, space.schedule.trace))

    @property
    def refused(self) -> Counter[str]:
        """Distinct schedules that were not proposed, by reason (`Checker.refused`)."""
        return self.checker.refused

    @property
    def bound(self) -> float:
        """Seconds of the task's roofline; 0 where they are not known."""
        return bound_of(self.default.graph, self.task.points) if self.default is not None else 0.0

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing left to propose."""
        return not (self._pool or self._combinations or self._alive())

    def propose(self, count: int) -> list[DesignPoint]:
        """The next candidates to measure, best expected first; fewer where the spaces are exhausted.

        A candidate that was proposed, or told, is never proposed again, nor one with the same function or
        iGraph.
        """
        proposed: list[DesignPoint] = []
        while len(proposed) < count:
            self._fill(count - len(proposed))
            if self.exhausted:
                break
            if not self._pool:
                continue
            for candidate in self._pick(count - len(proposed)):
                self._leave(candidate)
                proposed.append(candidate)
        return proposed

    def tell(self, candidates: Sequence[DesignPoint], results: Sequence[Result]) -> None:
        """What came of candidates, proposed or restored; failed ones are not proposed again."""
        for candidate, result in zip(candidates, results, strict=True):
            self._leave(candidate)
            if not result.ok:
                continue
            found = Measured(candidate, result.median)
            self._measured.append(found)
            for evolved in self._evolved:
                if any(candidate.space is space for space in evolved.spaces):
                    evolved.tell(candidate, found.seconds)
            if self.best is None or found.seconds < self.best.seconds:
                self.best = found

    def restore(self, data: Mapping[str, Any]) -> DesignPoint | None:
        """A candidate of an earlier search (`DesignPoint.to_json`); None where there is no such any more."""
        return self.checker.restore(self.spaces, data)

    def skip(self, digests: Iterable[str]) -> None:
        """Never propose candidates of these digests (`DesignPoint.digest`), whatever came of them."""
        for digest in digests:
            self._seen.add(digest)
            self._pool.pop(digest, None)
            self._near.pop(digest, None)

    def _add(self, candidate: DesignPoint | None, parent: float = math.inf) -> None:
        """It waits to be proposed, if it was not; as a neighbour of one that took so many seconds."""
        if candidate is not None and candidate.digest not in self._seen:
            self._pool.setdefault(candidate.digest, candidate)
            if parent < self._near.get(candidate.digest, math.inf):
                self._near[candidate.digest] = parent

    def _leave(self, candidate: DesignPoint) -> None:
        """It is proposed now, or was."""
        self.skip([candidate.digest])
        self._waiting.discard(id(candidate.space))

    def _alive(self) -> list[Evolved]:
        return [evolved for evolved in self._evolved if not evolved.exhausted]

    def _fill(self, count: int) -> None:
        """Make more candidates: neighbours of the fastest, combinations, and what evolves."""
        for found in sorted(self._measured, key=lambda m: m.seconds)[:PARENTS]:
            candidate = found.candidate
            if candidate.digest not in self._expanded:
                self._expanded.add(candidate.digest)
                for trace in neighbours(candidate.sch.trace):
                    self._add(self.checker.candidate(candidate.space, trace), found.seconds)
        alive, wanted = self._alive(), count * MADE
        share = -(-wanted // (1 + len(alive)))
        taken, self._combinations = self._combinations[:share], self._combinations[share:]
        for space, at in taken:
            self._add(self.checker.candidate(space, combination(space.schedule.trace, at)))
        wanted -= len(taken)
        self._rng.shuffle(alive)
        while alive and wanted > 0:
            made = alive.pop().more()
            wanted -= len(made)
            for candidate in made:
                self._add(candidate)

    def _pick(self, count: int) -> list[DesignPoint]:
        """Some of the pool: the first of every space, then by the shares of a batch."""
        pool = list(self._pool.values())
        seconds = np.asarray(self.cost_model.predict([c.graph for c in pool]), dtype="float64")
        ranked = [
            attrs.evolve(pool[i], predicted=float(seconds[i])) for i in np.argsort(seconds, kind="stable")
        ]
        picked: dict[str, DesignPoint] = {}

        def take(candidates: Sequence[DesignPoint], most: int) -> None:
            for candidate in candidates:
                if most > 0 and len(picked) < count and candidate.digest not in picked:
                    picked[candidate.digest] = candidate
                    most -= 1

        take(self._first_of_spaces(ranked), max(1, count // 2))
        near = [c for c in ranked if c.digest in self._near]
        take(sorted(near, key=lambda c: self._near[c.digest]), self._share(NEAR, count))
        take(self._rng.sample(ranked, len(ranked)), self._share(EXPLORED, count))
        take(ranked, count)
        return sorted(picked.values(), key=lambda c: c.predicted or 0.0)

    def _share(self, share: float, count: int) -> int:
        """Whole candidates of a batch; over many batches, the share."""
        whole = int(share * count)
        return whole + (self._rng.random() < share * count - whole)

    def _first_of_spaces(self, ranked: Sequence[DesignPoint]) -> list[DesignPoint]:
        """The best expected of every space of which none was proposed; the best such space first."""
        first: dict[int, DesignPoint] = {}
        for candidate in ranked:
            if id(candidate.space) in self._waiting:
                first.setdefault(id(candidate.space), candidate)
        return list(first.values())
