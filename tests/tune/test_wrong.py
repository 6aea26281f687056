# SPDX-License-Identifier: Apache-2.0
"""Reports of wrong candidates hold what is needed to find the fault."""

from __future__ import annotations

import json
import pathlib

import attrs
import pytest
import tvm
from uir_tvm import pipeline
from uir_tvm.errors import DatabaseError
from uir_tvm.tune import wrong
from uir_tvm.tune.job import WRONG, Job, Result
from uir_tvm.tune.reference_results import reference_of
from uir_tvm.tune.spaces import design_spaces

from .test_job import subject


def _job() -> Job:
    task = subject("uir-bang:mlu590")
    return Job.of(task, design_spaces(task.func, task.target)[0], seed=5)


def test_a_report_tells_the_whole_story() -> None:
    """What differs, decisions, seed and interval of the inputs, trace, and the products of all stages."""
    task, job = subject("uir-bang:mlu590"), _job()
    space = design_spaces(task.func, task.target)[0]
    record = pipeline.compile_scheduled(task.func, task.target, space.schedule.mod["main"], "relu")
    text = wrong.report_of(job, record, reference_of(job.func, 5), ["one", "two"], space.schedule)
    head, *parts = text.split("\n== ")
    sections = {part.partition(" ==\n")[0]: part.partition(" ==\n")[2] for part in parts}
    assert "relu for uir-bang:mlu590 on model" in head
    assert sections["What is wrong"].strip() == "one\ntwo"
    assert all(f"{name} {value}" in sections["Decisions"] for name, value in job.decisions.items())
    assert "seed 5, floats from [-2, 2): p0 float32[24, 40]" in sections["Inputs"]
    assert sections["How to see it again"].strip().endswith(f"{wrong.stem(job)}.json")
    assert str(space.schedule.trace).strip() in sections["Trace"]
    assert "def main" in sections["Kernel"] or "prim_func" in sections["Kernel"]
    assert "uir.parallel" in sections["Scheduled"]
    assert str(record.igraph).strip() in sections["iGraph"]
    assert str(record.optimized).strip() in sections["iGraph after the passes"]
    assert "__mlu_" in sections["Source"]
    assert sections["Passes"].strip()


def test_reports_are_kept_with_their_jobs(tmp_path: pathlib.Path) -> None:
    """Under names that are the schedule's; the job can be read again."""
    job, result = _job(), Result((), WRONG, "said", "the report")
    path = wrong.keep(job, result, tmp_path / "database")
    assert path.parent == tmp_path / "database" / "rejected"
    assert path.read_text() == "the report"
    assert Job.from_json(json.loads(path.with_suffix(".json").read_text())) == job
    other = wrong.keep(attrs.evolve(job, trace=[[], []], kernel="a/b c"), result, tmp_path / "database")
    assert other != path
    assert other.name.startswith("a_b_c-")
    # by another version, whose report did not come along
    bare = wrong.keep(job, Result((), WRONG, "said"), tmp_path / "database")
    assert bare.read_text() == "relu: said\n"


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: pathlib.Path) -> None:
    """It names the file."""
    (tmp_path / "rejected").write_text("in the way")
    with pytest.raises(DatabaseError, match="rejected"):
        wrong.keep(_job(), Result((), WRONG, "said", "report"), tmp_path)


def test_the_compilers_own_schedule_can_be_wrong_too() -> None:
    """Then there is no trace to tell."""
    task = subject()
    job = Job.of(task)
    record = pipeline.compile_kernel(task.func, task.target, "relu")
    text = wrong.report_of(job, record, reference_of(job.func, 0), ["fault"], None)
    assert "the compiler's own schedule" in text
    assert isinstance(tvm.ir.load_json(job.func), tvm.tirx.PrimFunc)
