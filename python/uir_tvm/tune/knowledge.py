# SPDX-License-Identifier: Apache-2.0
"""What is known of the tasks that are tuned, in memory as on the disk.

Nothing is only in memory: a trial is in the journal before anything is made of it, and what was found faster
in a comparison is in the database at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from ..errors import ScheduleRefusedError
from .database import ScheduleDatabase
from .job import WRONG, Job, Result
from .journal import Confirmation, Journal, Trial
from .key import Key, key_of
from .lane import Lane, Search
from .scheduler import TaskState
from .task import Task
from .wrong import keep

log = logging.getLogger(__name__)

#: By so much less than the default's a candidate's time must be before it is compared with it, and then in
#: the comparison: what a second measurement of the same code differs by is no gain. Modelled times do not
#: vary.
NOISE, GAIN = 0.03, 0.01
#: Trials of a task in a journal that are made candidates again; each takes some hundredths of a second.
RESTORED = 64


class Model(Protocol):
    """Learns what schedules take (`cost_model.CostModel`)."""

    def predict(self, graphs: Sequence[Any]) -> Any:
        """Seconds of iGraphs, or what orders them."""
        ...

    def update(self, groups: Sequence[tuple[str, list[Any], list[float]]]) -> None:
        """(origin, graphs, seconds) of what was measured."""
        ...


class Knowledge:
    """See the module.

    Parameters
    ----------
    tasks : sequence of Task
        For one target.
    database : ScheduleDatabase
    make_search : callable
        Task -> its search.
    bound_of : callable
        A task's search -> seconds of its roofline; 0: not known.
    cost_model : Model, optional
        Is told of every time, and says what is to be expected of a task.
    modelled : bool
        Whether times are a host model's.
    key : Key, optional
        What times are true of; default: this machine and the tasks' target.

    Attributes
    ----------
    lanes : dict of str to Lane
        By the tasks' origins.
    trials : int
        Of this run, the compiler's own schedules apart.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        database: ScheduleDatabase,
        make_search: Callable[[Task], Search],
        *,
        bound_of: Callable[[Any], float] = lambda search: 0.0,
        cost_model: Model | None = None,
        modelled: bool = False,
        key: Key | None = None,
    ) -> None:
        self.database, self.modelled, self.cost_model = database, modelled, cost_model
        self.key = key_of(tasks[0].target) if key is None else key
        self.journal = Journal(database.folder, self.key)
        self.lanes = {task.origin: Lane(TaskState(task)) for task in tasks}
        self.trials = 0
        self._make_search, self._bound_of = make_search, bound_of

    @property
    def states(self) -> list[TaskState]:
        """Of all tasks."""
        return [lane.state for lane in self.lanes.values()]

    @property
    def resumed(self) -> int:
        """Trials of earlier runs."""
        return sum(lane.resumed for lane in self.lanes.values())

    def replay(self) -> None:
        """Take up what the journal has of these tasks.

        Raises
        ------
        DatabaseError
            The journal cannot be read.
        """
        trials: dict[str, list[Trial]] = {}
        confirmations: list[Confirmation] = []
        for line in self.journal.lines():
            lane = self.lanes.get(line.origin)
            if lane is None:
                continue
            if isinstance(line, Confirmation):
                confirmations.append(line)
            elif line.candidate is None:
                lane.take_up_default(line.result, line.wall)
            else:
                trials.setdefault(line.origin, []).append(line)
        for origin, found in trials.items():
            self._take_up_trials(self.lanes[origin], found)
        for confirmation in confirmations:
            self.lanes[confirmation.origin].take_up_confirmation(confirmation)
        for lane in self.lanes.values():
            lane.failures = 0  # another run, another try

    def _take_up_trials(self, lane: Lane, trials: Sequence[Trial]) -> None:
        """Trials of the journal: the fastest are candidates again, the others only not repeated."""
        lane.resumed += len(trials)
        fastest = sorted((t for t in trials if t.result.ok), key=lambda t: t.result.median)[:RESTORED]
        digests = {trial.digest for trial in fastest}
        search = self.search(lane)
        search.skip([trial.digest for trial in trials if trial.digest not in digests])
        told = []
        for trial in trials:
            lane.digests.add(trial.digest)
            candidate = search.restore(trial.candidate or {}) if trial.digest in digests else None
            if candidate is not None:
                self._take_up(lane, candidate, trial.result)
                told.append((candidate, trial.result))
            else:  # slow, failed, or what its recipe does not make any more
                lane.state.outcomes[trial.result.outcome] += 1
                if trial.result.outcome == WRONG:
                    lane.reports.append(trial.result.report)
        self.tell(lane, [candidate for candidate, _ in told], [result for _, result in told])

    def search(self, lane: Lane) -> Search:
        """The search of a task, made when it is first asked for."""
        if lane.search is None:
            lane.search = self._make_search(lane.task)
            lane.state.bound = self._bound_of(lane.search)
            if lane.search.default is not None and lane.default is not None:
                self.tell(lane, [lane.search.default], [lane.default])
        return lane.search

    def tell(self, lane: Lane, candidates: Sequence[Any], results: Sequence[Result]) -> None:
        """The search and the cost model learn what came of candidates."""
        self.search(lane).tell(candidates, results)
        if self.cost_model is not None:
            right = [(c.graph, r.median) for c, r in zip(candidates, results, strict=True) if r.ok]
            group = lane.task.origin, [graph for graph, _ in right], [seconds for _, seconds in right]
            self.cost_model.update([group])

    def promise(self, lane: Lane) -> None:
        """What the cost model expects of the candidates that come next."""
        if self.cost_model is not None and lane.best is not None and lane.next:
            graphs = [lane.best[0].graph, *(candidate.graph for candidate in lane.next)]
            expected = self.cost_model.predict(graphs)
            lane.state.promised = max(0.0, 1 - float(min(expected[1:])) / float(expected[0]))

    def note_default(self, lane: Lane, job: Job, result: Result, wall: float) -> Result:
        """Keep what came of the compiler's own schedule; the result with the path of its report."""
        result = self._filed(job, result)
        self.journal.add(Trial(lane.task.origin, lane.task.name, "", None, result, wall))
        lane.take_up_default(result, wall)
        return result

    def note_trial(self, lane: Lane, candidate: Any, job: Job, result: Result, wall: float) -> Result:
        """Keep what came of a candidate; the result with the path of its report."""
        result = self._filed(job, result)
        data = candidate.to_json()
        self.journal.add(Trial(lane.task.origin, lane.task.name, candidate.digest, data, result, wall))
        self.trials += 1
        self._take_up(lane, candidate, result)
        return result

    def pending(self, lane: Lane) -> Any | None:
        """The candidate of a task that is to be compared with the default; None where there is none."""
        return lane.pending(0.0 if self.modelled else NOISE)

    def compared(
        self, lane: Lane, candidate: Any, default: Sequence[float], best: Sequence[float]
    ) -> Confirmation:
        """Keep what came of a comparison in turns; the database takes a schedule that was faster.

        Parameters
        ----------
        default, best : sequence of float
            Seconds of the compiler's own schedule and of the candidate; empty where one failed.
        """
        task = lane.task
        made = Confirmation(task.origin, candidate.digest, default, best, False)
        least = 1.0 if lane.kept is None else lane.kept.ratio
        kept = made.ratio < least * (1 - (0.0 if self.modelled else GAIN))
        if kept:
            try:
                self.database.add(
                    task.func,
                    candidate.sch,
                    _comparable(lane, made),
                    task.target,
                    begun=candidate.space.begun,
                    key=self.key,
                )
            except ScheduleRefusedError as error:
                log.warning("%s", error)
                made, kept = attrs.evolve(made, best=()), False
        made = attrs.evolve(made, kept=kept)
        self.journal.add(made)
        lane.take_up_confirmation(made)
        return made

    def _take_up(self, lane: Lane, candidate: Any, result: Result) -> None:
        lane.state.measured(result)
        lane.digests.add(candidate.digest)
        if result.ok:
            lane.tried[candidate.digest] = candidate, result.median
        elif result.outcome == WRONG:
            lane.reports.append(result.report)

    def _filed(self, job: Job, result: Result) -> Result:
        """A result whose report, if it was wrong, is in a file of its own."""
        if result.outcome != WRONG:
            return result
        return attrs.evolve(result, report=str(keep(job, result, self.database.folder)))


def _comparable(lane: Lane, made: Confirmation) -> list[float]:
    """The seconds of a schedule for the database, whose records of a kernel are told apart by them.

    Two comparisons may be hours apart, on a machine that was busy once: what a schedule took is put on the
    scale of the default's first measurement.
    """
    first = lane.default.median if lane.default is not None and lane.default.ok else made.seconds[0]
    return [made.ratio * first]
