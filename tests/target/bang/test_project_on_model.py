# SPDX-License-Identifier: Apache-2.0
"""Exported MLU projects run on the host model: unchanged, and with every call checked."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
import uir_tvm
from uir_tvm.export import write
from uir_tvm.export.write import write_project
from uir_tvm.target.bang import project_on_model as bang_host

from tests.kernel_graph.integer_sums import product

from .project_program import ByHand


def written(folder: pathlib.Path) -> pathlib.Path:
    """The model by hand as a project."""
    exe: Any = ByHand()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "weights_of", lambda exe: [exe.weight, exe.filter])
        write_project(exe, folder)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return written(tmp_path_factory.mktemp("export") / "project")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Compiled files that several programs share."""
    return tmp_path_factory.mktemp("objects")


@pytest.fixture(scope="module")
def program(
    project: pathlib.Path, objects: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    return bang_host.build(project, tmp_path_factory.mktemp("build"), objects=objects)


def run(program: pathlib.Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_it_runs_and_checks_itself(project: pathlib.Path, program: pathlib.Path) -> None:
    """The output fits, all is released, and the time is that of the model."""
    done = run(program, "--project", project, "--check", "--repeat", 3)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.count("ok ") == 1
    assert float(done.stdout.split("median ")[1].split()[0]) > 0.0


def test_inputs_and_outputs_are_files(
    project: pathlib.Path, program: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    rng = np.random.default_rng(3)
    x, image = (rng.standard_normal(shape).astype("float32") for shape in ((8, 16), (1, 2, 8, 8)))
    for name, array in (("x", x), ("image", image)):
        array.tofile(tmp_path / f"{name}.bin")
    arguments = ["--output", tmp_path, tmp_path / "x.bin", tmp_path / "image.bin"]
    done = run(program, "--project", project, *arguments)
    assert done.returncode == 0, done.stderr
    (want,) = ByHand().flat(x, image)
    got = np.fromfile(tmp_path / "output0.bin", "float32").reshape(8, 16)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_products_of_bytes_in_parts_are_exact(objects: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """1056 bytes by weights of -127 and 127 are two products, whose sums a kernel adds."""
    rng = np.random.default_rng(6)
    weight = rng.choice(np.array([-127, 127], np.int32), (1056, 4))
    exe = uir_tvm.compile(product(weight, np.zeros(4, np.int32), floats=True), "uir-bang")
    folder = tmp_path / "project"
    write_project(exe, folder)
    calls = (folder / "model.cpp").read_text()
    assert "IntegerProduct(" in calls and "Matrices{2, 3, 4, 528}" in calls
    x = rng.integers(0, 256, (3, 1056)).astype(np.uint8)
    x.tofile(tmp_path / "x.bin")
    built = bang_host.build(folder, tmp_path / "build", objects=objects)
    done = run(built, "--project", folder, "--output", tmp_path, tmp_path / "x.bin")
    assert done.returncode == 0, done.stderr
    wanted = (x.astype(np.int64) - 7) @ weight.astype(np.int64)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "output0.bin", np.float32).reshape(3, 4), wanted)


def test_the_same_executable_gives_the_same_files(project: pathlib.Path, tmp_path: pathlib.Path) -> None:
    again = written(tmp_path / "again")
    files = sorted(path.relative_to(project) for path in project.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((project / name).read_bytes() == (again / name).read_bytes() for name in files)
    assert pathlib.Path("kernels/scale.mlu") in files


#: What is changed in a project, by file: text, its place taken by, and what the stand-ins then say.
FAULTS = {
    "forgotten wait": ("main.cpp", "    device.Synchronize();\n", "", "has not reached"),
    "no strides": ("cnnl_calls.cpp", "&no, sizeof(no)", "&no, sizeof(char)", "attributes are of int32_t"),
    "leaked descriptor": ("cnnl_calls.cpp", "RELEASE(cnnlDestroy(handle_))", "(void)0", "not released"),
    "wrong layout": (
        "cnnl_calls.cpp",
        "tensors[i], CNNL_LAYOUT_NHWC",
        "tensors[i], CNNL_LAYOUT_ARRAY",
        "NHWC",
    ),
    "wait in a kernel": ("kernels/scale.mlu", "  __sync_io();\n  __bang_mul", "  __bang_mul", "race"),
    "launched too small": ("kernels/scale.mlu", "dim = {2, 1, 1}", "dim = {1, 1, 1}", "scale_1"),
    "copy of what is not there": (
        "device.cpp",
        "cnrtMemcpyHostToDev));",
        "cnrtMemcpyDevToHost));",
        "not where",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_a_project_are_found(
    name: str, project: pathlib.Path, objects: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file, old, new, said = FAULTS[name]
    changed = tmp_path / "changed"
    shutil.copytree(project, changed)
    text = (changed / file).read_text()
    assert old in text
    (changed / file).write_text(text.replace(old, new, 1))
    done = run(bang_host.build(changed, tmp_path / "build", objects=objects), "--project", changed, "--check")
    assert done.returncode != 0 and said in done.stderr, (done.returncode, done.stderr[:500])
