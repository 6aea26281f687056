# SPDX-License-Identifier: Apache-2.0
"""Candidates out to machines that no network reaches, and their measurements back in.

A batch is a folder: what every candidate was built to, the inputs and expected results of every kernel, a
program that measures (`batch_runner`), and a manifest with digests of all of it.  The program writes results
line by line; they are taken in from the same folder, or from one that was sent.
"""

from __future__ import annotations

import json
import pathlib
import shutil
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from .. import environment
from ..errors import ArtifactError
from ..target.place import Place
from ..whole_files import writing
from . import batch_runner
from .batch_kinds import KINDS, BatchCandidate, BatchKind
from .batch_runner import results as lines
from .write import new_folder

#: Files of a batch: all jobs, what to do, and the folders of what belongs to kernels and to candidates.
JOBS, README, TASKS, CANDIDATES = "jobs.json", "README.md", "tasks", "candidates"
#: Files of the program that are for every kind.
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
class BatchRows:
    """A batch as its files have it; results are rows of `batch_runner.measuring.result`.

    Parameters
    ----------
    manifest : mapping
    jobs : list of mapping
        In the order in which they were written.
    results : mapping of int to mapping
        By the number of the job; those that nobody measured yet are missing.
    confirmed : mapping of (int, int) to list of mapping
        Numbers of a kernel's own schedule and of its fastest candidate -> what they took in turns.
    machine : mapping
        The machine that measured, as it describes itself; empty before that.
    """

    manifest: Mapping[str, Any]
    jobs: list[Mapping[str, Any]]
    results: Mapping[int, Mapping[str, Any]]
    confirmed: Mapping[tuple[int, int], list[Mapping[str, Any]]]
    machine: Mapping[str, Any]


def write_batch(
    folder: pathlib.Path,
    place: Place,
    head: Mapping[str, Any],
    candidates: Sequence[BatchCandidate],
    job_runner: pathlib.Path,
) -> None:
    """Write a folder that measures some candidates.

    Parameters
    ----------
    folder : Path
        It must not exist, or be empty; it appears whole or not at all.
    place : Place
        Where they run.
    head : mapping
        What the manifest says of all: ``target``, ``place``, ``hardware`` and ``key``.
    candidates : sequence of BatchCandidate
        In the order in which they are to be measured.
    job_runner : Path
        The runner's module for machines that compile the jobs themselves, by whoever made them.

    Raises
    ------
    ExportError
        The folder is not empty.
    ArtifactError
        The folder cannot be written.
    ToolchainError
        What compiles for the place is missing here.
    """
    with writing(folder, ArtifactError):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as partial:
        _write(partial, place, head, candidates, job_runner)


def read_batch(folder: pathlib.Path) -> BatchRows:
    """A batch with what was measured of it.

    What a run that was cut short leaves unmeasured is left out, and so is the line at which it was cut.

    Raises
    ------
    ArtifactError
        The folder is no batch; its files or its results were changed, or the results are of another batch.
    """
    path = folder / lines.RESULTS
    try:
        manifest = lines.read_manifest(str(folder))
        lines.check_files(str(folder), {JOBS: manifest["files"][JOBS]})
        rows = lines.read(str(path))
        lines.check_rows(rows, manifest, str(path))
    except lines.Damaged as error:
        raise ArtifactError(
            "The batch cannot be taken in.",
            where=str(folder),
            limit=str(error),
            remedy="copy its files again, all of them as they are, and every results.jsonl into the folder "
            "that it was measured from",
        ) from error
    found = {row["candidate"]: row["result"] for row in rows if "candidate" in row}
    pairs = [row["confirm"] for row in rows if "confirm" in row]
    return BatchRows(
        manifest,
        json.loads((folder / JOBS).read_text()),
        {**found, **lines.settled(manifest)},
        {tuple(pair["candidates"]): pair["results"] for pair in pairs},
        next((row["machine"] for row in reversed(rows) if "machine" in row), {}),
    )


def _write(
    folder: pathlib.Path,
    place: Place,
    head: Mapping[str, Any],
    candidates: Sequence[BatchCandidate],
    job_runner: pathlib.Path,
) -> None:
    """All files of a batch, the manifest last."""
    away = place.away
    kind = KINDS[away.runner]
    (folder / JOBS).write_text(json.dumps([dict(candidate.job) for candidate in candidates]))
    source = pathlib.Path(batch_runner.__file__).parent
    for path in (*(source / name for name in (*COMMON, *kind.files)), job_runner):
        if path != job_runner or path.stem == away.runner:
            shutil.copyfile(path, folder / path.name)
    tasks = _Tasks(folder, kind)
    with ThreadPoolExecutor(environment.num_threads()) as pool:
        made = [
            pool.submit(kind.build(folder, f"{CANDIDATES}/{number:04d}", tasks.folder_of(one), one, away))
            for number, one in enumerate(candidates)
        ]
        rows = [
            {"number": number, "task": tasks.number(one), **one.row, **future.result()}
            for number, (one, future) in enumerate(zip(candidates, made, strict=True))
        ]
    (folder / README).write_text(
        _README.format(target=head["target"], count=len(candidates), kernels=len(tasks.rows), what=away.what)
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
        **head,
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

    def __init__(self, folder: pathlib.Path, kind: BatchKind) -> None:
        self.folder, self.kind = folder, kind
        self.rows: list[dict[str, Any]] = []
        self._known: dict[Hashable, int] = {}

    def number(self, candidate: BatchCandidate) -> int:
        """The number of a candidate's kernel on its inputs."""
        if candidate.task not in self._known:
            number = self._known[candidate.task] = len(self.rows)
            self.rows.append({"name": candidate.kernel, "params": []})
            if self.kind.data is not None:
                below = self.folder_of(candidate)
                (self.folder / below).mkdir(parents=True)
                self.rows[number]["params"] = self.kind.data(self.folder, below, candidate)
        return self._known[candidate.task]

    def folder_of(self, candidate: BatchCandidate) -> str:
        """Where what belongs to a candidate's kernel lies."""
        return f"{TASKS}/{self.number(candidate):03d}"
