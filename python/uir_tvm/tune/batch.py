# SPDX-License-Identifier: Apache-2.0
"""Candidates out to machines that no network reaches, and their measurements back in.

A batch is a folder: what every candidate was built to, the inputs and expected results of every kernel, a
program that measures (`batch_runner`), and a manifest with digests of all of it.  The program writes results
line by line; they are taken in from the same folder, or from one that was sent.
"""

from __future__ import annotations

import json
import logging
import os
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from .. import environment
from ..errors import ArtifactError, ExportError
from ..export import batch_runner
from ..export.batch_runner import results as lines
from ..export.write import new_folder
from ..target import registry
from ..target.place import Place
from ..whole_files import writing
from . import batch_jobs
from .batch_kinds import BUILDERS, Data
from .job import LOST, Job, Result
from .key import TOOLCHAIN, Key, expected
from .reference_results import reference_of

log = logging.getLogger(__name__)

#: Files of a batch: all jobs, what to do, and the folders of what belongs to kernels and to candidates.
JOBS, README, TASKS, CANDIDATES = "jobs.json", "README.md", "tasks", "candidates"
#: Files of the program that are not for every kind.
OWN_MODULES = {"gpu": ("gpu.py", "compare_elements.py"), "project": ("project.py",), "batch_jobs": ()}
COMMON = ("run.py", "results.py", "measuring.py")

_README = """# Candidates of {target}

{count} schedules of {kernels} kernels, to be measured on {what}.

    python3 run.py --dry-run       check that all files are here
    python3 run.py                 measure; may be interrupted and started again
    python3 run.py --help

It writes `results.jsonl`. Bring that file back into the folder that it came from, and there:

    uir tune MODEL --target {target} --database DATABASE --import-results DIR
"""


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
    confirmed: Mapping[tuple[int, int], tuple[Result, Result]]
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
        No jobs, or jobs of several places; the folder is not empty.
    ArtifactError
        The folder cannot be written.
    ToolchainError
        What compiles for the place is missing here.
    """
    folder = pathlib.Path(folder)
    place = _place_of(jobs)
    with writing(folder, ArtifactError):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as partial:
        _write(partial, jobs, place)
    return load_batch(folder)


def load_batch(folder: str | os.PathLike[str]) -> Batch:
    """A batch with what was measured of it.

    What a run that was cut short leaves unmeasured is left out, and so is the line at which it was cut.

    Raises
    ------
    ArtifactError
        The folder is no batch; its files or its results were changed, or the results are of another batch.
    """
    folder = pathlib.Path(folder)
    try:
        manifest = lines.read_manifest(str(folder))
        lines.check_files(str(folder), {JOBS: manifest["files"][JOBS]})
        rows = lines.read(str(folder / lines.RESULTS))
    except lines.Damaged as error:
        raise ArtifactError(
            "The batch cannot be taken in.",
            where=str(folder),
            limit=str(error),
            remedy="copy its files again, all of them as they are",
        ) from error
    foreign = [row for row in rows if row.get("batch") != manifest["id"]]
    if foreign:
        raise ArtifactError(
            f"{folder / lines.RESULTS} has results of another batch.",
            need=f"batch {manifest['id'][:12]}",
            limit=f"batch {str(foreign[0].get('batch'))[:12]}",
            remedy="put every results.jsonl into the folder that it was measured from",
        )
    jobs = tuple(Job.from_json(row) for row in json.loads((folder / JOBS).read_text()))
    machine: dict[str, Any] = next((row["machine"] for row in reversed(rows) if "machine" in row), {})
    try:
        found = {row["candidate"]: Result.from_json(row["result"]) for row in rows if "candidate" in row}
        for number, row in enumerate(manifest["candidates"]):
            if row["settled"] is not None:
                found[number] = Result.from_json(row["settled"])
        confirmed = {
            (first, second): tuple(map(Result.from_json, row["confirm"]["results"]))
            for row in rows
            if "confirm" in row
            for first, second in [row["confirm"]["candidates"]]
        }
        key = Key.from_json(manifest["key"])
        if TOOLCHAIN in machine:
            key = attrs.evolve(key, versions={**key.versions, TOOLCHAIN: machine[TOOLCHAIN]})
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            "The batch cannot be taken in.",
            where=str(folder),
            limit=f"its results are not as this version writes them: {error}",
            remedy="measure with the run.py of the batch",
        ) from error
    nobody = Result(outcome=LOST, said="nobody measured it yet")
    results = tuple(found.get(number, nobody) for number in range(len(jobs)))
    batch = Batch(folder, jobs, results, confirmed, key, machine)  # type: ignore[arg-type]
    if batch.remaining:
        log.info("%s: %d of %d candidates have no result yet", folder, batch.remaining, len(jobs))
    return batch


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


def _write(folder: pathlib.Path, jobs: Sequence[Job], place: Place) -> None:
    """All files of a batch, the manifest last."""
    away = place.away
    build, data = BUILDERS[away.runner]
    key = expected(jobs[0].target, jobs[0].place)
    if away.compiled is not None:
        key = attrs.evolve(key, versions={**key.versions, TOOLCHAIN: place.toolchain()})
    (folder / JOBS).write_text(json.dumps([job.to_json() for job in jobs]))
    source = pathlib.Path(batch_runner.__file__).parent
    for name in (*COMMON, *OWN_MODULES[away.runner]):
        shutil.copyfile(source / name, folder / name)
    if not OWN_MODULES[away.runner]:
        shutil.copyfile(batch_jobs.__file__, folder / "batch_jobs.py")
    tasks = _Tasks(folder, data)
    with ThreadPoolExecutor(environment.num_threads()) as pool:
        made = [
            pool.submit(build(folder, f"{CANDIDATES}/{number:04d}", tasks.folder_of(job), job))
            for number, job in enumerate(jobs)
        ]
        rows = [
            _candidate(number, job, tasks.number(job), future.result())
            for number, (job, future) in enumerate(zip(jobs, made, strict=True))
        ]
    (folder / README).write_text(
        _README.format(target=jobs[0].target, count=len(jobs), kernels=len(tasks.rows), what=away.what)
    )
    files = {
        path.relative_to(folder).as_posix(): lines.file_digest(str(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = {
        "format": lines.FORMAT,
        "version": lines.VERSION,
        "kind": away.runner,
        "target": jobs[0].target,
        "place": jobs[0].place,
        "hardware": key.hardware,
        "key": key.to_json(),
        "build_seconds": away.build_seconds,
        "tasks": tasks.rows,
        "candidates": rows,
        "files": files,
        **away.facts(),
    }
    manifest["id"] = lines.digest(manifest)
    (folder / lines.MANIFEST).write_text(json.dumps(manifest, indent=1))


class _Tasks:
    """The kernels of a batch: inputs and expected results, once for all of their candidates."""

    def __init__(self, folder: pathlib.Path, data: Data | None) -> None:
        self.folder, self.data = folder, data
        self.rows: list[dict[str, Any]] = []
        self._known: dict[tuple[str, int], int] = {}

    def number(self, job: Job) -> int:
        """The number of a job's kernel on the job's inputs."""
        what = (job.func, job.seed)
        if what not in self._known:
            number = self._known[what] = len(self.rows)
            self.rows.append({"name": job.kernel, "params": []})
            if self.data is not None:
                below = self.folder_of(job)
                (self.folder / below).mkdir(parents=True)
                self.rows[number]["params"] = self.data(self.folder, below, reference_of(*what), job)
        return self._known[what]

    def folder_of(self, job: Job) -> str:
        """Where what belongs to a job's kernel lies."""
        return f"{TASKS}/{self.number(job):03d}"


def _candidate(number: int, job: Job, task: int, made: Mapping[str, Any] | Result) -> dict[str, Any]:
    """A row of the manifest."""
    return {
        "number": number,
        "digest": job.digest,
        "task": task,
        "default": job.is_default,
        "settings": job.settings.to_json(),
        "settled": made.to_json() if isinstance(made, Result) else None,
        "artefact": {} if isinstance(made, Result) else dict(made),
    }
