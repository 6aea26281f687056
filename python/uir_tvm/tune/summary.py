# SPDX-License-Identifier: Apache-2.0
"""The summary of a tuning run, of what is known of its tasks."""

from __future__ import annotations

import math

import tvm

from ..explain.tuning_summary import Row, SiteResult, Summary
from ..target import registry
from .job import OK
from .state import TuningState
from .task import Extracted
from .task_record import TaskRecord


def summarise(
    known: TuningState,
    label: str,
    found: Extracted,
    measurer: str,
    seconds: float,
    ended: str,
    signal: int = 0,
    sites: tuple[SiteResult, ...] = (),
    target: tvm.target.Target | None = None,
) -> Summary:
    """What is known of tasks, as a summary; its parameters are those of `Summary`.

    Parameters
    ----------
    target : Target, optional
        Default: that of the tasks.
    """
    target = found.tasks[0].target if target is None else target
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
    return record.task.weight * record.default if math.isfinite(record.default) else 0.0


def _row(known: TuningState, record: TaskRecord, total: float) -> Row:
    default = best = record.default if math.isfinite(record.default) else None
    if record.kept is not None:
        default, best = record.kept.seconds
    waiting = known.pending(record)
    # on the scale of the comparison that the other times are of
    pending = None
    if waiting is not None and default:
        pending = record.seconds_of(waiting.digest) * default / record.default
    return Row(
        kernel=record.task.name,
        origin=record.task.origin,
        launches=record.task.weight,
        share_before=_before(record) / total if total else 0.0,
        default=default,
        best=best,
        pending=pending,
        of_roofline=record.bound / best if best and record.bound > 0 else None,
        trials=record.trials,
        rejected={outcome: n for outcome, n in record.outcomes.items() if outcome != OK},
        stopped=record.stopped,
        reports=tuple(record.reports),
        by_size=() if record.kept is None else record.kept.by_size,
    )
