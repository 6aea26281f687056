# SPDX-License-Identifier: Apache-2.0
"""What is known of the tasks that are tuned, in memory as on the disk.

Nothing is only in memory: a trial is in the journal before anything is made of it, and what was found faster
in a comparison is in the database at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from ..errors import ScheduleRefusedError
from ..explain.tuning_summary import SizeTime
from .database import ScheduleDatabase
from .job import WRONG, Job, Result
from .journal import Confirmation, Journal, Trial
from .key import Key, key_of
from .representative_graphs import learned_of
from .task import Task
from .task_record import TaskRecord
from .wrong import keep

if TYPE_CHECKING:
    from .candidates import DesignPoint
    from .cost_model import CostModel
    from .search import TaskSearch

log = logging.getLogger(__name__)

#: By so much less than the default's a candidate's time must be before it is compared with it, and then in
#: the comparison: what a second measurement of the same code differs by is no gain. Modelled times do not
#: vary.
NOISE, GAIN = 0.03, 0.01
#: Trials of a task in a journal that are made candidates again; each takes some hundredths of a second.
RESTORED = 64


class TuningState:
    """See the module.

    Parameters
    ----------
    tasks : sequence of Task
        For one target.
    database : ScheduleDatabase
    make_search : callable
        Task -> its search.
    cost_model : CostModel, optional
        Is told of every time.
    modelled : bool
        Whether times are a host model's.
    key : Key, optional
        What times are true of; default: this machine and the tasks' target.

    Attributes
    ----------
    records : dict of str to TaskRecord
        By the tasks' origins.
    trials : int
        Of this run, the compiler's own schedules apart.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        database: ScheduleDatabase,
        make_search: Callable[[Task], TaskSearch],
        *,
        cost_model: CostModel | None = None,
        modelled: bool = False,
        key: Key | None = None,
    ) -> None:
        self.database, self.modelled, self.cost_model = database, modelled, cost_model
        self.key = key_of(tasks[0].target) if key is None else key
        self.journal = Journal(database.folder, self.key)
        self.records = {task.origin: TaskRecord(task) for task in tasks}
        self.trials = 0
        self._make_search = make_search

    @property
    def states(self) -> list[TaskRecord]:
        """Of all tasks."""
        return list(self.records.values())

    @property
    def resumed(self) -> int:
        """Trials of earlier runs."""
        return sum(record.resumed for record in self.records.values())

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
            record = self.records.get(line.origin)
            if record is None:
                continue
            if isinstance(line, Confirmation):
                confirmations.append(line)
            elif line.candidate is None:
                record.take_up(line)
            else:
                trials.setdefault(line.origin, []).append(line)
        for origin, found in trials.items():
            self._take_up(self.records[origin], found)
        for confirmation in confirmations:
            self.records[confirmation.origin].take_up_confirmation(confirmation)
        for record in self.records.values():
            record.failures = 0  # another run, another try

    def _take_up(self, record: TaskRecord, trials: Sequence[Trial]) -> None:
        """Trials of the journal: the fastest are candidates again, the others only not repeated."""
        record.resumed = len(trials)
        fastest = sorted((t for t in trials if t.result.ok), key=lambda t: t.result.median)[:RESTORED]
        search, restored = self.search(record), {}
        search.skip({trial.digest for trial in trials} - {trial.digest for trial in fastest})
        for trial in fastest:
            candidate = search.restore(trial.candidate or {})
            if candidate is not None:  # its recipe makes it still
                restored[trial.digest] = candidate, trial.result
        for trial in trials:
            record.take_up(trial, restored.get(trial.digest, (None,))[0])
        self.tell(
            record, [candidate for candidate, _ in restored.values()], [r for _, r in restored.values()]
        )

    def search(self, record: TaskRecord) -> TaskSearch:
        """The search of a task, made when it is first asked for."""
        if record.search is None:
            record.search = self._make_search(record.task)
            record.bound = record.search.bound
            if record.search.default is not None and record.own is not None:
                self.tell(record, [record.search.default], [record.own.result])
        return record.search

    def tell(self, record: TaskRecord, candidates: Sequence[DesignPoint], results: Sequence[Result]) -> None:
        """The search and the cost model learn what came of candidates."""
        self.search(record).tell(candidates, results)
        if self.cost_model is not None:
            task, graphs = record.task, [candidate.graph for candidate in candidates]
            for learned in learned_of(task.origin, task.points, graphs, results):
                self.cost_model.update(*learned)

    def note(
        self, record: TaskRecord, candidate: DesignPoint | None, job: Job, result: Result, wall: float
    ) -> Result:
        """Keep what came of a candidate, or of the compiler's own schedule (None).

        Returns
        -------
        Result
            With the path of its report in the place of that, where the candidate was wrong.
        """
        if result.outcome == WRONG:
            result = attrs.evolve(result, report=str(keep(job, result, self.database.folder)))
        digest, data = ("", None) if candidate is None else (candidate.digest, candidate.to_json())
        trial = Trial(record.task.origin, record.task.name, digest, data, result, wall)
        self.journal.add(trial)
        self.trials += candidate is not None
        record.take_up(trial, candidate)
        return result

    def pending(self, record: TaskRecord) -> DesignPoint | None:
        """The candidate of a task that is to be compared with the default; None where there is none."""
        return record.pending(0.0 if self.modelled else NOISE)

    def waiting(self) -> list[TaskRecord]:
        """The tasks with a candidate to be compared."""
        return [record for record in self.records.values() if self.pending(record) is not None]

    def compared(
        self, record: TaskRecord, candidate: DesignPoint, default: Result, best: Result
    ) -> Confirmation:
        """Keep what came of a comparison in turns; the database takes a schedule that was faster.

        Parameters
        ----------
        default, best : Result
            Of the compiler's own schedule and of the candidate.
        """
        task = record.task
        times = zip(task.points, default.medians, best.medians, strict=False)
        by_size = tuple(SizeTime(dict(p.sizes), p.weight, own, other, str(p)) for p, own, other in times)
        made = Confirmation(task.origin, candidate.digest, default.seconds, best.seconds, False, by_size)
        least = 1.0 if record.kept is None else record.kept.ratio
        kept = made.ratio < least * (1 - (0.0 if self.modelled else GAIN))
        if kept:
            try:
                self.database.add(
                    task.func,
                    candidate.sch,
                    _comparable(record, made),
                    task.target,
                    begun=candidate.space.begun,
                    key=self.key,
                    by_size=by_size,
                )
            except ScheduleRefusedError as error:
                log.warning("%s", error)
                made, kept = attrs.evolve(made, best=()), False
        made = attrs.evolve(made, kept=kept)
        self.journal.add(made)
        record.take_up_confirmation(made)
        return made


def _comparable(record: TaskRecord, made: Confirmation) -> list[float]:
    """The seconds of a schedule for the database, whose records of a kernel are told apart by them.

    Two comparisons may be hours apart, on a machine that was busy once: what a schedule took is put on the
    scale of the default's first measurement.
    """
    own = None if record.own is None else record.own.result
    return [made.ratio * (own.median if own is not None and own.ok else made.seconds[0])]
