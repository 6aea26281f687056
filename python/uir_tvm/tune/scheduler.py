# SPDX-License-Identifier: Apache-2.0
"""Which task gets the next batch: MetaSchedule's gradient-based task scheduler says so.

Every task gets a first batch, then the one where the model's time falls most, by what its last batches saved
and by what is left of its time over the batches that it had (Zheng et al., OSDI 2020, section 6).
MetaSchedule asks a task's search as its strategy, and has candidates measured by a builder and a runner: ours
build and run nothing themselves, as whoever measures does both in a process that may crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import tvm
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule
from tvm.s_tir.meta_schedule.builder import BuilderResult
from tvm.s_tir.meta_schedule.runner import RunnerFuture, RunnerResult
from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate

from .context import Context
from .job import LOST, Result
from .task_record import TaskRecord

if TYPE_CHECKING:
    from .candidates import DesignPoint

#: More batches than anybody measures: MetaSchedule wants a number.
ENDLESS = 1 << 30
#: What the last batches saved counts for most of it, what is left of a task's time for the rest; how many are
#: the last ones.
ALPHA, WINDOW = 0.8, 2

#: The next candidates of a task; none where it gets no more.
Take = Callable[[TaskRecord], "Sequence[DesignPoint]"]
#: What came of them; fewer where measuring was ended.
Measure = Callable[[TaskRecord, "Sequence[DesignPoint]"], Sequence[Result]]


def spend(records: Sequence[TaskRecord], take: Take, measure: Measure, seed: int = 0) -> None:
    """Give tasks batches until none takes any more.

    Parameters
    ----------
    records : sequence of TaskRecord
        In the order of their first batches.
    take, measure : callable
        See `Take` and `Measure`.
    seed : int
        By which MetaSchedule chooses among tasks of which it expects the same.

    Raises
    ------
    BaseException
        What one of them raised; no more batches are taken then.
    """
    desk = _Desk(take, measure)
    contexts = [_context(desk, record) for record in records]
    weights = [float(record.task.weight) for record in records]
    meta_schedule.task_scheduler.GradientBased(alpha=ALPHA, window_size=WINDOW, seed=seed + 1).tune(
        contexts, weights, ENDLESS, ENDLESS, 1, _Builder(), _Runner(desk), [], None, None
    )
    if desk.failure is not None:
        raise desk.failure


def _context(desk: _Desk, record: TaskRecord) -> Context:
    generator = meta_schedule.space_generator.ScheduleFn(
        lambda sch: None, sch_rules=[], postprocs=[], mutator_probs={}
    )
    mod = tvm.IRModule({"main": record.task.func})
    return Context(mod, record.task.target, generator, _Strategy(desk, record), 1)


@attrs.define
class _Desk:
    """What strategy and runner share: the batch that is under way, and what went wrong.

    MetaSchedule's C++ stands between them and whoever asked, and lets no KeyboardInterrupt pass.
    """

    take: Take
    measure: Measure
    batch: tuple[TaskRecord, Sequence[DesignPoint]] | None = None
    failure: BaseException | None = None

    def candidates(self, record: TaskRecord) -> list[MeasureCandidate] | None:
        """The next batch of a task, as MetaSchedule has candidates; None ends the task."""
        self.batch = record, self._asked(self.take, record)
        return [MeasureCandidate(candidate.sch, []) for candidate in self.batch[1]] or None

    def results(self) -> list[RunnerResult]:
        """What came of the batch."""
        assert self.batch is not None
        found: Sequence[Result] = self._asked(self.measure, *self.batch)
        lost = [Result(outcome=LOST, said="not measured")] * (len(self.batch[1]) - len(found))
        return [
            RunnerResult(list(result.seconds), None) if result.ok else RunnerResult(None, result.outcome)
            for result in (*found, *lost)
        ]

    def _asked(self, function: Callable[..., Sequence[Any]], *arguments: Any) -> Sequence[Any]:
        """What a function gives; nothing after something went wrong."""
        if self.failure is not None:
            return ()
        try:
            return function(*arguments)
        except BaseException as error:  # raised again by `spend`
            self.failure = error
            return ()


@derived_object
class _Strategy(meta_schedule.search_strategy.PySearchStrategy):
    """The search of a task."""

    def __init__(self, desk: _Desk, record: TaskRecord) -> None:
        super().__init__()
        self.desk, self.record = desk, record

    def _initialize_with_tune_context(self, context: meta_schedule.TuneContext) -> None:
        """Nothing of the context is needed."""

    def pre_tuning(self, *_: Any) -> None:
        """The search has its design spaces."""

    def post_tuning(self) -> None:
        """The search may go on later."""

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """See `_Desk.candidates`."""
        return self.desk.candidates(self.record)

    def notify_runner_results(self, candidates: Any, results: Any) -> None:
        """The search was told by whoever measured."""

    def clone(self) -> _Strategy:
        """For another context."""
        return _Strategy(self.desk, self.record)


@derived_object
class _Builder(meta_schedule.builder.PyBuilder):
    """Leaves building to whoever measures."""

    def build(self, build_inputs: Sequence[Any]) -> list[BuilderResult]:
        """Nothing that failed."""
        return [BuilderResult("built where it runs", None) for _ in build_inputs]


@derived_object
class _Runner(meta_schedule.runner.PyRunner):
    """Has the batch measured that is under way."""

    def __init__(self, desk: _Desk) -> None:
        super().__init__()
        self.desk = desk

    def run(self, runner_inputs: Sequence[Any]) -> list[RunnerFuture]:
        """All done when this returns."""
        results = self.desk.results()
        assert len(results) == len(runner_inputs), (len(results), len(runner_inputs))
        return [RunnerFuture(lambda: True, lambda result=result: result) for result in results]
