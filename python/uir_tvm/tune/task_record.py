# SPDX-License-Identifier: Apache-2.0
"""What is known of a task while it is tuned: its times, its search, what was tried and compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from .job import OK, WRONG, Job
from .journal import Confirmation, Trial
from .task import Task

if TYPE_CHECKING:
    from .candidates import DesignPoint
    from .search import TaskSearch

#: Share of its roofline at which a task is left alone.
NEAR_ROOFLINE = 0.95
#: What may be saved of a task of which no bound is known.
UNKNOWN_POTENTIAL = 0.5
#: Comparisons in a row that may fail before a task's candidates are left alone until the next run.
ATTEMPTS = 8


@attrs.define(eq=False)
class TaskRecord:
    """A task while it is tuned: what the scheduler needs, what was tried, and what the database has.

    Attributes
    ----------
    bound : float
        Seconds of its roofline; 0 where that is not known.
    default, best : float
        Seconds of the compiler's own schedule, and of the fastest one, confirmed or not.
    own : Trial or None
        Of the compiler's own schedule; None: not measured yet.
    tried : dict of str to Trial
        Of candidates, by digest, whatever came of them.
    candidates : dict of str to DesignPoint
        Those of them that may be compared with the default.
    ratios : dict of str to float
        Of those that were, in turns: their time over its time. They are not compared again.
    kept : Confirmation or None
        What the database has.
    failures : int
        Comparisons in a row that did not show a gain.
    stopped : str
        Why it gets no more batches; empty while it may.
    search : TaskSearch or None
        Made when it is first asked for.
    next, propose_wall : list, float
        Proposed and not measured yet; seconds that proposing them took.
    trial_wall : float
        Seconds of a trial in the last batch of this run; 0 before there was one.
    resumed : int
        Trials of earlier runs.
    """

    task: Task
    bound: float = 0.0
    default: float = math.inf
    best: float = math.inf
    own: Trial | None = None
    tried: dict[str, Trial] = attrs.Factory(dict)
    candidates: dict[str, DesignPoint] = attrs.Factory(dict)
    ratios: dict[str, float] = attrs.Factory(dict)
    kept: Confirmation | None = None
    failures: int = 0
    stopped: str = ""
    search: TaskSearch | None = None
    next: list[DesignPoint] = attrs.Factory(list)
    propose_wall: float = 0.0
    trial_wall: float = 0.0
    resumed: int = 0

    @property
    def outcomes(self) -> Counter[str]:
        """Trials by outcome, the compiler's own schedule apart."""
        return Counter(trial.result.outcome for trial in self.tried.values())

    @property
    def reports(self) -> list[str]:
        """Files about candidates that were wrong."""
        return [trial.result.report for trial in self.tried.values() if trial.result.outcome == WRONG]

    @property
    def trials(self) -> int:
        """Candidates that were tried."""
        return len(self.tried)

    @property
    def rejected(self) -> int:
        """Candidates of which no time counts."""
        return self.trials - self.outcomes[OK]

    @property
    def seconds(self) -> float:
        """What its launches take in a run of the model, by the best schedule."""
        return self.task.weight * self.best if self.best < math.inf else 0.0

    @property
    def share_of_bound(self) -> float | None:
        """Roofline over best time; None where that is not known, or is no bound as it was beaten."""
        if not 0 < self.bound <= self.best < math.inf:
            return None
        return self.bound / self.best

    @property
    def potential(self) -> float:
        """What may be saved of the best time at all."""
        share = self.share_of_bound
        return UNKNOWN_POTENTIAL if share is None else 1 - share

    def why_stopped(self) -> str:
        """Why it needs no more batches, as far as its times say that."""
        share = self.share_of_bound
        if self.default == math.inf:
            return "its own schedule could not be measured"
        if share is not None and share >= NEAR_ROOFLINE:
            return f"at {share:.0%} of its roofline"
        return ""

    @property
    def fastest(self) -> tuple[DesignPoint, float] | None:
        """The fastest candidate and its seconds; None where none was measured."""
        times = {digest: self.seconds_of(digest) for digest in self.candidates}
        digest = min(times, key=times.__getitem__, default=None)
        return (
            None if digest is None or math.isinf(times[digest]) else (self.candidates[digest], times[digest])
        )

    def seconds_of(self, digest: str) -> float:
        """Of a candidate: as it compares with the default, where that is known."""
        ratio = self.ratios.get(digest)
        return self.tried[digest].result.median if ratio is None else ratio * self.default

    @property
    def known(self) -> float:
        """Seconds of what the compiler takes now, on the scale of the trials."""
        return self.default * (1.0 if self.kept is None else self.kept.ratio)

    def pending(self, noise: float) -> DesignPoint | None:
        """The candidate that seems faster than what the compiler takes, and was not compared yet.

        Parameters
        ----------
        noise : float
            By what share of the time it must be faster; by as much more after each comparison that failed:
            what seemed faster by so much was not.
        """
        best = self.fastest
        if best is None or self.failures >= ATTEMPTS or best[0].digest in self.ratios:
            return None
        margin = noise * (1 + self.failures)
        return best[0] if best[1] < self.known * (1 - margin) else None

    def weighted(self, job: Job) -> Job:
        """A job, whose seconds are scaled ratios: at each size those to the default's count, by the weight.

        The default's own are the weighted mean of its seconds. Long calls alone would decide otherwise.
        """
        if self.own is None or not self.own.result.by_size:
            return job
        mean = self.own.result.median
        each = zip(job.points, self.own.result.medians, strict=True)
        points = [attrs.evolve(p, weight=p.weight * mean / seconds) for p, seconds in each]
        return attrs.evolve(job, points=points)

    def take_up(self, trial: Trial, candidate: DesignPoint | None = None) -> None:
        """A trial of the journal, and the candidate, where it may be compared with the default."""
        result = trial.result
        if trial.candidate is not None:
            self.tried[trial.digest] = trial
            if candidate is not None and result.ok:
                self.candidates[trial.digest] = candidate
                self.best = min(self.best, result.median)
            return
        self.own = trial
        if result.ok:
            self.default = result.median
            self.best = min(self.best, result.median)
        else:
            said = result.said.partition("\n")[0]
            self.stopped = f"its own schedule is not measured ({result.outcome}: {said})"

    def take_up_confirmation(self, confirmation: Confirmation) -> None:
        """What came of a comparison with the default."""
        self.ratios[confirmation.digest] = confirmation.ratio
        if confirmation.default:
            # the machine was busy when it took longer: beside that every candidate would seem fast
            self.default = min(self.default, confirmation.seconds[0])
        if confirmation.kept:
            self.kept, self.failures = confirmation, 0
        else:
            self.failures += 1
        self.best = min(self.default, self.fastest[1] if self.fastest is not None else math.inf)


def total_seconds(records: Iterable[TaskRecord]) -> float:
    """What all launches of all tasks take in a run of the model, by the best schedules."""
    return sum(record.seconds for record in records)
