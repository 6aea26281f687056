# SPDX-License-Identifier: Apache-2.0
"""What a session of a server answers, what keeps a server there, and which servers may measure.

`test_rpc` has how work is dealt out.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import attrs
import pytest
import tvm
from uir_tvm.errors import DeviceError
from uir_tvm.tune import server
from uir_tvm.tune.job import OK, WRONG, Job, Result, Settings
from uir_tvm.tune.key import TOOLCHAIN, Key, expected, key_of
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.server import checked
from uir_tvm.tune.tracker import Address

from . import kernels

HERE = "10.0.0.1:9090"
TARGET, PLACE = "uir-cuda:h200", "gpu"


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


def key(**changes: str) -> Key:
    """A server's, of this version."""
    found = expected(TARGET, PLACE)
    versions = {**found.versions, TOOLCHAIN: "nvcc 13.0.88", **changes}
    return attrs.evolve(found, versions=versions)


def hello(**changes: Any) -> dict[str, Any]:
    """What a server answers that may measure."""
    return {"absent": "", "key": key().to_json(), "found": "h200", "workers": 1, **changes}


def test_a_server_of_this_version_is_accepted() -> None:
    """Whatever its toolchain: times are kept under it, and code for a GPU needs no compiler here."""
    assert checked(HERE, TARGET, PLACE, hello()) == key()


#: What a server says -> words of the error.
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "other version": (
        {"key": key(uir_tvm="0.0.1").to_json()},
        "not like this machine",
        "uir_tvm 0.0.1 is not",
    ),
    "other figures": (
        {"key": attrs.evolve(key(), model="0").to_json()},
        "not like this machine",
        "figures of h200 have changed",
    ),
    "other hardware": ({"found": "a100"}, "other hardware", "its gpu is a100"),
    "no such place": ({"absent": "there is no driver"}, "has no gpu", "there is no driver"),
    "an error of its own": (
        {"refused": {"what": "No nvcc.", "need": "nvcc", "limit": "found none", "remedy": "install it"}},
        "cannot measure uir-cuda:h200: No nvcc.",
        "found none",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused(case: str) -> None:
    """With need, limit and remedy."""
    changes, what, limit = REFUSED[case]
    with pytest.raises(DeviceError, match=what) as caught:
        checked(HERE, TARGET, PLACE, hello(**changes))
    assert limit in caught.value.limit
    assert caught.value.need and caught.value.remedy


def test_servers_with_different_toolchains_do_not_mix() -> None:
    said = hello(key=key(**{TOOLCHAIN: "nvcc 12.9.1"}).to_json())
    with pytest.raises(DeviceError, match="do not compare") as caught:
        checked("10.0.0.2:9090", TARGET, PLACE, said, key())
    assert "nvcc 12.9.1 is not nvcc 13.0.88" in caught.value.limit
