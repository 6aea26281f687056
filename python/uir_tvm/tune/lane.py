# SPDX-License-Identifier: Apache-2.0
"""A task while it is tuned: what is known of it, its search, and what was tried."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from .job import Job, Result, Settings
from .journal import Confirmation
from .scheduler import TaskState
from .task import Task

#: Comparisons in a row that may fail before a task's candidates are left alone until the next run.
ATTEMPTS = 8


class Candidate(Protocol):
    """What a search proposes (`candidates.Candidate`)."""

    task: Any
    space: Any
    sch: Any
    graph: Any
    digest: str

    def job(self, *, seed: int = ..., settings: Settings = ...) -> Job:
        """To be measured."""
        ...

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        ...


class Search(Protocol):
    """The search of a task (`search.TaskSearch`).

    Attributes
    ----------
    default : Candidate or None
        The compiler's own schedule.
    """

    default: Any

    def propose(self, n: int) -> Sequence[Any]:
        """What to measure next, nothing twice; less where there is no more."""
        ...

    def tell(self, candidates: Sequence[Any], results: Sequence[Result]) -> None:
        """What came of it."""
        ...

    def skip(self, digests: Iterable[str]) -> None:
        """Candidates of these digests are not to be proposed."""
        ...

    def restore(self, data: Mapping[str, Any]) -> Any:
        """A candidate from the journal; None where there is no such any more."""
        ...


@attrs.define(eq=False)
class Lane:
    """A task while it is tuned.

    Attributes
    ----------
    state : TaskState
        What the scheduler needs.
    default : Result or None
        Of the compiler's own schedule; None: not measured yet.
    default_wall : float
        Seconds that measuring it took.
    tried : dict of str to (candidate, seconds)
        Candidates that were measured and right, by digest, and what they took by themselves.
    ratios : dict of str to float
        Of those that were compared with the default, in turns: their time over its time. They are not
        compared again.
    kept : Confirmation or None
        What the database has.
    failures : int
        Comparisons in a row that did not show a gain.
    next : list
        Proposed and not measured yet.
    propose_wall : float
        Seconds that proposing them took.
    reports : list of str
        Files about candidates that were wrong.
    resumed : int
        Trials of earlier runs.
    digests : set of str
        Of all candidates that were tried, whatever came of it.
    """

    state: TaskState
    search: Search | None = None
    default: Result | None = None
    default_wall: float = 0.0
    tried: dict[str, tuple[Any, float]] = attrs.Factory(dict)
    ratios: dict[str, float] = attrs.Factory(dict)
    kept: Confirmation | None = None
    failures: int = 0
    next: list[Any] = attrs.Factory(list)
    propose_wall: float = 0.0
    reports: list[str] = attrs.Factory(list)
    resumed: int = 0
    digests: set[str] = attrs.Factory(set)

    @property
    def task(self) -> Task:
        """What is tuned."""
        return self.state.task

    @property
    def best(self) -> tuple[Any, float] | None:
        """The fastest candidate and its seconds; None where none was measured."""
        times = {digest: self.seconds_of(digest) for digest in self.tried}
        digest = min(times, key=times.__getitem__, default=None)
        return None if digest is None or math.isinf(times[digest]) else (self.tried[digest][0], times[digest])

    def seconds_of(self, digest: str) -> float:
        """Of a candidate that was measured: as it compares with the default, where that is known."""
        ratio = self.ratios.get(digest)
        return self.tried[digest][1] if ratio is None else ratio * self.state.default

    @property
    def known(self) -> float:
        """Seconds of what the compiler takes now, on the scale of the trials."""
        return self.state.default * (1.0 if self.kept is None else self.kept.ratio)

    def pending(self, noise: float) -> Any | None:
        """The candidate that seems faster than what the compiler takes, and was not compared yet.

        Parameters
        ----------
        noise : float
            By what share of the time it must be faster; by as much more after each comparison that failed:
            what seemed faster by so much was not.
        """
        best = self.best
        if best is None or self.failures >= ATTEMPTS or best[0].digest in self.ratios:
            return None
        margin = noise * (1 + self.failures)
        return best[0] if best[1] < self.known * (1 - margin) else None

    def take_up_default(self, result: Result, wall: float) -> None:
        """What came of the compiler's own schedule."""
        self.default, self.default_wall = result, wall
        if result.ok:
            self.state.default = result.median
            self.state.best = min(self.state.best, result.median)
        else:
            said = result.said.partition("\n")[0]
            self.state.stopped = f"its own schedule is not measured ({result.outcome}: {said})"

    def take_up_confirmation(self, confirmation: Confirmation) -> None:
        """What came of a comparison with the default."""
        self.ratios[confirmation.digest] = confirmation.ratio
        if confirmation.default:
            # the machine was busy when it took longer: beside that every candidate would seem fast
            self.state.default = min(self.state.default, confirmation.seconds[0])
        if confirmation.kept:
            self.kept, self.failures = confirmation, 0
        else:
            self.failures += 1
        self.state.best = min(self.state.default, self.best[1] if self.best is not None else math.inf)
