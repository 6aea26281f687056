# SPDX-License-Identifier: Apache-2.0
"""Candidates out, measured by the batch's own program, results in: the same as with a network."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import uir_tvm
from uir_tvm.errors import TuneError
from uir_tvm.tune import ScheduleDatabase
from uir_tvm.tune.models import Subject
from uir_tvm.tune.offline import export_candidates, import_measured
from uir_tvm.tune.tune_model import away, resolved

from .. import tiny
from .kernels import model


def subject(model: object, database: pathlib.Path) -> Subject:
    """A model for this processor."""
    return Subject(model, resolved("uir-cpu", away("uir-cpu")), database)


def test_out_and_back(tmp_path: pathlib.Path) -> None:
    """What was measured is not sent again, nor taken for another model; models take what was found faster."""
    folder, database = tmp_path / "batch", tmp_path / "db"
    batch = export_candidates(subject(tiny.module(), database), folder, 3)
    assert sum(job.is_default for job in batch.jobs) == 1 and len(batch.jobs) == 4
    with pytest.raises(TuneError, match="Nothing of the batch was measured"):
        import_measured(subject(tiny.module(), database), folder)
    subprocess.run([sys.executable, folder / "run.py"], check=True, capture_output=True)
    summary = import_measured(subject(tiny.module(), database), folder)
    assert summary.resumed == 0 and summary.trials == 3 and "3 new results" in summary.ended
    with pytest.raises(TuneError, match="of another model"):
        import_measured(subject(model(), tmp_path / "other"), folder)
    again = import_measured(subject(tiny.module(), database), folder)
    assert again.trials == 0 and again.resumed == 3
    assert (again.before, again.after) == (summary.before, summary.after)
    kept = {entry.name for entry in ScheduleDatabase(database).entries()}
    assert kept == {row.kernel for row in summary.rows if row.gain and row.gain > 1}
    exe = uir_tvm.compile(tiny.module(), database=database)
    assert {kernel.name for kernel in exe.info.kernels if kernel.recipe == "database"} == kept
    more = export_candidates(subject(tiny.module(), database), tmp_path / "more", 3)
    digests = [{job.digest for job in made.jobs if not job.is_default} for made in (batch, more)]
    assert not digests[0] & digests[1]
