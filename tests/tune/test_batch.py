# SPDX-License-Identifier: Apache-2.0
"""Batches as folders: those that are measured by uir_tvm where they run, and what is refused."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import attrs
import pytest
import tvm
from uir_tvm.errors import ArtifactError, ExportError
from uir_tvm.export.batch_folder import JOBS
from uir_tvm.export.batch_runner import results as lines
from uir_tvm.tune.batch import export_batch, load_batch
from uir_tvm.tune.job import LOST, OK, Job, Settings, trace_json
from uir_tvm.tune.key import TOOLCHAIN, key_of

from . import kernels

SETTINGS = Settings(repeats=3, min_repeat_seconds=1e-4)


def jobs() -> list[Job]:
    """Two schedules of a kernel for this CPU."""
    func = kernels.kernel()
    text = str(tvm.ir.save_json(func))
    default = Job("relu", text, "uir-cpu", "cpu", settings=SETTINGS)
    return [default, attrs.evolve(default, begun=text, trace=trace_json(kernels.scheduled(func).trace))]


def test_there_and_back_on_a_cpu(tmp_path: pathlib.Path) -> None:
    """The machine that measures compiles, so that its toolchain is in the key."""
    batch = export_batch(jobs(), tmp_path / "new" / "batch")
    assert TOOLCHAIN not in batch.key.versions and batch.remaining == 2
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, batch.folder / "run.py"], env=environment, timeout=300, check=True)
    assert done.returncode == 0
    found = load_batch(batch.folder)
    assert [result.outcome for result in found.results] == [OK, OK], found.results
    assert all(len(result.seconds) == 3 and result.median > 0 for result in found.results)
    assert found.key == key_of("uir-cpu", "cpu") and found.jobs == tuple(jobs())
    faster = found.results[1].median < found.results[0].median
    assert set(found.confirmed) == ({(0, 1)} if faster else set())


def test_a_folder_appears_whole_or_not_at_all(tmp_path: pathlib.Path) -> None:
    """And nothing that is there is touched."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(ExportError, match="not empty"):
        export_batch(jobs(), tmp_path / "full")
    with pytest.raises(ExportError, match="there are none"):
        export_batch([], tmp_path / "none")
    other = attrs.evolve(jobs()[0], target="uir-bang:mlu370-x4", place="model")
    with pytest.raises(ExportError, match="uir-bang:mlu370-x4 at model"):
        export_batch([*jobs(), other], tmp_path / "two")
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "mine"]


def test_what_is_no_batch(tmp_path: pathlib.Path) -> None:
    """Nothing, something else, another version, a batch that lacks a file."""
    with pytest.raises(ArtifactError, match="cannot be read"):
        load_batch(tmp_path)
    (tmp_path / lines.MANIFEST).write_text("{}")
    with pytest.raises(ArtifactError, match="no batch of candidates"):
        load_batch(tmp_path)
    (tmp_path / lines.MANIFEST).write_text('{"format": "uir-tune-batch", "version": 99}')
    with pytest.raises(ArtifactError, match="version 99"):
        load_batch(tmp_path)
    batch = export_batch(jobs()[:1], tmp_path / "batch")
    (batch.folder / JOBS).unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        load_batch(batch.folder)


def test_lines_of_another_kind(tmp_path: pathlib.Path) -> None:
    """With the right checksum, but not what this version writes."""
    batch = export_batch(jobs()[:1], tmp_path / "batch")
    manifest = lines.read_manifest(str(batch.folder))
    row = {"batch": manifest["id"], "candidate": 0, "result": {"outcome": "splendid"}}
    lines.append(str(batch.folder / lines.RESULTS), row)
    with pytest.raises(ArtifactError, match="not as this version writes them"):
        load_batch(batch.folder)


def test_only_what_is_whole_counts(tmp_path: pathlib.Path) -> None:
    """A line that power was lost at is cut off before the next one is written."""
    path = tmp_path / "rows"
    lines.append(str(path), {"a": 1})
    with path.open("a") as file:
        file.write('{"b": 2')
    assert lines.read(str(path)) == [{"a": 1}]
    lines.append(str(path), {"c": 3})
    assert lines.read(str(path)) == [{"a": 1}, {"c": 3}]
    assert lines.read(str(tmp_path / "none")) == []
    assert load_batch(export_batch(jobs()[:1], tmp_path / "batch").folder).results[0].outcome == LOST
