# SPDX-License-Identifier: Apache-2.0
"""What a session of a server answers, and what keeps a server there; `test_rpc` has how work is dealt out."""

from __future__ import annotations

import functools
import json

import attrs
import pytest
import tvm
from uir_tvm.errors import DeviceError
from uir_tvm.tune import server
from uir_tvm.tune.job import OK, WRONG, Job, Result, Settings
from uir_tvm.tune.key import key_of
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.peers import checked
from uir_tvm.tune.tracker import Address

from . import kernels


def test_a_session_measures_and_confirms() -> None:
    """Real kernels, on the host model: as JSON in and out, with workers that end with the session."""
    target = "uir-bang:mlu370-x4"
    text = str(tvm.ir.save_json(kernels.kernel(target="uir-bang")))
    job = Job("relu", text, target, "model", settings=Settings(repeats=2))
    session = server._Session(functools.partial(LocalMeasurer, 1))
    said = json.loads(session.hello(json.dumps({"target": target, "place": "model"})))
    assert checked("here", target, "model", said) == key_of(target, "model")
    asked = {"how": "measure", "jobs": [job.to_json(), {**job.to_json(), "target": "uir-bang:none"}]}
    good, bad = [Result.from_json(row) for row in json.loads(session.measure(json.dumps(asked)))]
    assert good.outcome == OK and good.modelled and good.median > 0
    assert bad.outcome not in (OK, WRONG) and "none" in bad.said
    asked = {"how": "confirm", "jobs": [job.to_json()]}
    (again,) = [Result.from_json(row) for row in json.loads(session.measure(json.dumps(asked)))]
    assert again.median == good.median
    assert session.measurer is not None
    session.measurer.close()


def test_what_a_server_cannot_say() -> None:
    """An unknown target is an answer, not the end of the session."""
    session = server._Session(lambda: None)  # type: ignore[arg-type, return-value]
    said = json.loads(session.hello(json.dumps({"target": "uir-cuda:none", "place": "model"})))
    assert "none" in said["refused"]["what"]
    with pytest.raises(DeviceError, match="cannot measure uir-cuda:none"):
        checked("there", "uir-cuda:none", "model", said)


@attrs.define
class Process:
    """A server process that is seen alive so many times."""

    looks: int
    port: int = 9090
    ended: bool = False

    @property
    def proc(self) -> Process:
        return self

    def is_alive(self) -> bool:
        self.looks -= 1
        return self.looks >= 0

    def join(self, _seconds: float) -> None:
        if not self.looks:
            raise KeyboardInterrupt

    def terminate(self) -> None:
        self.ended = True


def test_a_server_that_ends_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is interrupted, when nothing stays behind."""
    monkeypatch.setattr(server, "PAUSE", 0.0)
    first, second = Process(0), Process(1)
    left, said = [first, second], []
    with pytest.raises(KeyboardInterrupt):
        server.serve(lambda: left.pop(0), said.append)
    assert first.ended and second.ended and not left
    assert said == ["listening at port 9090", "the server process ended; starting another in 0 s", said[0]]


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What TVM's RPC imports is no dependency of everybody."""
    monkeypatch.setattr(server, "NEEDS", ("a_package_that_nobody_has",))
    with pytest.raises(DeviceError, match="not installed") as caught:
        server.start(Address("127.0.0.1", 9190), "k")
    assert "uir_tvm[rpc]" in caught.value.remedy
