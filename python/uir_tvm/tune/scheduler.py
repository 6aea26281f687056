# SPDX-License-Identifier: Apache-2.0
"""Which task gets the next batch: the one where a second of tuning saves the model most.

What a batch may save of a task's time is expected from three things: what its last batches saved, how far its
best schedule is from its roofline (which is worth less with every trial that did not get there), and what the
cost model says of the candidates that come next.  That share of ``launches x best seconds``, over the seconds
that a batch takes, orders the tasks, as the gradient of Ansor's task scheduler does (Zheng et al., OSDI 2020,
section 6).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from .job import OK, Result
from .task import Task

#: Share of its roofline at which a task is left alone.
NEAR_ROOFLINE = 0.95
#: What may be saved of a task of which no bound is known.
UNKNOWN_POTENTIAL = 0.5
#: Trials after which the roofline promises half as much as at the beginning.
USUAL = 8
#: Batches whose savings say what the next one may bring.
RECENT = 2


@attrs.frozen
class Batch:
    """Trials of a task that were made together.

    Parameters
    ----------
    trials : int
    before, after : float
        Seconds of the best schedule before and after it.
    wall : float
        Seconds that it took.
    """

    trials: int
    before: float
    after: float
    wall: float

    @property
    def saved(self) -> float:
        """Share of the best time that it saved."""
        return 1 - self.after / self.before if 0 < self.before < math.inf else 0.0


@attrs.define(eq=False)
class TaskState:
    """What is known of a task while it is tuned.

    Attributes
    ----------
    bound : float
        Seconds of its roofline; 0 where that is not known.
    default, best : float
        Seconds of the compiler's own schedule, and of the fastest one, confirmed or not.
    outcomes : Counter of str
        Trials by outcome, the compiler's own schedule apart.
    batches : list of Batch
        Of this run.
    promised : float or None
        Share of the best time that the cost model expects the next batch to save.
    stopped : str
        Why it gets no more batches; empty while it may.
    """

    task: Task
    bound: float = 0.0
    default: float = math.inf
    best: float = math.inf
    outcomes: Counter[str] = attrs.Factory(Counter)
    batches: list[Batch] = attrs.Factory(list)
    promised: float | None = None
    stopped: str = ""

    @property
    def trials(self) -> int:
        """Candidates that were tried."""
        return sum(self.outcomes.values())

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

    def measured(self, result: Result) -> None:
        """Take note of a candidate's result."""
        self.outcomes[result.outcome] += 1
        if result.ok:
            self.best = min(self.best, result.median)

    def expected_saving(self) -> float:
        """Share of the best time that the next batch may save."""
        fresh = self.potential / (1 + self.trials / USUAL)
        last = self.batches[-RECENT:]
        recent = sum(batch.saved for batch in last) / len(last) if last else fresh
        promised = fresh if self.promised is None else self.promised
        return min(self.potential, (recent + fresh + promised) / 3)

    @property
    def batch_seconds(self) -> float:
        """What a batch takes; 1 before there was any."""
        last = self.batches[-RECENT:]
        return sum(batch.wall for batch in last) / len(last) if last else 1.0

    def why_stopped(self) -> str:
        """Why it needs no more batches, as far as its times say that."""
        share = self.share_of_bound
        if self.default == math.inf:
            return "its own schedule could not be measured"
        if share is not None and share >= NEAR_ROOFLINE:
            return f"at {share:.0%} of its roofline"
        return ""


@attrs.frozen
class Chosen:
    """The task that gets the next batch.

    Parameters
    ----------
    state : TaskState
    rate : float
        Seconds that a run of the model is expected to save for each second of tuning.
    why : str
    """

    state: TaskState
    rate: float
    why: str


def choose(states: Sequence[TaskState]) -> Chosen | None:
    """Which task gets the next batch; None when all have stopped.

    Every task gets a first batch before another gets its second, the largest of the model first.
    """
    for state in states:
        state.stopped = state.stopped or state.why_stopped()
    alive = [state for state in states if not state.stopped]
    if not alive:
        return None
    total = total_seconds(states)
    new = [state for state in alive if not state.batches and not state.trials]
    if new:
        first = max(new, key=lambda state: state.seconds)
        return Chosen(first, _rate(first), f"its first batch; {_share(first, total)}")
    best = max(alive, key=_rate)
    return Chosen(best, _rate(best), _why(best, total))


def total_seconds(states: Iterable[TaskState]) -> float:
    """What all launches of all tasks take in a run of the model, by the best schedules."""
    return sum(state.seconds for state in states)


def _rate(state: TaskState) -> float:
    return state.seconds * state.expected_saving() / max(state.batch_seconds, 1e-3)


def _share(state: TaskState, total: float) -> str:
    return f"{state.seconds / total:.0%} of the kernels' time" if total else "no time known"


def _why(state: TaskState, total: float) -> str:
    said = [_share(state, total)]
    share = state.share_of_bound
    unknown = "beyond its roofline" if state.bound > 0 else "roofline not known"
    said.append(unknown if share is None else f"at {share:.0%} of its roofline")
    if state.batches:
        said.append(f"last batch saved {state.batches[-1].saved:.0%}")
    if state.promised is not None:
        said.append(f"the cost model expects {max(0.0, state.promised):.0%}")
    return ", ".join(said)
