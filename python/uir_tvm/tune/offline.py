# SPDX-License-Identifier: Apache-2.0
"""Tuning for machines that no network reaches: candidates out, what was measured of them back in.

The jobs of a batch (`batch`) say what they are candidates of, so that the folder alone is enough to go on;
the journal has what came of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from ..errors import TuneError
from .batch import Batch, export_batch, load_batch
from .database import ScheduleDatabase
from .job import DEFAULTS, LOST, Job, Settings
from .key import Key
from .state import TuningState
from .task_record import TaskRecord

if TYPE_CHECKING:
    from .candidates import DesignPoint

#: Candidates of a batch by default, and of each of its kernels at least.
COUNT, LEAST = 64, 2


def key_in(database: ScheduleDatabase, expected: Key) -> Key:
    """The key under which times of a machine are kept that is not at hand.

    Parameters
    ----------
    expected : Key
        Without the toolchain of that machine (`key.expected`).

    Returns
    -------
    Key
        That of results that were taken in before; `expected` where there are none.
    """
    for records in database.all_records():
        if records.key.without_toolchain == expected:
            return records.key
    return expected


def export(
    known: TuningState,
    folder: str | os.PathLike[str],
    count: int = COUNT,
    *,
    seed: int = 0,
    settings: Settings = DEFAULTS,
    phase: Callable[[str], None] = lambda text: None,
) -> Batch:
    """Write the candidates that come next, and every kernel's default to compare them with.

    Parameters
    ----------
    known : TuningState
        What was measured before is not written again.
    folder : str or Path
        It must not exist, or be empty.
    count : int
        Candidates, dealt to kernels by their share of the model's time.

    Raises
    ------
    TuneError
        There is nothing left to try.
    ExportError, ToolchainError
        See `batch.export_batch`.
    """
    phase("reading the journal")
    known.replay()
    records = list(known.records.values())
    phase("design spaces")
    worth = {record.task.origin: _worth(known, record) for record in records}
    total = sum(worth.values())
    jobs: list[Job] = []
    for record in records:
        task = record.task
        share = worth[task.origin] / total if total else 1 / len(records)
        candidates = known.search(record).propose(max(LEAST, round(count * share)))
        if not candidates:
            continue
        phase(f"{len(candidates)} candidates of {task.name}")
        jobs.append(attrs.evolve(Job.of(task, seed=seed, settings=settings), origin=task.origin))
        jobs += [
            attrs.evolve(one.job(seed=seed, settings=settings), origin=task.origin, candidate=one.to_json())
            for one in candidates
        ]
    if not jobs:
        raise TuneError(
            "There is nothing left to try.",
            where="--export-batch",
            remedy="all schedules were measured: compile with the database",
        )
    phase(f"building {len(jobs)} kernels")
    return export_batch(jobs, folder)


def take_up(known: TuningState, batch: Batch) -> int:
    """Take up what was measured of a batch.

    What is in the journal already is left out: results may be taken in again when there are more.

    Parameters
    ----------
    known : TuningState
        With the batch's key.

    Returns
    -------
    int
        How many results are new.

    Raises
    ------
    TuneError
        It has candidates of none of the model's kernels.
    """
    known.replay()
    if not any(job.origin in known.records for job in batch.jobs):
        names = ", ".join(sorted({job.kernel for job in batch.jobs}))
        raise TuneError(
            "The batch is of another model.",
            where=str(batch.folder),
            need="candidates of " + ", ".join(record.task.name for record in known.records.values()),
            limit=f"it has candidates of {names}",
        )
    new = 0
    candidates: dict[int, DesignPoint] = {}
    for number, (job, result) in enumerate(zip(batch.jobs, batch.results, strict=True)):
        record = known.records.get(job.origin)
        if record is None or result.outcome == LOST:
            continue
        if job.is_default:
            if record.own is None:
                known.note(record, None, job, result, 0.0)
            continue
        candidate = known.search(record).restore(job.candidate or {})
        if candidate is None:
            continue
        candidates[number] = candidate
        if candidate.digest not in record.tried:
            result = known.note(record, candidate, job, result, 0.0)
            known.tell(record, [candidate], [result])
            new += 1
    for (_, best), (default, faster) in batch.confirmed.items():
        record = known.records.get(batch.jobs[best].origin)
        if record is not None and best in candidates and candidates[best].digest not in record.ratios:
            known.compared(record, candidates[best], default.seconds, faster.seconds)
    return new


def load(folder: str | os.PathLike[str]) -> Batch:
    """The batch in a folder, some of it measured.

    Raises
    ------
    ArtifactError
        The folder is no batch, or a damaged one.
    TuneError
        Nothing of it was measured yet.
    """
    batch = load_batch(folder)
    if not batch.machine:
        raise TuneError(
            "Nothing of the batch was measured yet.",
            where=str(folder),
            need="results.jsonl, which its run.py writes",
            remedy="carry the folder to the device, run `python3 run.py` there, and bring results.jsonl back",
        )
    return batch


def _worth(known: TuningState, record: TaskRecord) -> float:
    """Seconds of the model that are a task's to save, by the roofline where nothing was measured."""
    known.search(record)
    return record.seconds * record.potential or record.task.weight * record.bound
