# SPDX-License-Identifier: Apache-2.0
"""Projects as folders: whole or not at all, the same every time, and what is refused."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from tvm import relax
from uir_tvm import compile as uir_compile
from uir_tvm import load
from uir_tvm.errors import ArtifactError, ExportError, ShapeError
from uir_tvm.export.write import Project, weights_of, write_project
from uir_tvm.target.ascend import project_on_model as ascend_host

from ..kernel_graph.programs import constant, module

op = relax.op


@pytest.fixture(scope="module")
def exe() -> Any:
    """Two products of the library: nothing needs a printer."""

    def body(emit, x):
        y = emit(op.add(emit(op.matmul(x, constant(8, 16))), constant(16, seed=1)))
        return emit(op.matmul(y, constant(16, 5, seed=2)))

    return uir_compile(module({"x": ((4, 8), "float32")}, body), "uir-ascend", name="two products")


@pytest.fixture(scope="module")
def saved(exe: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same, saved and loaded: its constants are in its library alone."""
    return load(exe.save(tmp_path_factory.mktemp("saved") / "model.uir"))


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_written_twice_it_is_the_same(exe: Any, saved: Any, tmp_path: pathlib.Path) -> None:
    """Byte by byte, from an executable as compiled and as loaded; the folder may be there, if it is empty."""
    (tmp_path / "b").mkdir()
    first, second = write_project(exe, tmp_path / "a"), write_project(saved, tmp_path / "b")
    assert isinstance(first, Project) and (first.launches, first.library_calls) == (0, 2)
    assert contents(first.path) == contents(second.path)
    assert dict(first.files) == {name: len(data) for name, data in contents(first.path).items()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"], "nothing is left behind"
    assert (tmp_path / "a" / "run.sh").stat().st_mode & 0o111


def test_weights_and_data_to_check_with(saved: Any, tmp_path: pathlib.Path) -> None:
    x = np.random.default_rng(5).standard_normal((4, 8)).astype("float32")
    project = write_project(saved, tmp_path / "p", inputs=[x])
    weights = sorted((project.path / "weights").iterdir())
    assert [path.stat().st_size for path in weights] == [4 * 8 * 16, 4 * 16, 4 * 16 * 5]
    np.testing.assert_array_equal(np.fromfile(weights[1], "float32"), weights_of(saved)[1])
    np.testing.assert_array_equal(np.fromfile(project.path / "check/inputs/x.bin", "float32"), x.reshape(-1))
    want = saved(x).reshape(-1)
    np.testing.assert_array_equal(np.fromfile(project.path / "check/outputs/output0.bin", "float32"), want)


def test_without_data_to_check_with(saved: Any, tmp_path: pathlib.Path) -> None:
    assert not (write_project(saved, tmp_path / "p", check=False).path / "check").exists()


def test_it_runs_on_the_host_model(saved: Any, tmp_path: pathlib.Path) -> None:
    import subprocess

    project = write_project(saved, tmp_path / "p")
    program = ascend_host.build(project.path, tmp_path / "build")
    done = subprocess.run([program, "--project", project.path, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "ok   output0" in done.stdout


def test_folders_that_cannot_hold_one(saved: Any, tmp_path: pathlib.Path) -> None:
    """Nothing is deleted or mixed."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    for name, message in (("full", "not empty"), ("file", "is a file"), ("none/p", "no folder")):
        with pytest.raises(ExportError, match=message):
            write_project(saved, tmp_path / name)
    assert contents(tmp_path) == {"file": b"", "full/mine.txt": b"mine"}


def test_a_folder_that_cannot_be_written(
    saved: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_text", fail)
    with pytest.raises(ArtifactError, match="No space left"):
        write_project(saved, tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


def test_other_targets_have_no_projects(tmp_path: pathlib.Path) -> None:
    exe = uir_compile(module({"x": ((4, 8), "float32")}, lambda emit, x: emit(op.exp(x))), "uir-cpu")
    with pytest.raises(ExportError, match="uir-cpu, which has no projects") as caught:
        write_project(exe, tmp_path / "p")
    assert "uir-ascend" in caught.value.need


def test_inputs_that_the_model_does_not_take(saved: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ShapeError):
        write_project(saved, tmp_path / "p", inputs=[np.zeros((4, 9), "float32")])
    assert not (tmp_path / "p").exists()
