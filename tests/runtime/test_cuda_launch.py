# SPDX-License-Identifier: Apache-2.0
"""What the CUDA driver is asked for: a stand-in on the host answers, and logs every call.

Tensors in host memory that say that they are on a GPU reach the driver as a GPU's would.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import pytest
from tvm import libinfo
from uir_tvm._native import library_path
from uir_tvm.target.cuda import toolchain

from tests.without_torch import script

FAKE = pathlib.Path(__file__).with_name("fake")

#: What is run, by name; see `fake/run.py`.
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "second device": {"ordinal": 1},
    "on a stream": {"stream": 4096},
    "cooperative": {"cooperative": True},
    "shared": {"shared": 100 * 1024},
    "shared within the default": {"shared": 48 * 1024},
    "too much shared": {"shared": 232449},
    "newer minor version": {"arch": [8, 6]},
    "own features of another minor version": {"arch": [9, 2], "binaries": ["sm_90a"]},
    "another major version": {"arch": [12, 0]},
    "nothing compiled": {"binaries": []},
    "failing": {"fail": 1},
    "no such kernel": {"second": "plus_two"},
    "callers context": {"context": 4096},
    "callers context, failing": {"context": 4096, "fail": 1},
    "more blocks than fit": {"cooperative": True, "resident": 0},
    "no cooperative launch": {"arch": [12, 0], "binaries": ["sm_120"], "cooperative": True},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of the cases."""
    folder = tmp_path_factory.mktemp("driver")
    library = folder / "libcuda.so.1"
    flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Werror"]
    subprocess.run(["gcc", *flags, "-o", str(library), str(FAKE / "cuda.c")], check=True)
    done = subprocess.run(
        script(FAKE / "run.py", libinfo.find_libtvm_runtime(), library_path(), library),
        input=json.dumps(CASES),
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def test_gpus_are_described(found: dict[str, Any]) -> None:
    assert found["error"] == ""
    assert found["gpus"] == [["Stand-in 0", "sm_90", 132], ["Stand-in 1", "sm_90", 132]]


@pytest.mark.parametrize("case", ["plain", "second device"])
def test_launches_in_order_loaded_once(found: dict[str, Any], case: str) -> None:
    """Two calls: one load; of two binaries the one that fits; arguments in order, or 2 x + 1 were wrong."""
    launches = ["launch twice 2 64 0 0", "launch plus_one 2 64 0 0"]
    assert found["cases"][case]["log"] == ["load code for sm_90a", *launches, *launches]


@pytest.mark.parametrize("case", ["plain", "second device", "cooperative", "shared"])
def test_code_goes_with_its_module(found: dict[str, Any], case: str) -> None:
    assert found["cases"][case]["gone"] == ["unload"]


@pytest.mark.parametrize("case", ["no such kernel", "more blocks than fit"])
def test_code_that_is_refused_goes_at_once(found: dict[str, Any], case: str) -> None:
    assert found["cases"][case]["log"][-1] == "unload"


@pytest.mark.parametrize("case", CASES)
def test_the_callers_context_stays(found: dict[str, Any], case: str) -> None:
    """After calls, after an error and after the module went: none where there was none."""
    assert found["cases"][case]["context"] == CASES[case].get("context")


def test_launches_are_on_the_current_stream(found: dict[str, Any]) -> None:
    log = found["cases"]["on a stream"]["log"]
    assert log[1:3] == ["launch twice 2 64 0 1", "launch plus_one 2 64 0 1"]


def test_the_binding_agrees_with_the_toolkit(tmp_path: pathlib.Path) -> None:
    """Every number and every signature, where nvcc is at hand, which finds its cuda.h."""
    tool = toolchain.available()
    if tool is None or tool.kind != "nvcc":
        pytest.skip("there is no nvcc")
    folders = [pathlib.Path(__file__).parents[2] / "src", *tool.include]
    included = [f"-I{folder}" for folder in folders]
    command = [tool.path, "-std=c++17", *included, "-c", FAKE / "against_cuda_h.cc", "-o", tmp_path / "out.o"]
    subprocess.run(list(map(str, command)), check=True)


def test_a_cooperative_kernel_is_launched_so(found: dict[str, Any]) -> None:
    assert found["cases"]["cooperative"]["log"][1:5] == [
        "occupancy twice 64 0",
        "occupancy plus_one 64 0",
        "cooperative twice 2 64 0 0",
        "cooperative plus_one 2 64 0 0",
    ]


def test_much_shared_memory_is_asked_for_once(found: dict[str, Any]) -> None:
    log = found["cases"]["shared"]["log"]
    assert log.count("shared twice 102400") == 1 and log.count("launch twice 2 64 102400 0") == 2
    assert not any(line.startswith("shared") for line in found["cases"]["shared within the default"]["log"])


def test_code_of_an_older_minor_version_runs(found: dict[str, Any]) -> None:
    assert found["cases"]["newer minor version"]["log"][0] == "load code for sm_80"


#: Case -> words of the error's fields (what, where, need, limit).
ERRORS = {
    "too much shared": ("more shared memory", "twice", "232449 bytes", "232448 bytes"),
    "own features of another minor version": ("another kind of GPU", "affine", "sm_90a", "this GPU is sm_92"),
    "another major version": ("another kind of GPU", "affine", "sm_90a", "this GPU is sm_120"),
    "nothing compiled": ("not compiled for where", "affine", "sm_90a", "nothing here compiles"),
    "failing": ("cuLaunchKernel failed", "twice", "", "CUDA_ERROR_LAUNCH_FAILED: unspecified"),
    "no such kernel": ("cuModuleGetFunction failed", "plus_two", "", "CUDA_ERROR_OTHER"),
    "more blocks than fit": ("do not fit", "twice", "2 blocks of 64 threads", "0 on each of 132"),
    "no cooperative launch": ("waits for all blocks", "twice", "cooperative launch", ""),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_and_where(found: dict[str, Any], case: str) -> None:
    fields = found["cases"][case]["error"].split("|")
    for field, words in zip(fields, ERRORS[case], strict=False):
        assert words in field, fields
