# SPDX-License-Identifier: Apache-2.0
"""The summary of a tuning run, of what is known of its tasks."""

from __future__ import annotations

import tvm

from ..explain.tuning_summary import Row, SiteResult, Summary
from ..target import registry
from .database import ScheduleDatabase
from .interrupt import Interruptible
from .state import TuningState
from .task import Extracted
from .task_record import TaskRecord


def without_tasks(
    label: str,
    target: tvm.target.Target,
    database: ScheduleDatabase,
    measurer: str,
    seconds: float,
    sites: tuple[SiteResult, ...],
    interrupt: Interruptible,
) -> Summary:
    """Of a model that has no kernel of ours, whose graph alone was tuned."""
    return Summary(
        model=label,
        target=registry.resolve(target).name,
        place=registry.place_of(target).name,
        measurer=measurer,
        database=str(database.folder),
        rows=(),
        modelled=False,
        seconds=seconds,
        trials=0,
        resumed=0,
        ended="interrupted" if interrupt.signal else "the model has no kernel of ours",
        signal=interrupt.signal,
        sites=sites,
    )


def summarise(
    known: TuningState,
    label: str,
    found: Extracted,
    measurer: str,
    seconds: float,
    ended: str,
    signal: int = 0,
    sites: tuple[SiteResult, ...] = (),
) -> Summary:
    """What is known of tasks, as a summary; its parameters are those of `Summary`."""
    target = found.tasks[0].target
    records = sorted(known.records.values(), key=lambda record: -_before(record))
    total = sum(map(_before, records))
    return Summary(
        model=label,
        target=registry.resolve(target).name,
        place=registry.place_of(target).name,
        measurer=measurer,
        database=str(known.database.folder),
        rows=tuple(_row(known, record, total) for record in records),
        modelled=known.modelled,
        seconds=seconds,
        trials=known.trials,
        resumed=known.resumed,
        ended=ended,
        signal=signal,
        left=found.left,
        library=found.library,
        sites=sites,
    )


def _before(record: TaskRecord) -> float:
    known = record.default_result is not None and record.default_result.ok
    return record.task.weight * record.default if known else 0.0


def _row(known: TuningState, record: TaskRecord, total: float) -> Row:
    state, default, best = record, None, None
    if record.default_result is not None and record.default_result.ok:
        default = best = state.default
    if record.kept is not None:
        default, best = record.kept.seconds
    waiting = known.pending(record)
    # on the scale of the comparison that the other times are of
    pending = None
    if waiting is not None and default:
        pending = record.seconds_of(waiting.digest) * default / state.default
    near = state.bound / best if best and state.bound > 0 else None
    return Row(
        kernel=record.task.name,
        origin=record.task.origin,
        launches=record.task.weight,
        share_before=_before(record) / total if total else 0.0,
        default=default,
        best=best,
        pending=pending,
        of_roofline=near,
        trials=state.trials,
        rejected={k: n for k, n in state.outcomes.items() if k != "ok"},
        stopped=state.stopped,
        reports=tuple(record.reports),
    )
