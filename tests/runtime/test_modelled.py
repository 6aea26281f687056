# SPDX-License-Identifier: Apache-2.0
"""Modelled times as tables and traces."""

from __future__ import annotations

import json
import pathlib
import threading

import pytest
from uir_tvm import hardware
from uir_tvm.errors import ArtifactError
from uir_tvm.hardware.library_costs import library_time
from uir_tvm.library.attrs import MatmulAttrs
from uir_tvm.runtime.modelled import LaunchTime, Times, recording

ROWS = [
    {
        "entry": "softmax_kernel",
        "kernel": "softmax_1of2",
        "seconds": 3e-6,
        "bound": "MTE2",
        "pipes": {
            "MTE2": {"busy_seconds": 2.9e-6, "instructions": 8, "bytes": 4096},
            "V": {"busy_seconds": 1e-6, "instructions": 20, "bytes": 0},
        },
        "timeline": [
            {"core": 1, "pipe": "V", "name": "Exp", "line": 12, "start": 1e-6, "end": 1.5e-6},
        ],
    },
    {"entry": "softmax_kernel", "kernel": "softmax_2of2", "seconds": 1e-6, "bound": "V"},
    {"entry": "matmul", "kernel": "aclnnMatmul", "seconds": 4e-6, "bound": "M"},
    {"entry": "softmax_kernel", "kernel": "softmax_1of2", "seconds": 3e-6, "bound": "MTE2"},
]


@pytest.fixture
def times() -> Times:
    launches = [LaunchTime.of(row) for row in ROWS]
    assert None not in launches
    return Times(tuple(launch for launch in launches if launch is not None))


def test_launches_of_a_kernel_are_one_row(times: Times) -> None:
    """The longest first; what binds most of its time is said."""
    softmax, matmul = times.table()
    assert softmax == {
        "kernel": "softmax",
        "launches": 3,
        "modelled us": 7.0,
        "moved KiB": 4.0,
        "share": "63.6 %",
        "bound by": "MTE2",
    }
    assert matmul["kernel"] == "matmul" and matmul["share"] == "36.4 %"
    assert times.seconds == pytest.approx(11e-6)


def test_bytes_moved_are_those_of_global_memory() -> None:
    """What copies on the chip, vectors and scalar code work on counts as moved nowhere."""
    pipes = {"IO": 100, "MOVE": 50, "COMPUTE": 4000, "S": 8, "memory": 128}
    rows = {name: {"busy_seconds": 0, "instructions": 1, "bytes": size} for name, size in pipes.items()}
    launch = LaunchTime.of({"entry": "f", "kernel": "f", "seconds": 1e-6, "bound": "IO", "pipes": rows})
    assert launch is not None and (launch.bytes, launch.memory_bytes) == (100, 128)


def test_json_has_launches_without_timelines(times: Times) -> None:
    data = json.loads(json.dumps(times.to_json()))
    assert data["modelled_seconds"] == pytest.approx(11e-6) and len(data["launches"]) == 4
    assert data["launches"][0]["pipes"]["MTE2"]["bytes"] == 4096 and "timeline" not in data["launches"][0]


def test_a_trace_puts_launches_one_after_the_other(times: Times, tmp_path: pathlib.Path) -> None:
    written = json.loads(times.write_trace(tmp_path / "trace.json").read_text())
    events = written["traceEvents"]
    launches = [event for event in events if event["tid"] == "kernels"]
    assert [event["ts"] for event in launches] == pytest.approx([0, 3, 4, 8])
    (exp,) = [event for event in events if event["tid"] == "V"]
    assert (exp["name"], exp["pid"], exp["ph"]) == ("Exp", "core 1", "X")
    assert exp["ts"] == pytest.approx(1.0) and exp["dur"] == pytest.approx(0.5)
    with pytest.raises(ArtifactError, match="cannot be written"):
        times.write_trace(tmp_path / "no" / "trace.json")


def test_a_librarys_operator_takes_the_time_of_the_roofline() -> None:
    """By the hardware that is named; nobody knows the time of one whose hardware has no known library."""
    attributes = MatmulAttrs.contiguous((64, 128), (128, 256))
    row = {"entry": "matmul", "kernel": "library", "attrs": attributes.to_json(), "dtype": "float16"}
    known = hardware.get("910b2", "ascend")
    launch = LaunchTime.of(row, known)
    moved = 2 * (64 * 128 + 128 * 256 + 64 * 256)
    expected = library_time(known, "float16", 2 * 64 * 128 * 256, moved)
    assert launch is not None and expected is not None and launch.library
    assert (launch.entry, launch.seconds) == ("library matmul 64x128x256", expected.seconds)
    assert launch.bytes == launch.memory_bytes == moved
    assert Times((launch,)).library_seconds == launch.seconds
    assert LaunchTime.of(row, hardware.get("host")) is None and LaunchTime.of(row) is None


def test_without_launches_nothing_is_found() -> None:
    with recording() as found:
        pass
    assert found.times.launches == () and found.times.table() == []


def test_threads_that_record_take_turns() -> None:
    """Else the second to begin throws away what the first has, and the first to end ends both."""
    inside = threading.Event()

    def other() -> None:
        with recording():
            inside.set()

    thread = threading.Thread(target=other)
    with recording():
        thread.start()
        assert not inside.wait(0.2)
    assert inside.wait(10)
    thread.join()
