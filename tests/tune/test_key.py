# SPDX-License-Identifier: Apache-2.0
"""Keys: what a time is true of."""

from __future__ import annotations

import attrs
import pytest
from uir_tvm.errors import TargetError
from uir_tvm.target.registry import TARGETS
from uir_tvm.tune import Key, key_of


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_a_key(target: str) -> None:
    device = "auto" if target == "uir-cpu" else "model"
    key = key_of(target, device)
    assert key.target == target and key.place in ("cpu", "model")
    assert Key.from_json(key.to_json()) == key and not key.differs(key)
    assert key.folder.startswith(f"{target}-{key.hardware}-{key.place}-")


def test_a_key_changes_with_everything_that_makes_times_untrue() -> None:
    key = key_of("uir-ascend:910b2", "model")
    others = [
        key_of("uir-ascend:910b1", "model"),
        key_of("uir-bang", "model"),
        attrs.evolve(key, model="0" * 12),
        attrs.evolve(key, place="npu"),
        attrs.evolve(key, versions={**key.versions, "apache-tvm": "0.1"}),
        attrs.evolve(key, versions={**key.versions, "toolchain": "another"}),
    ]
    assert len({other.folder for other in [key, *others]}) == len(others) + 1
    said = [key.differs(other) for other in others]
    assert all(said), said
    assert "figures of 910b2 have changed" in said[2] and "apache-tvm 0.1 is not" in said[4]


@pytest.mark.parametrize("data", [{}, {"target": "uir-cpu"}, {**key_of("uir-cpu").to_json(), "versions": 3}])
def test_other_json_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="missing 4|missing 5|not iterable"):
        Key.from_json(data)


def test_unknown_targets() -> None:
    with pytest.raises(TargetError):
        key_of("uir-abacus")
