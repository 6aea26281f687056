# SPDX-License-Identifier: Apache-2.0
"""What the Ascend runtime is asked for: a stand-in on the host answers, and logs every call."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from tvm import libinfo
from uir_tvm._native import library_path

FAKE = pathlib.Path(__file__).with_name("fake")

#: What is run, by name; see `fake/run_device.py`.
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "second device": {"device": 1},
    "on a stream": {"stream": 4096},
    "no such device": {"device": 5},
    "no memory": {"failing": "aclrtMalloc", "code": 207001},
    "failing copy": {"failing": "aclrtMemcpy", "code": 507899},
    "failing launch": {"failing": "launch", "code": 107003},
    "failing kernel": {"failing": "aclrtSynchronizeStream", "code": 507035},
    "no such kernel": {"second": "plus_two"},
    "nothing compiled": {"compiled": False},
    "for a GPU": {"kind": "cuda"},
}
#: What is the same in all of them.
COMMON = {"kind": "ascend", "arch": "dav-2201", "describe": "uir.runtime.acl.describe"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of the cases."""
    folder = tmp_path_factory.mktemp("npu")
    flags = ["gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Werror"]
    runtime, kernels = folder / "libacl_rt.so", folder / "kernels.so"
    subprocess.run([*flags, "-o", str(runtime), str(FAKE / "acl.c")], check=True)
    subprocess.run([*flags, "-o", str(kernels), str(FAKE / "npu_kernels.c"), str(runtime)], check=True)
    arguments = [FAKE / "run_device.py", libinfo.find_libtvm_runtime(), library_path(), runtime, kernels]
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        input=json.dumps(COMMON | {"cases": CASES}),
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def log_of(found: dict[str, Any], case: str) -> list[str]:
    """The calls of a case that ran, without the choice of a device, which every call makes."""
    outcome = found["cases"][case]
    assert "error" not in outcome, outcome
    return [line for line in outcome["log"] if not line.startswith("aclrtSetDevice")]


def test_a_runtime_that_was_initialised_before_is_used(found: dict[str, Any]) -> None:
    assert found["described"] == {"error": "", "soc": "Ascend910B4-1"}


def test_the_process_settles_on_one_memory(found: dict[str, Any]) -> None:
    assert found["chosen"] == "npu"
    assert "another one in this process" in found["other"] and "UIR_DEVICE=model" in found["other"]


def test_calls_in_order(found: dict[str, Any]) -> None:
    """Two tensors are made and filled, a workspace taken, two kernels launched, the result read."""
    log = log_of(found, "plain")
    block = 4 * 128 + 32  # ends with a block of 32 bytes that a wide transfer may touch
    waits = "aclrtSynchronizeStream 0"  # ours before the copy, TVM's after it
    filled = [f"aclrtMalloc {block} 0", waits, "aclrtMemcpy 512 of 512 kind 1", waits]
    assert log[:8] == 2 * filled
    launched = [line for line in log if "blocks" in line]
    assert launched == ["twice blocks 2 stream 0", "plus_one blocks 2 stream 0"]
    assert log.index(launched[0]) > 8, "the workspace comes first"
    after = log[log.index(launched[1]) + 1 :]
    assert after[:2] == [waits, "aclrtMemcpy 512 of 512 kind 2"]
    assert after.count("aclrtFree") == 2, "the tensors; the workspace is kept for the thread's next call"


def test_launches_go_to_the_current_stream_and_device(found: dict[str, Any]) -> None:
    assert "twice blocks 2 stream 4096" in log_of(found, "on a stream")
    devices = {line for line in found["cases"]["second device"]["log"] if line.startswith("aclrtSetDevice")}
    assert "aclrtSetDevice 1" in devices


REFUSED = {
    "no such device": "aclrtSetDevice failed.|device 5||error 107001",
    "no memory": "aclrtMalloc failed.|512 bytes||error 207001: the stand-in was told to fail",
    "failing copy": "aclrtMemcpy failed.|||error 507899",
    "failing launch": "A launch failed.|twice||error 107003",
    "failing kernel": "aclrtSynchronizeStream failed.|||error 507035",
    "no such kernel": "has not its launcher.|affine|plus_two_launch",
    "nothing compiled": "was not compiled for where it is to run.|affine|dav-2201",
    "for a GPU": "another device.|affine|tensors on a gpu or model, where kernels of uir-cuda run|",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_fails_is_said(found: dict[str, Any], case: str) -> None:
    assert REFUSED[case] in found["cases"][case]["error"]


def test_every_case_is_looked_at() -> None:
    assert set(CASES) == {*REFUSED, "plain", "second device", "on a stream"}
