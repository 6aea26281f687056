# SPDX-License-Identifier: Apache-2.0
"""Tuning for machines that no network reaches: candidates out, what was measured of them back in.

The jobs of a batch (`batch`) say what they are candidates of, so that the folder alone is enough to go on;
the journal has what came of it.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import attrs

from ..errors import TuneError
from ..explain.tuning_summary import Summary
from ..kernel_graph.choices import Choices
from .batch import Batch, export_batch, load_batch, refuse_open
from .database import ScheduleDatabase
from .job import DEFAULTS, LOST, Job, Settings
from .key import Key, expected
from .models import Subject
from .state import TuningState
from .summary import summarise
from .task_record import TaskRecord

if TYPE_CHECKING:
    from .candidates import DesignPoint

#: Candidates of a batch by default, and of each of its kernels at least.
COUNT, LEAST = 64, 2


def export_candidates(
    subject: Subject,
    folder: str | os.PathLike[str],
    count: int | None = None,
    settings: Settings = DEFAULTS,
) -> Batch:
    """Write the candidates that come next, and every kernel's default to compare them with.

    Parameters
    ----------
    subject : Subject
        Its target may be at a place that this machine does not have (`tune_model.away`).
    folder : str or Path
        To be written; it must not exist, or be empty.
    count : int, optional
        Candidates, dealt to kernels by their share of the model's time; default: `COUNT`.

    Raises
    ------
    TuneError
        Nothing to tune, or nothing left to try.
    ExportError, ToolchainError
        The folder cannot be written, kernels leave sizes open; what compiles for the device is missing.
    """
    phase = subject.watcher.phase
    found = subject.chosen(subject.extracted(Choices()))
    refuse_open(found.tasks)
    known = subject.state(found, key_in(subject.database, expected(subject.target)))
    phase("reading the journal")
    known.replay()
    phase("design spaces")
    worth = {origin: _worth(known, record) for origin, record in known.records.items()}
    total = sum(worth.values())
    jobs: list[Job] = []
    for record in known.records.values():
        task = record.task
        share = worth[task.origin] / total if total else 1 / len(worth)
        candidates = known.search(record).propose(max(LEAST, round((count or COUNT) * share)))
        if not candidates:
            continue
        phase(f"{len(candidates)} candidates of {task.name}")
        own = Job.of(task, seed=subject.seed, settings=settings)
        jobs.append(attrs.evolve(own, origin=task.origin))
        for one in candidates:
            job = one.job(seed=subject.seed, settings=settings)
            jobs.append(attrs.evolve(job, origin=task.origin, candidate=one.to_json()))
    if not jobs:
        raise TuneError(
            "There is nothing left to try.",
            where="--export-batch",
            remedy="all schedules were measured: compile with the database",
        )
    phase(f"building {len(jobs)} kernels")
    return export_batch(jobs, folder)


def import_measured(subject: Subject, folder: str | os.PathLike[str]) -> Summary:
    """Take up what was measured of a folder of `export_candidates`; see there.

    Raises
    ------
    ArtifactError
        The folder is no batch, or it was changed.
    TuneError
        Nothing of it was measured yet, or it is of another model.
    """
    start, batch = time.monotonic(), load_batch(folder)
    if not batch.machine:
        raise TuneError(
            "Nothing of the batch was measured yet.",
            where=str(folder),
            need="results.jsonl, which its run.py writes",
            remedy="carry the folder to the device, run `python3 run.py` there, and bring results.jsonl back",
        )
    found = subject.chosen(subject.extracted(Choices()))
    known = subject.state(found, batch.key)
    subject.watcher.phase("taking up results")
    new = _take_up(known, batch)
    subject.save()
    machine = str(batch.machine.get("name", "another machine"))
    said = f"{new} new results taken up" + (f", {batch.remaining} to come" if batch.remaining else "")
    return summarise(known, subject.label, found, machine, time.monotonic() - start, said)


def key_in(database: ScheduleDatabase, key: Key) -> Key:
    """The key under which times of a machine are kept that is not at hand.

    Parameters
    ----------
    key : Key
        Without the toolchain of that machine (`key.expected`).

    Returns
    -------
    Key
        That of results that were taken in before; `key` where there are none.
    """
    known = (records.key for records in database.all_records())
    return next((one for one in known if one.without_toolchain == key), key)


def _take_up(known: TuningState, batch: Batch) -> int:
    """Take up what was measured of a batch; how many results are new.

    What is in the journal already is left out: results may be taken in again when there are more.
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
            known.compared(record, candidates[best], default, faster)
    return new


def _worth(known: TuningState, record: TaskRecord) -> float:
    """Seconds of the model that are a task's to save, by the roofline where nothing was measured."""
    known.search(record)
    return record.seconds * record.potential or record.task.weight * record.bound
