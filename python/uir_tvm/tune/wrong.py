# SPDX-License-Identifier: Apache-2.0
"""Reports of wrong candidates: schedules whose kernels compute something else than they should.

A wrong candidate is a fault of the compiler. It never enters a database; what is needed to find the fault is
kept in two files: a text for people, and the job, which `python -m uir_tvm.tune.evaluate` measures again.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence

import tvm

from ..errors import DatabaseError
from ..pipeline import KernelRecord
from ..verify.agreement import Reference
from ..whole_files import writing
from .job import Job, Result

#: Folder of a database's reports.
FOLDER = "rejected"


def report_of(
    job: Job,
    record: KernelRecord,
    reference: Reference,
    faults: Sequence[str],
    scheduled: tvm.s_tir.Schedule | None,
) -> str:
    """The whole story of a wrong candidate.

    Parameters
    ----------
    record : KernelRecord
        What the pipeline made of it.
    faults : sequence of str
        What differs, and what the place found.
    scheduled : Schedule, optional
        The candidate; None: the compiler's own schedule.
    """
    low, high = reference.interval
    decided = ", ".join(f"{name} {value}" for name, value in job.decisions.items())
    trace = "the compiler's own schedule" if scheduled is None else str(scheduled.trace).strip()
    inputs = ", ".join(
        f"{name} {array.dtype}{list(array.shape)}"
        for name, array in zip(reference.names, reference.arguments, strict=True)
    )
    parts = {
        "What is wrong": "\n".join(faults),
        "Decisions": decided or "none",
        "Inputs": f"seed {job.seed}, floats from [{low:g}, {high:g}): {inputs}",
        "How to see it again": f"python -m uir_tvm.tune.evaluate {stem(job)}.json",
        "Trace": trace,
        "Kernel": _script(record.products.get("prim_func")),
        "Scheduled": _script(record.products.get("tir")),
        "iGraph": str(record.igraph or "none"),
        "Passes": "\n".join(str(step.to_json()) for step in record.steps) or "none",
        "iGraph after the passes": str(record.optimized or "none"),
        "Source": _script(record.products.get("source")),
    }
    head = f"A schedule of {job.kernel} for {job.target} on {job.place} computes something else.\n"
    return head + "".join(f"\n== {title} ==\n{text.rstrip()}\n" for title, text in parts.items())


def _script(product: object) -> str:
    """A product of a stage as text."""
    if product is None:
        return "none"
    return str(product.script()) if hasattr(product, "script") else str(product)


def stem(job: Job) -> str:
    """Name of a candidate's files: readable, and different for different schedules."""
    return f"{re.sub(r'[^A-Za-z0-9_]+', '_', job.kernel)[:60]}-{job.digest}"


def keep(job: Job, result: Result, folder: pathlib.Path) -> pathlib.Path:
    """Write the report of a wrong candidate, and its job beside it.

    Parameters
    ----------
    folder : Path
        Of the database; the files lie in its folder ``rejected``.

    Returns
    -------
    Path
        Of the text.

    Raises
    ------
    DatabaseError
        The folder cannot be written.
    """
    path = folder / FOLDER / f"{stem(job)}.txt"
    with writing(path, DatabaseError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".json").write_text(json.dumps(job.to_json()))
        path.write_text(result.report or f"{job.kernel}: {result.said}\n")
    return path
