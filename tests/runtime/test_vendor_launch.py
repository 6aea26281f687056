# SPDX-License-Identifier: Apache-2.0
"""What vendors' runtimes are asked for: a stand-in on the host answers for each, and logs every call."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import attrs
import pytest
from tvm import libinfo
from uir_tvm._native import library_path

from tests.without_torch import script

FAKE = pathlib.Path(__file__).with_name("fake")


@attrs.frozen
class Runtime:
    """One vendor's runtime: its stand-in, the names of its functions, what it answers."""

    #: Files of `fake`: the runtime, which the loader finds as `library`, and two kernels.
    runtime: str
    library: str
    kernels: str
    #: How kernels say for what they are, and what describes the device.
    common: dict[str, str]
    #: Of the functions: the start of their names, and those that do what is counted here.
    prefix: str
    malloc: str
    copy: str
    wait: str
    free: str
    select: str
    #: Where a kernel is launched: the line of its log, with the queue or stream.
    launched: str
    #: What the device is called, where its tensors are.
    described: dict[str, str]
    memory: str
    #: Lines of a tensor that is made and of copies to and from the device.
    made: str
    to_device: str
    to_host: str
    #: Error codes: no such device, no memory, and of a copy, a launch, a kernel.
    codes: tuple[int, int, int, int, int]

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        """What is run, by name; see `fake/run_device.py`."""
        _, memory, copy, launch, kernel = self.codes
        return {
            "plain": {},
            "second device": {"device": 1},
            "on a queue": {"stream": 4096},
            "no such device": {"device": 5},
            "no memory": {"failing": self.malloc, "code": memory},
            "failing copy": {"failing": self.copy, "code": copy},
            "failing launch": {"failing": "launch", "code": launch},
            "failing kernel": {"failing": self.wait, "code": kernel},
            "no such kernel": {"second": "plus_two"},
            "nothing compiled": {"compiled": False},
            "for a GPU": {"kind": "cuda"},
        }

    @property
    def refused(self) -> dict[str, str]:
        """What is said of the cases that do not run."""
        device, memory, copy, launch, kernel = self.codes
        return {
            "no such device": f"{self.select} failed.|device 5||error {device}",
            "no memory": f"{self.malloc} failed.|512 bytes||error {memory}: the stand-in was told to fail",
            "failing copy": f"{self.copy} failed.|||error {copy}",
            "failing launch": f"A launch failed.|twice||error {launch}",
            "failing kernel": f"{self.wait} failed.|||error {kernel}",
            "no such kernel": "has not its launcher.|affine|plus_two_launch",
            "nothing compiled": "was not compiled for where it is to run.|affine|" + self.common["arch"],
            "for a GPU": "another device.|affine|tensors on a gpu or model, where kernels of uir-cuda run|",
        }


RUNTIMES = {
    "npu": Runtime(
        "acl.c",
        "libacl_rt.so",
        "npu_kernels.c",
        {"kind": "ascend", "arch": "dav-2201", "describe": "uir.runtime.acl.describe"},
        "aclrt",
        "aclrtMalloc",
        "aclrtMemcpy",
        "aclrtSynchronizeStream",
        "aclrtFree",
        "aclrtSetDevice",
        "{kernel} blocks 2 stream {queue}",
        # a runtime that was initialised before is used
        {"error": "", "soc": "Ascend910B4-1"},
        "npu",
        # ends with a block of 32 bytes that a wide transfer may touch
        f"aclrtMalloc {4 * 128 + 32} 0",
        "aclrtMemcpy 512 of 512 kind 1",
        "aclrtMemcpy 512 of 512 kind 2",
        (107001, 207001, 507899, 107003, 507035),
    ),
    "mlu": Runtime(
        "cnrt.c",
        "libcnrt.so",
        "mlu_kernels.c",
        {"kind": "bang", "arch": "372", "describe": "uir.runtime.cnrt.describe"},
        "cnrt",
        "cnrtMalloc",
        "cnrtMemcpy",
        "cnrtQueueSync",
        "cnrtFree",
        "cnrtSetDevice",
        "{kernel} queue {queue}",
        # the name is what newer releases put first into a structure that grew
        {"error": "", "name": "MLU370-X8"},
        "mlu",
        "cnrtMalloc 512",
        "cnrtMemcpy 512 direction 0",
        "cnrtMemcpy 512 direction 2",
        (100005, 100100, 632015, 101312, 999991),
    ),
}


@attrs.frozen
class Found:
    """What became of a runtime's cases."""

    runtime: Runtime
    answer: dict[str, Any]

    def outcome(self, case: str) -> dict[str, Any]:
        return self.answer["cases"][case]

    def log(self, case: str) -> list[str]:
        """The calls of a case that ran, without the choice of a device, which every call makes."""
        outcome = self.outcome(case)
        assert "error" not in outcome, outcome
        return [line for line in outcome["log"] if not line.startswith(self.runtime.select)]


@pytest.fixture(scope="module", params=RUNTIMES.values(), ids=list(RUNTIMES))
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All cases of one runtime, in a process of their own."""
    runtime: Runtime = request.param
    folder = tmp_path_factory.mktemp("vendor")
    flags = ["gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Werror"]
    library, kernels = folder / runtime.library, folder / "kernels.so"
    subprocess.run([*flags, "-o", str(library), str(FAKE / runtime.runtime)], check=True)
    subprocess.run([*flags, "-o", str(kernels), str(FAKE / runtime.kernels), str(library)], check=True)
    done = subprocess.run(
        script(FAKE / "run_device.py", libinfo.find_libtvm_runtime(), library_path(), library, kernels),
        input=json.dumps(runtime.common | {"cases": runtime.cases}),
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Found(runtime, json.loads(done.stdout))


def test_the_device_is_described(found: Found) -> None:
    assert found.answer["described"] == found.runtime.described


def test_the_process_settles_on_one_memory(found: Found) -> None:
    assert found.answer["chosen"] == found.runtime.memory
    other = found.answer["other"]
    assert "another one in this process" in other and "UIR_DEVICE=model" in other


def test_what_a_call_asks_the_runtime_for(found: Found) -> None:
    """Two tensors are made and filled, a workspace taken, two kernels launched, the result read."""
    runtime, log = found.runtime, found.log("plain")
    waits = f"{runtime.wait} 0"  # ours before the copy, TVM's after it
    assert log[:8] == 2 * [runtime.made, waits, runtime.to_device, waits]
    launched = [line for line in log if not line.startswith(runtime.prefix)]
    assert launched == [runtime.launched.format(kernel=name, queue=0) for name in ("twice", "plus_one")]
    assert log.index(launched[0]) > 8, "the workspace comes first"
    after = log[log.index(launched[1]) + 1 :]
    assert after[:2] == [waits, runtime.to_host]
    assert after.count(runtime.free) == 2, "the tensors; the workspace is kept for the stream's next call"


def test_launches_go_to_the_current_queue_and_device(found: Found) -> None:
    runtime = found.runtime
    assert runtime.launched.format(kernel="twice", queue=4096) in found.log("on a queue")
    assert f"{runtime.select} 1" in found.outcome("second device")["log"]


#: Call -> workspaces that are allocated and freed for it.
STREAMS = {
    "first": (1, 0),
    "again": (0, 0),
    # the launches of one stream may still be running when those of another begin
    "another stream": (1, 0),
    "another thread": (0, 0),
    "the stream goes": (0, 1),
    "a stream of its address": (1, 0),
    # those of streams 0, 1001, 1002 and of the case on a queue are idle
    "full memory": (1, 4),
    "afterwards": (0, 0),
}


@pytest.mark.parametrize("call", STREAMS)
def test_workspaces_belong_to_streams(found: Found, call: str) -> None:
    log = found.answer["streams"][call]
    calls = (found.runtime.malloc, found.runtime.free)
    assert tuple(sum(line.startswith(name) for line in log) for name in calls) == STREAMS[call], log


def test_a_workspace_is_freed_when_its_stream_is_done(found: Found) -> None:
    runtime, log = found.runtime, found.answer["streams"]["the stream goes"]
    freed = next(k for k, line in enumerate(log) if line.startswith(runtime.free))
    assert f"{runtime.wait} 1001" in log[:freed] and "Destroy" in log[-1]


@pytest.mark.parametrize("calls", [1, 40])
def test_a_step_waits_for_its_result_alone(found: Found, calls: int) -> None:
    """However many kernels: none is waited for but where the result is read, once it is all on the queue."""
    runtime = found.runtime
    for log in found.answer["tokens"][str(calls)]:
        launched = [at for at, line in enumerate(log) if line.startswith(("twice", "plus_one"))]
        assert len(launched) == 4 * calls
        waits = [at for at, line in enumerate(log) if line.startswith(runtime.wait)]
        assert not [at for at in waits if launched[0] < at < launched[-1]]
        after = [line for line in log[launched[-1] + 1 :] if not line.startswith(runtime.select)]
        assert after[:2] == [f"{runtime.wait} 0", runtime.to_host]
        # of each input that is written: ours before the copy, TVM's after it; and of the result
        assert len(waits) == 2 * 2 + 2
        others = [line for line in log if not line.startswith((runtime.select, "twice", "plus_one"))]
        assert len(others) < 30, "calls of the runtime grow with kernels"


@pytest.mark.parametrize("case", list(RUNTIMES["npu"].refused))
def test_what_does_not_run_says_why(found: Found, case: str) -> None:
    assert found.runtime.refused[case] in found.outcome(case)["error"]


def test_every_case_is_looked_at(found: Found) -> None:
    assert set(found.runtime.cases) == {*found.runtime.refused, "plain", "second device", "on a queue"}
