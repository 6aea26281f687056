# SPDX-License-Identifier: Apache-2.0
"""Exported projects run on the host model: unchanged, and with every call checked."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from uir_tvm.errors import ToolchainError
from uir_tvm.export import write
from uir_tvm.export.write import write_project
from uir_tvm.target.ascend import project_on_model as ascend_host

from .project_program import ByHand


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The model by hand as a project."""
    folder = tmp_path_factory.mktemp("export") / "project"
    exe: Any = ByHand()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "weights_of", lambda exe: [exe.weight, exe.bias])
        write_project(exe, folder)
    return folder


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Compiled files that several programs share."""
    return tmp_path_factory.mktemp("objects")


@pytest.fixture(scope="module")
def program(
    project: pathlib.Path, objects: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    return ascend_host.build(project, tmp_path_factory.mktemp("build"), objects=objects)


def run(program: pathlib.Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_it_runs_and_checks_itself(project: pathlib.Path, program: pathlib.Path) -> None:
    """Both outputs fit, all is released, and the time is that of the model."""
    done = run(program, "--project", project, "--check", "--repeat", 3)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.count("ok ") == 2 and "3 runs: median 0.0" in done.stdout
    assert float(done.stdout.split("median ")[1].split()[0]) > 0.0


def test_inputs_and_outputs_are_files(
    project: pathlib.Path, program: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    x = np.random.default_rng(3).standard_normal((8, 16)).astype("float32")
    x.tofile(tmp_path / "mine.bin")
    done = run(program, "--project", project, "--output", tmp_path, tmp_path / "mine.bin")
    assert done.returncode == 0, done.stderr
    want, same = ByHand().flat(x)
    np.testing.assert_allclose(
        np.fromfile(tmp_path / "output0.bin", "float32").reshape(8, 16), want, rtol=1e-5
    )
    np.testing.assert_array_equal(np.fromfile(tmp_path / "output1.bin", "float32").reshape(8, 16), same)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--check", "--tolerance", "0"], 1, "BAD"),
        (["--check", "x.bin"], 2, "name no others"),
        (["a.bin", "b.bin"], 2, "The model has 1 inputs: x"),
        (["missing.bin"], 2, "missing.bin cannot be read"),
        (["--device", "1"], 2, "There is no device 1: this machine has 1"),
        (["--repeat", "0"], 2, "at least 1"),
        (["--fast"], 2, "There is no option --fast"),
        (["--output"], 2, "--output needs a value"),
        (["--output", "/nowhere"], 2, "/nowhere/output0.bin cannot be written"),
    ],
)
def test_what_it_says(
    project: pathlib.Path, program: pathlib.Path, arguments: Sequence[str], code: int, message: str
) -> None:
    done = run(program, "--project", project, *arguments)
    assert done.returncode == code and message in done.stdout + done.stderr, done.stdout + done.stderr


def changed(
    project: pathlib.Path, objects: pathlib.Path, tmp_path: pathlib.Path, name: str, old: str, new: str
) -> pathlib.Path:
    """The program of a project with one change in a file."""
    copy = shutil.copytree(project, tmp_path / "changed")
    text = (copy / name).read_text()
    assert text.count(old) >= 1, (name, old)
    (copy / name).write_text(text.replace(old, new, 1))
    return ascend_host.build(copy, tmp_path / "build", objects=objects)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("main.cpp", "device.Synchronize();", "", "has not reached an event"),
        ("device.cpp", "RELEASE(aclDestroyTensor(tensor_));", "", "not released: "),
        ("device.cpp", "RELEASE(aclrtDestroyEvent(stop_));", "", "not released: 1 events"),
        ("device.cpp", "if (data_ != nullptr) RELEASE(aclrtFree(data_));", "", "not released: 2 allocations"),
        ("device.cpp", "CHECK_ACL(aclrtSetDevice(id));", "", "no device was set"),
        ("model.cpp", "{16, 16}, {16, 1}", "{16, 16}, {17, 1}", "leaves its storage"),
        ("model.cpp", "{16, 16}, {16, 1}", "{16, 15}, {16, 1}", "the result has another shape"),
        ("model.cpp", "elements, ACL_FLOAT, {16}", "elements, ACL_FLOAT16, {16}", "all of one type"),
        (
            "library.cpp",
            "aclnnAddmm(device.Workspace(bytes), bytes,",
            "aclnnAddmm(device.Workspace(bytes), bytes + 1,",
            "not as large as the first phase said",
        ),
        (
            "library.cpp",
            "constexpr int8_t kKeepDtype = 0;",
            "constexpr int8_t kKeepDtype = 7;",
            "cubeMathType is 0 to 4",
        ),
        ("model.cpp", "ACLRT_LAUNCH_KERNEL(scale_0)(2,", "ACLRT_LAUNCH_KERNEL(scale_0)(1,", "scale_1"),
        ("kernels/scale_1.cpp", "  WaitFlag<HardEvent::MTE2_V>(0);\n", "", "scale_1"),
    ],
)
def test_faults_in_a_project_are_found(
    project: pathlib.Path,
    objects: pathlib.Path,
    tmp_path: pathlib.Path,
    name: str,
    old: str,
    new: str,
    message: str,
) -> None:
    """A wait left out, a leak, a wrong view or workspace: each is said by the stand-ins or the host model."""
    done = run(changed(project, objects, tmp_path, name, old, new), "--project", project, "--check")
    assert message in done.stderr, done.stdout + done.stderr


def test_what_the_compiler_refuses(
    project: pathlib.Path, objects: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(ToolchainError):
        changed(project, objects, tmp_path, "model.cpp", "Addmm(", "Addmmm(")
