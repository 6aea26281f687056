# SPDX-License-Identifier: Apache-2.0
"""What a server answers, where it listens, and which servers may measure.

`test_rpc` has how work is dealt out.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
import tvm
from uir_tvm.errors import DeviceError
from uir_tvm.tune.job import OK, WRONG, Job, Result, Settings
from uir_tvm.tune.key import TOOLCHAIN, Key, expected, key_of
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.server import MeasuringServer, checked, measured, said_of

from . import kernels

HERE = "10.0.0.1:9090"
TARGET, PLACE = "uir-cuda:h200", "gpu"


def test_it_measures_and_confirms() -> None:
    """Real kernels, on the host model: as JSON in and out."""
    target = "uir-bang:mlu370-x4"
    text = str(tvm.ir.save_json(kernels.kernel(target="uir-bang")))
    job = Job("relu", text, target, "model", settings=Settings(repeats=2))
    said = json.loads(json.dumps(said_of(target, "model")))
    assert checked("here", target, "model", said) == key_of(target, "model")
    with LocalMeasurer() as measurer:
        bad = {**job.to_json(), "target": "uir-bang:none"}
        asked = json.loads(json.dumps({"turns": False, "jobs": [job.to_json(), bad]}))
        good, bad = map(Result.from_json, measured(measurer, asked)["results"])
        assert good.outcome == OK and good.modelled and good.median > 0
        assert bad.outcome not in (OK, WRONG) and "none" in bad.said
        (again,) = map(
            Result.from_json, measured(measurer, {"turns": True, "jobs": asked["jobs"][:1]})["results"]
        )
        assert again.median == good.median


def test_what_a_server_cannot_say() -> None:
    """An unknown target is an answer, not the end of the connection."""
    said = said_of("uir-cuda:none", "model")
    assert "none" in said["refused"]["what"]
    with pytest.raises(DeviceError, match="cannot measure uir-cuda:none"):
        checked("there", "uir-cuda:none", "model", said)


def test_ports_that_others_have() -> None:
    """The next one is taken."""
    with (
        MeasuringServer("127.0.0.1", 20300, "k") as first,
        MeasuringServer("127.0.0.1", first.port, "k") as other,
    ):
        assert other.port > first.port


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
