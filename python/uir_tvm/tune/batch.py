# SPDX-License-Identifier: Apache-2.0
"""Jobs as a folder that measures them (`uir_tvm.export.batch_folder`), and what came of them."""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from ..errors import ArtifactError, ExportError
from ..export.batch_folder import read_batch, write_batch
from ..export.batch_kinds import BatchCandidate
from ..pipeline import KernelRecord
from ..target import registry
from ..target.place import Place
from . import batch_jobs, evaluate
from .job import LOST, Job, Result
from .key import TOOLCHAIN, Key, expected
from .reference_results import reference_of
from .task import Task

log = logging.getLogger(__name__)


@attrs.frozen
class Batch:
    """A batch, and what was measured of it.

    Parameters
    ----------
    folder : Path
    jobs : tuple of Job
        In the order in which they were exported.
    results : tuple of Result
        Of each job; `LOST` where nobody measured it yet.
    confirmed : mapping of (int, int) to (Result, Result)
        Numbers of the default schedule and of the fastest candidate of a kernel -> what they took in turns.
    key : Key
        Of the machine that measured, under which times are kept; before that without its toolchain, where
        that is the device's.
    machine : mapping
        The machine that measured, as it describes itself; empty before that.
    """

    folder: pathlib.Path
    jobs: tuple[Job, ...]
    results: tuple[Result, ...]
    confirmed: Mapping[tuple[int, int], tuple[Result, ...]]
    key: Key
    machine: Mapping[str, Any]

    @property
    def remaining(self) -> int:
        """How many jobs nobody measured yet."""
        return sum(result.outcome == LOST for result in self.results)


def export_batch(jobs: Sequence[Job], folder: str | os.PathLike[str]) -> Batch:
    """Write a folder that measures some jobs.

    Parameters
    ----------
    jobs : sequence of Job
        For one target at one place, in the order in which they are to be measured.
    folder : str or Path
        It must not exist, or be empty; it appears whole or not at all.

    Returns
    -------
    Batch
        Jobs that the compiler refuses have a result already.

    Raises
    ------
    ExportError
        No jobs, or jobs of several places; kernels that leave sizes open; the folder is not empty.
    ArtifactError, ToolchainError
        The folder cannot be written; what compiles for the place is missing here.
    """
    place = _place_of(jobs)
    refuse_open(jobs)
    key = expected(jobs[0].target, jobs[0].place)
    if place.away.compiled is not None:
        key = attrs.evolve(key, versions={**key.versions, TOOLCHAIN: place.toolchain()})
    head = {
        "target": jobs[0].target,
        "place": jobs[0].place,
        "hardware": key.hardware,
        "key": key.to_json(),
    }
    program = pathlib.Path(batch_jobs.__file__)
    write_batch(pathlib.Path(folder), place, head, [_candidate(job) for job in jobs], program)
    return load_batch(folder)


def load_batch(folder: str | os.PathLike[str]) -> Batch:
    """A batch with what was measured of it; what nobody measured is lost.

    Raises
    ------
    ArtifactError
        The folder is no batch; its files or its results were changed, or the results are of another batch.
    """
    rows = read_batch(pathlib.Path(folder))
    try:
        key = Key.from_json(rows.manifest["key"])
        if TOOLCHAIN in rows.machine:
            key = attrs.evolve(key, versions={**key.versions, TOOLCHAIN: rows.machine[TOOLCHAIN]})
        found = {number: Result.from_json(row) for number, row in rows.results.items()}
        confirmed = {pair: tuple(map(Result.from_json, two)) for pair, two in rows.confirmed.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            "The batch cannot be taken in.",
            where=str(folder),
            limit=f"its results are not as this version writes them: {error}",
            remedy="measure with the run.py of the batch",
        ) from error
    jobs = tuple(map(Job.from_json, rows.jobs))
    nobody = Result(outcome=LOST, said="nobody measured it yet")
    results = tuple(found.get(number, nobody) for number in range(len(jobs)))
    batch = Batch(pathlib.Path(folder), jobs, results, confirmed, key, rows.machine)
    if batch.remaining:
        log.info("%s: %d of %d candidates have no result yet", folder, batch.remaining, len(jobs))
    return batch


def refuse_open(given: Sequence[Job | Task]) -> None:
    """Refuse kernels that leave sizes open.

    Raises
    ------
    ExportError
        There is one among these.
    """
    named = next((one for one in given if one.points), None)
    if named is not None:
        raise ExportError(
            f"The kernel {named.kernel if isinstance(named, Job) else named.name} leaves sizes open.",
            where="--export-batch",
            need="kernels of which every size is a number: a batch has the tensors and launches of one size",
            remedy="measure on servers (--rpc), or tune the model at fixed sizes (--shape)",
        )


def _place_of(jobs: Sequence[Job]) -> Place:
    places = sorted({(job.target, job.place) for job in jobs})
    if len(places) != 1:
        raise ExportError(
            "A batch is for one target at one place.",
            need="candidates",
            limit=", ".join(f"{target} at {place}" for target, place in places) or "there are none",
            remedy="export those of each by themselves",
        )
    return registry.place_of(registry.resolve(*places[0]).target)


def _candidate(job: Job) -> BatchCandidate:
    return BatchCandidate(
        kernel=job.kernel,
        task=(job.func, job.seed),
        job=job.to_json(),
        row={"digest": job.digest, "default": job.is_default, "settings": job.settings.to_json()},
        tolerance=job.settings.tolerance,
        reference=partial(reference_of, job.func, job.seed),
        compiled=partial(_compiled, job),
    )


def _compiled(job: Job) -> KernelRecord | Mapping[str, Any]:
    made = evaluate.compiled(job)
    return made.to_json() if isinstance(made, Result) else made
