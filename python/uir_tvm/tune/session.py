# SPDX-License-Identifier: Apache-2.0
"""Tuning of some tasks within a budget: batches go where the model gains most.

Every task gets its default measured and a first batch; then `scheduler.spend` says which one gets the next.
The end may come at any moment, and the next session on the same database goes on (`state`).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from ..explain.tuning_summary import SiteResult
from ..interrupt import Interruptible
from .budget import Budget
from .job import DEFAULTS, LOST, Job, Result, Settings
from .journal import Confirmation
from .measure import Measurer
from .scheduler import spend
from .state import NOISE, TuningState
from .task_record import TaskRecord

if TYPE_CHECKING:
    from .candidates import DesignPoint

#: Candidates of a batch, and at least so many for each worker, so that none waits for the slowest.
BATCH, PER_WORKER = 8, 2
#: A candidate may take so many times as long as the default did, from building to timing, within limits.
PATIENCE, LEAST_TIMEOUT, MOST_TIMEOUT = 5.0, 10.0, 120.0
#: Seconds for which pending schedules are confirmed after an interruption.
AFTER_INTERRUPT = 10.0
#: What a confirmation takes, in trials, before there was one.
CONFIRMATION_IN_TRIALS = 3.0
#: The next confirmation takes what the median of so many last ones took: the first one starts workers.
LATELY = 3
#: Trials for which a session goes on where confirming took less time than was kept for it.
FEW = 4
TIME_IS_UP = "time is up"


class Watcher:
    """Is told of what happens; this one does nothing."""

    def started(self, session: Session) -> None:
        """The tasks are known, and what the journal has of them."""

    def batch(self, state: TaskRecord, count: int) -> None:
        """A batch of a task begins."""

    def default(self, state: TaskRecord, result: Result) -> None:
        """The compiler's own schedule of a task was measured."""

    def trial(self, state: TaskRecord, result: Result) -> None:
        """A candidate's result came in."""

    def confirmed(self, state: TaskRecord, confirmation: Confirmation) -> None:
        """A schedule was compared with the default."""

    def site(self, result: SiteResult) -> None:
        """A site of the graph was measured."""

    def phase(self, text: str) -> None:
        """Something else takes time."""


class Over(Exception):
    """The budget is used up, or the user asks for an end, in the midst of something."""


class Session:
    """See the module.

    Parameters
    ----------
    known : TuningState
        Of the tasks.
    measurer : Measurer
    budget : Budget
    seed : int
        Of the inputs.
    settings : Settings
        How candidates are measured; the time limit is the session's own.
    watcher : Watcher, optional
    started : float, optional
        When the run began, by `clock`: reading the model counts. Default: now.
    clock : callable
        Seconds.
    after_batch : callable
        Called when a batch is done.
    interrupt : Interruptible, optional
        One that may have noted a signal already.

    Attributes
    ----------
    ended : str
        Why it ended.
    """

    def __init__(
        self,
        known: TuningState,
        measurer: Measurer,
        budget: Budget,
        *,
        seed: int = 0,
        settings: Settings = DEFAULTS,
        watcher: Watcher | None = None,
        started: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        after_batch: Callable[[], None] = lambda: None,
        interrupt: Interruptible | None = None,
    ) -> None:
        self.known, self.measurer, self.budget = known, measurer, budget
        self.seed, self.settings = seed, settings
        self.watcher, self.clock, self.after_batch = watcher or Watcher(), clock, after_batch
        self.started = clock() if started is None else started
        self.deadline = math.inf if budget.seconds is None else self.started + budget.seconds
        self.interrupt = interrupt or Interruptible()
        self.ended = ""
        self._confirm_walls: list[float] = []

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self.clock() - self.started

    def seconds_left(self) -> float | None:
        """Until the budget is used up, as far as that can be told; None where it cannot."""
        left = [] if self.deadline == math.inf else [self.deadline - self.clock()]
        if self.budget.trials is not None and self.known.trials:
            each = self.seconds / self.known.trials
            left.append(each * (self.budget.trials - self.known.resumed - self.known.trials))
        return max(0.0, min(left)) if left else None

    def run(self) -> None:
        """Tune until the budget is used up, every task has stopped, or the user asks for an end.

        Raises
        ------
        KeyboardInterrupt
            The user asked twice.
        DatabaseError
            The database cannot be read or written.
        """
        with self.interrupt:
            self.watcher.phase("reading the journal")
            self.known.replay()
            self.watcher.started(self)
            self._measure_defaults()
            self._spend()
            while self.ended == TIME_IS_UP and self.clock() + self._worthwhile() < self.deadline:
                self.ended = ""  # confirming took less than was kept for it
                self._spend()

    def _spend(self) -> None:
        """Batches until there is a reason to end, then what is pending."""
        if not self.ended:
            largest_first = sorted(self.known.states, key=lambda record: -record.seconds)
            spend(largest_first, self._take, self._measure, self.seed)
            self.ended = self.ended or "nothing left to try"
        self._confirm_all()

    def _worthwhile(self) -> float:
        """Seconds in which a few more trials could be made and confirmed."""
        record = max(self.known.records.values(), key=lambda record: record.seconds)
        return FEW * self._trial_seconds(record) + record.propose_wall + self._confirmation_seconds(record)

    def _check(self) -> None:
        """End where there is nothing left to spend, or the user wants it."""
        if self.interrupt.signal:
            self.ended = "interrupted"
        elif self.budget.trials is not None and self.known.resumed + self.known.trials >= self.budget.trials:
            self.ended = "all trials made"
        elif self.clock() >= self.deadline - self._reserve():
            self.ended = TIME_IS_UP
        if self.ended:
            raise Over

    # ---- measuring -----------------------------------------------------------------------------------

    def _measure_defaults(self) -> None:
        """The compiler's own schedules, of which nothing is known yet."""
        records = [record for record in self.known.records.values() if record.own is None]
        if records:
            self.watcher.phase("default schedules")
            if not self._run([(record, None) for record in records], self._within(MOST_TIMEOUT)):
                self.ended = self.ended or "nobody is left to measure"

    def _run(
        self, rows: Sequence[tuple[TaskRecord, DesignPoint | None]], settings: Settings
    ) -> list[tuple[DesignPoint | None, Result]]:
        """Candidates, or own schedules (None): measured, in the journal, until there is a reason to end."""
        jobs = [record.weighted(self._job(record, candidate, settings)) for record, candidate in rows]
        last, come = self.clock(), 0
        done: list[tuple[DesignPoint | None, Result]] = []

        def came(index: int, result: Result) -> None:
            nonlocal last, come
            wall, last, come = self.clock() - last, self.clock(), come + 1
            record, candidate = rows[index]
            if result.outcome != LOST:
                # of an own schedule the time by itself: by it the others' patience is reckoned
                wall *= self._workers if candidate is None else 1
                result = self.known.note(record, candidate, jobs[index], result, wall)
                done.append((candidate, result))
            elif candidate is not None:
                record.next.append(candidate)
            (self.watcher.default if candidate is None else self.watcher.trial)(record, result)
            if candidate is not None or come < len(rows):
                self._check()

        try:
            self.measurer.measure(jobs, came)
        except Over:
            pass  # the rest is not measured
        return done

    def _job(self, record: TaskRecord, candidate: DesignPoint | None, settings: Settings) -> Job:
        """A candidate, or the own schedule (None), to be measured."""
        if candidate is None:
            return Job.of(record.task, seed=self.seed, settings=settings)
        return candidate.job(seed=self.seed, settings=settings)

    def _take(self, record: TaskRecord) -> list[DesignPoint]:
        """The next batch of a task; stops it where there is none."""
        record.stopped = record.stopped or record.why_stopped()
        try:
            self._check()
            if record.stopped:
                return []
            count, begin, search = self._batch_size(), self.clock(), self.known.search(record)
            if begin + record.propose_wall >= self.deadline - self._reserve():
                self.ended = TIME_IS_UP
                return []
        except Over:
            return []
        if len(record.next) < count:
            record.next += search.propose(count - len(record.next))
            record.propose_wall = self.clock() - begin
        taken, record.next = record.next[:count], record.next[count:]
        if taken:
            self.watcher.batch(record, len(taken))
        else:
            record.stopped = "every schedule was tried" if record.trials else "it has one schedule only"
        return taken

    def _measure(self, record: TaskRecord, candidates: Sequence[DesignPoint]) -> list[Result]:
        """A batch of a task: measured, in the journal, told to the search."""
        before, begin = record.best, self.clock()
        done = self._run([(record, candidate) for candidate in candidates], self._patience(record))
        results = [result for _, result in done]
        if done:
            self.known.tell(record, [candidate for candidate, _ in done if candidate is not None], results)
            record.trial_wall = (self.clock() - begin) / len(done)
        if not done:
            self.ended = self.ended or "nobody is left to measure"
        if self.ended:
            return results
        self.after_batch()
        # what varies is compared when the task has calmed down; modelled times do not vary
        if self.known.modelled or record.best >= before * (1 - NOISE):
            self._confirm(record)
        return results

    @property
    def _workers(self) -> int:
        return max(1, int(getattr(self.measurer, "workers", 1)))

    def _batch_size(self) -> int:
        """So many that workers are busy; where time is up earlier, a batch is cut short."""
        count = max(BATCH, PER_WORKER * self._workers)
        if self.budget.trials is not None:
            count = min(count, self.budget.trials - self.known.resumed - self.known.trials)
        return count

    def _trial_seconds(self, record: TaskRecord) -> float:
        """Between a trial of a task and the next: as lately, else as with the default."""
        return max(1e-3, record.trial_wall or _wall(record) / self._workers)

    def _patience(self, record: TaskRecord) -> Settings:
        """Time for a candidate, by what the default took."""
        return self._within(min(max(LEAST_TIMEOUT, PATIENCE * _wall(record)), MOST_TIMEOUT))

    def _within(self, seconds: float) -> Settings:
        """The settings with a time limit that ends with the budget."""
        left = self.deadline - self.clock()
        return attrs.evolve(self.settings, timeout_seconds=max(1.0, min(seconds, left)))

    # ---- confirming ----------------------------------------------------------------------------------

    def _confirm(self, record: TaskRecord) -> None:
        """Compare the fastest candidate with the default, in turns."""
        candidate = self.known.pending(record)
        if candidate is None:
            return
        begin, settings = self.clock(), self._patience(record)
        jobs = [record.weighted(self._job(record, each, settings)) for each in (None, candidate)]
        if self.known.modelled and record.own is not None:
            # the default takes what it took; the candidate is checked more thoroughly
            (best,), default = self.measurer.confirm(jobs[1:]), record.own.result
        else:
            default, best = self.measurer.confirm(jobs)
        confirmation = self.known.compared(record, candidate, default, best)
        self._confirm_walls.append(self.clock() - begin)
        self.watcher.confirmed(record, confirmation)

    def _confirm_all(self) -> None:
        """What is pending, largest gain for the model first, while there is time; a resume takes the rest."""
        end = self.deadline if not self.interrupt.signal else self.clock() + AFTER_INTERRUPT
        while True:
            waiting = self.known.waiting()
            if not waiting:
                return
            record = max(waiting, key=_worth)
            if self.clock() + self._confirmation_seconds(record) > end + 1.0:
                return
            self.watcher.phase(f"confirming {record.task.name}")
            self._confirm(record)

    def _reserve(self) -> float:
        """Seconds to keep for confirmations."""
        return sum(map(self._confirmation_seconds, self.known.waiting()))

    def _confirmation_seconds(self, record: TaskRecord) -> float:
        if self._confirm_walls:
            return statistics.median(self._confirm_walls[-LATELY:])
        return CONFIRMATION_IN_TRIALS * self._trial_seconds(record)


def _wall(record: TaskRecord) -> float:
    """Seconds that measuring the compiler's own schedule took; 0 before that."""
    return record.own.wall if record.own is not None else 0.0


def _worth(record: TaskRecord) -> float:
    """Seconds of a run of the model that what is pending may save."""
    return record.task.weight * (record.known - record.fastest[1]) if record.fastest is not None else 0.0
