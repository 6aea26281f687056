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
#: Page-locked bytes of a queue (src/runtime/staging.h).
BLOCK = 256 << 10


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
    lock: str
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
            "no memory": {"failing": self.malloc, "code": memory, "stream": 8192},
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
        "aclrtMallocHost",
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
        "aclrtMemcpyAsync 512 of 512 kind 1 stream {queue} page-locked",
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
        "cnrtHostMalloc",
        "cnrtMemcpy",
        "cnrtQueueSync",
        "cnrtFree",
        "cnrtSetDevice",
        "{kernel} queue {queue}",
        # the name is what newer releases put first into a structure that grew
        {"error": "", "name": "MLU370-X8"},
        "mlu",
        "cnrtMalloc 512",
        "cnrtMemcpyAsync 512 queue {queue} direction 0 page-locked",
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

    def actions(self, case: str) -> list[str]:
        """How writes of a case reached the device: "queued", or after a "wait" by a "copy" at once."""
        runtime, found = self.runtime, []
        for line in self.answer["writes"][case]:
            if line.startswith(f"{runtime.copy}Async"):
                assert line.endswith("page-locked")
                found.append("queued")
            elif line.startswith((runtime.wait, f"{runtime.copy} ")):
                found.append("wait" if line.startswith(runtime.wait) else "copy")
        return found


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
        input=json.dumps(runtime.common | {"cases": runtime.cases, "lock": runtime.lock}),
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
    write, waits = runtime.to_device.format(queue=0), f"{runtime.wait} 0"
    assert log[:5] == [runtime.made, f"{runtime.lock} {BLOCK}", write, runtime.made, write]
    launched = [line for line in log if not line.startswith(runtime.prefix)]
    assert launched == [runtime.launched.format(kernel=name, queue=0) for name in ("twice", "plus_one")]
    assert log[5] == runtime.made and log.index(launched[0]) == 6, "the workspace comes first"
    # tensors and workspace stay with the stream, for its next calls
    assert log[log.index(launched[1]) + 1 :] == [waits, runtime.to_host]


def test_launches_go_to_the_current_queue_and_device(found: Found) -> None:
    """Copies too: the result is waited for on the queue that computes it."""
    runtime, log = found.runtime, found.log("on a queue")
    assert runtime.launched.format(kernel="twice", queue=4096) in log
    assert log.count(runtime.to_device.format(queue=4096)) == 2
    assert log[-2:] == [f"{runtime.wait} 4096", runtime.to_host]
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
    # those of streams 0, 1001, 1002 are idle
    "full memory": (1, 3),
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
    """However many inputs and kernels: the host waits once, where it reads the result, all being queued."""
    runtime = found.runtime
    log = found.answer["tokens"][str(calls)][-1]  # earlier steps find no memory to take
    asked = [line for line in log if not line.startswith(runtime.select)]
    assert asked[:2] == 2 * [runtime.to_device.format(queue=0)]
    assert len(asked) == 2 + 4 * calls + 2
    assert all(line.startswith(("twice", "plus_one")) for line in asked[2:-2])
    assert asked[-2:] == [f"{runtime.wait} 0", runtime.to_host]


def test_writes_wait_where_there_is_no_room(found: Found) -> None:
    """Four pieces of 60 KiB have room; the next waits and is copied at once, and there is room for four more.

    What is larger than a piece waits, and so does all where the runtime has no page-locked memory.
    """
    runtime = found.runtime
    assert found.actions("small") == ["queued"] * 4 + ["wait", "copy"] + ["queued"] * 4
    assert found.actions("large") == ["wait", "copy"]
    assert found.actions("none") == ["wait", "copy"] * 2
    assert sum(line.startswith(runtime.lock) for line in found.answer["writes"]["small"]) == 1


def test_copies_of_tvm_wait_on_the_current_queue(found: Found) -> None:
    """TVM names no queue, and waits itself behind each copy."""
    runtime = found.runtime
    log = [line for line in found.answer["of TVM"] if not line.startswith(runtime.select)]
    waits = f"{runtime.wait} 4001"
    assert log == [runtime.to_device.format(queue=4001), waits, waits, runtime.to_host, waits]


@pytest.mark.parametrize("case", list(RUNTIMES["npu"].refused))
def test_what_does_not_run_says_why(found: Found, case: str) -> None:
    assert found.runtime.refused[case] in found.outcome(case)["error"]


def test_every_case_is_looked_at(found: Found) -> None:
    assert set(found.runtime.cases) == {*found.runtime.refused, "plain", "second device", "on a queue"}
