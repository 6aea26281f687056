# SPDX-License-Identifier: Apache-2.0
"""A peer that fails, in whatever way and whenever, is a row's reason, and the others have their times."""

from __future__ import annotations

import math
import os
import pathlib
import time
from typing import Any

import pytest

from .peers_that_fail import RIGHT, prepared

#: Seconds that a peer has; a process begins in less, on a busy machine too.
PATIENCE = 2.0


def row(
    turns: Any, one_case: Any, *names: str, ready: float = 60.0, answer: float = PATIENCE
) -> dict[str, Any]:
    """What is found of peers."""
    peers = {
        name: turns.Peer("a case", name, 1, prepare=prepared, ready=ready, answer=PATIENCE) for name in names
    }
    try:
        return dict(one_case.measured("a case", peers, [RIGHT], 0.0))
    finally:
        for each in peers.values():
            each.stop()


@pytest.mark.parametrize("when", ["start", "turn", "outputs"])
def test_the_others_go_on(turns: Any, one_case: Any, when: str) -> None:
    """A process that crashes, and one that raises: both have reasons, and no time that a table would show."""
    crashes, raises = f"crashes at {when}", f"raises at {when}"
    found = row(turns, one_case, crashes, "well", raises)
    assert found["failed"] == {
        crashes: "its process was ended by signal 11 (Segmentation fault)",
        raises: "ValueError: error: that it cannot",
    }
    assert found["seconds"] == {"well": 0.002} and found["errors"] == {"well": 0.0}
    assert found["wrong"] == [] and found["prepare"] == {"well": 0.5}


def test_a_process_that_ends_says_with_what(turns: Any, one_case: Any) -> None:
    assert row(turns, one_case, "leaves at turn")["failed"] == {"leaves at turn": "its process ended with 7"}


@pytest.mark.parametrize("how", ["hangs", "hangs deaf", "waits for a program"])
def test_no_answer_is_waited_for_without_end(turns: Any, one_case: Any, monkeypatch: Any, how: str) -> None:
    """Its process is ended, whether it hears SIGTERM or not, and so are programs that it has started."""
    import asked_process

    monkeypatch.setattr(asked_process, "GRACE", 0.3)
    peer = turns.Peer("a case", f"{how} at turn", 1, prepare=prepared, answer=0.5)
    group = peer._process._process.pid
    found = one_case.measured("a case", {how: peer}, [RIGHT], 0.0)
    assert found["failed"] == {how: "no answer within 0.5 s"}
    end = time.monotonic() + 5.0
    while _running(group) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _running(group)


def test_who_is_not_asked_stands_still(turns: Any) -> None:
    """A pool that looks for work would take processors from the peer whose turn it is."""
    peer = turns.Peer("a case", "well", 1, prepare=prepared)
    peer.wait()
    pid = peer._process._process.pid
    for _ in range(2):
        assert _state(pid) == "T"
        peer.turn()
    assert peer.times == [0.001, 0.002, 0.003] * 2
    peer.stop()
    assert not _running(pid)


def _state(pid: int) -> str:
    """The state of a process, once a signal that stops it has come there."""
    end = time.monotonic() + 5.0
    while True:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "T" or time.monotonic() > end:
            return state
        time.sleep(0.001)


def _running(group: int) -> list[str]:
    """Processes of a group that are no zombies."""
    found = []
    for each in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = each.read_text().rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        state, _, its_group = fields.split()[:3]
        found += [name] if int(its_group) == group and state != "Z" else []
    return found


def test_what_is_never_ready_has_failed(turns: Any, one_case: Any) -> None:
    """Its time runs from the start of its process on."""
    begin = time.monotonic()
    found = row(turns, one_case, "hangs at start", ready=1.0)
    assert found["failed"] == {"hangs at start": "no answer within 1 s"}
    assert time.monotonic() - begin < 10.0


def test_wrong_results_are_no_failure(turns: Any, one_case: Any) -> None:
    """They have a time, and the difference that takes them out of the ratio."""
    found = row(turns, one_case, "wrong", "well")
    assert found["wrong"] == ["wrong"] and found["errors"]["wrong"] == pytest.approx(1.0 / 5.0)
    assert set(found["seconds"]) == {"wrong", "well"} and not found["failed"]


@pytest.mark.parametrize("does", ["hangs at start", "well"])
def test_a_process_ends_with_who_asks(tmp_path: pathlib.Path, does: str) -> None:
    """Also where that was ended by force, and what it does never ends, or it stands still."""
    import subprocess
    import sys

    from .conftest import BENCHMARKS

    root = pathlib.Path(BENCHMARKS).parent
    text = (
        "import sys, time\n"
        f"sys.path[:0] = [{BENCHMARKS!r}, {str(root)!r}]\n"
        "from tests.benchmarks.peers_that_fail import prepared\n"
        "from turns import Peer\n"
        "if __name__ == '__main__':\n"
        f"    peer = Peer('a case', {does!r}, 1, prepare=prepared)\n"
        f"    {'peer.wait()' if does == 'well' else ''}\n"
        "    print(peer._process._process.pid, flush=True)\n"
        "    time.sleep(1000)\n"
    )
    file = tmp_path / "asks.py"
    file.write_text(text)
    with subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, text=True) as who:
        assert who.stdout is not None
        asked = int(who.stdout.readline())
        while os.getpgid(asked) != asked:  # until it has begun
            time.sleep(0.01)
        time.sleep(0.2)
        who.kill()
    end = time.monotonic() + 10.0
    while _running(asked) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _running(asked)


@pytest.mark.parametrize("what, started", [("build", 0), ("reference", 2)])
def test_a_case_that_cannot_be_judged(one_case: Any, monkeypatch: Any, what: str, started: int) -> None:
    """Every peer has failed, for that reason, who was started is stopped, and the run has its row."""

    class Quiet:
        stopped = 0

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def stop(self) -> None:
            Quiet.stopped += 1

    def fails(*_: Any) -> Any:
        raise OSError("no such model")

    monkeypatch.setattr(one_case, "Peer", Quiet)
    monkeypatch.setattr(one_case, what, fails)
    found = one_case.run_case("mean 128x512", ["one", "two"], 1.0, 1)
    assert found["failed"] == dict.fromkeys(["one", "two"], "no reference: no such model")
    assert not found["seconds"] and Quiet.stopped == started


def test_no_outputs_where_there_are_some_is_wrong(turns: Any) -> None:
    """An output of no elements agrees, if it is there."""
    import numpy as np

    empty = np.zeros((0, 3))
    assert turns.difference(empty.astype("float32"), empty) == 0.0
    assert math.isinf(turns.difference(np.array([np.nan]), np.array([1.0])))
