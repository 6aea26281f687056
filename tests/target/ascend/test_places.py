# SPDX-License-Identifier: Apache-2.0
"""Where uir-ascend runs: NPU or host model, by what there is and by what is asked for."""

from __future__ import annotations

import pathlib

import pytest
import tvm
from uir_tvm import hardware
from uir_tvm.target import registry
from uir_tvm.target.ascend import places


@pytest.mark.parametrize("device", ["npu", "model"])
def test_a_place_is_a_tvm_target_and_back(device: str) -> None:
    """Both are of the kind ext_dev: a key tells them apart, through JSON too."""
    spec = registry.get("uir-ascend")
    target = spec.target("910b4", device)
    assert target.kind.name == "ext_dev" and {"uir", "ascend"} <= {str(key) for key in target.keys}
    assert registry.of_target(target) is spec and registry.place_of(target).name == device
    again = registry.resolve(tvm.target.Target(dict(target.export())))
    assert registry.place_of(again.target).name == device
    assert registry.host_of(target).kind.name == "llvm"


def test_the_tag_stands_for_the_default_model() -> None:
    target = tvm.target.Target("uir-ascend")
    assert target.kind.name == "ext_dev" and str(target.attrs["model"]) == "910b2"
    assert {"uir", "ascend"} <= {str(key) for key in target.keys}


def test_without_a_device_file_the_toolkit_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking it takes a while and talks to the driver, and `import tvm` would wait for that."""

    def asked() -> dict[str, str]:
        raise AssertionError("the toolkit was asked")

    monkeypatch.setattr(places, "device_files", lambda: [])
    monkeypatch.setattr(places, "_described", asked)
    assert "/dev/davinci" in places.absent() and places.preset() is None


SOCS = {
    "Ascend910B1": "910b1",
    "Ascend910B2C": "910b2",
    "Ascend910B3": "910b3",
    "Ascend910B4-1": "910b4",
    "Ascend310P3": None,
}


@pytest.mark.parametrize("soc", SOCS)
def test_the_hardware_model_is_that_of_the_device(soc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "device_files", lambda: [pathlib.Path("/dev/davinci0")])
    monkeypatch.setattr(places, "_described", lambda: {"error": "", "soc": soc})
    assert not places.absent() and places.preset() == SOCS[soc]
    assert registry.get("uir-ascend").place().name == "npu"


def test_every_hardware_model_has_a_target_everywhere() -> None:
    spec = registry.get("uir-ascend")
    for name in hardware.names("ascend"):
        for row in spec.places:
            assert str(spec.target(name, row.name).attrs["model"]) == name
