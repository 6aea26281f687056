# SPDX-License-Identifier: Apache-2.0
"""Where uir-bang runs: MLU or host model, by what there is and by what is asked for."""

from __future__ import annotations

import pathlib

import pytest
import tvm
from uir_tvm import hardware
from uir_tvm.target import registry
from uir_tvm.target.bang import places


@pytest.mark.parametrize("device", ["mlu", "model"])
def test_a_place_is_a_tvm_target_and_back(device: str) -> None:
    """Both are of the kind ext_dev: a key tells them apart, through JSON too."""
    spec = registry.get("uir-bang")
    target = spec.target("mlu590", device)
    assert target.kind.name == "ext_dev" and {"uir", "bang"} <= {str(key) for key in target.keys}
    assert registry.of_target(target) is spec and registry.place_of(target).name == device
    again = registry.resolve(tvm.target.Target(dict(target.export())))
    assert registry.place_of(again.target).name == device
    assert again.name == "uir-bang:mlu590", "an executable finds its hardware by this name"
    assert registry.resolve(spec.target(None, "model")).name == "uir-bang"


def test_the_tag_stands_for_the_default_model() -> None:
    target = tvm.target.Target("uir-bang")
    assert target.kind.name == "ext_dev" and str(target.attrs["model"]) == "mlu370-x8"


def test_without_a_device_file_the_toolkit_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking it takes a while and talks to the driver, and `import tvm` would wait for that."""

    def asked() -> dict[str, str]:
        raise AssertionError("the toolkit was asked")

    monkeypatch.setattr(places, "device_files", lambda: [])
    monkeypatch.setattr(places, "_described", asked)
    assert "/dev/cambricon_dev" in places.absent() and places.preset() is None


NAMES = {
    "MLU370-X4": "mlu370-x4",
    "MLU370-X8": "mlu370-x8",
    "MLU590": "mlu590",
    "MLU590-M9": "mlu590",
    "MLU290": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_hardware_model_is_that_of_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "device_files", lambda: [pathlib.Path("/dev/cambricon_dev0")])
    monkeypatch.setattr(places, "_described", lambda: {"error": "", "name": name})
    assert not places.absent() and places.preset() == NAMES[name]
    assert registry.get("uir-bang").place().name == "mlu"
    named = {None: "uir-bang", "mlu370-x8": "uir-bang"}.get(NAMES[name], f"uir-bang:{NAMES[name]}")
    assert registry.resolve("uir-bang").name == named


def test_every_hardware_model_has_a_target_everywhere() -> None:
    spec = registry.get("uir-bang")
    for name in hardware.names("bang"):
        for row in spec.places:
            assert str(spec.target(name, row.name).attrs["model"]) == name
