# SPDX-License-Identifier: Apache-2.0
"""Which servers may measure for this machine, by what they say of themselves."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from uir_tvm.errors import DeviceError
from uir_tvm.tune.key import TOOLCHAIN, Key, expected
from uir_tvm.tune.peers import Peers, checked
from uir_tvm.tune.tracker import Address

HERE = Address("10.0.0.1", 9090)
TARGET, PLACE = "uir-cuda:h200", "gpu"


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
    assert checked(str(HERE), TARGET, PLACE, hello()) == key()
    peers = Peers()
    assert peers.accept(HERE, TARGET, PLACE, hello())
    assert peers.key_of(TARGET, PLACE) == key()
    assert peers.knows(HERE, TARGET, PLACE) and not peers.knows(HERE, "uir-cpu", "cpu")


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
    """With need, limit and remedy; a refused one is not asked again."""
    changes, what, limit = REFUSED[case]
    with pytest.raises(DeviceError, match=what) as caught:
        checked(str(HERE), TARGET, PLACE, hello(**changes))
    assert limit in caught.value.limit
    assert caught.value.need and caught.value.remedy
    peers = Peers()
    assert not peers.accept(HERE, TARGET, PLACE, hello(**changes))
    assert peers.refuses(HERE) and what in peers.refusal
    assert peers.key_of(TARGET, PLACE) is None


def test_servers_with_different_toolchains_do_not_mix() -> None:
    peers = Peers()
    assert peers.accept(HERE, TARGET, PLACE, hello())
    other = Address("10.0.0.2", 9090)
    said = hello(key=key(**{TOOLCHAIN: "nvcc 12.9.1"}).to_json())
    assert not peers.accept(other, TARGET, PLACE, said)
    assert "nvcc 12.9.1 is not nvcc 13.0.88" in peers.refusal or "toolchain" in peers.refusal
    assert peers.key_of(TARGET, PLACE) == key()
