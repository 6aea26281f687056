# SPDX-License-Identifier: Apache-2.0
"""Where uir-cuda runs: GPU or host model, by what there is and by what is asked for."""

from __future__ import annotations

import logging

import pytest
import tvm
from uir_tvm import hardware
from uir_tvm.errors import TargetError
from uir_tvm.target import place, registry
from uir_tvm.target.cuda import places


@pytest.mark.parametrize(("device", "kind"), [("gpu", "cuda"), ("model", "ext_dev")])
def test_a_place_is_a_tvm_target_and_back(device: str, kind: str) -> None:
    spec = registry.get("uir-cuda")
    target = spec.target("h100", device)
    assert target.kind.name == kind and {"uir", "cuda"} <= {str(key) for key in target.keys}
    assert registry.of_target(target) is spec and registry.place_of(target).name == device
    again = registry.resolve(tvm.target.Target(dict(target.export())))
    assert registry.place_of(again.target).name == device
    assert registry.host_of(target).kind.name == "llvm"


def test_a_named_target_takes_model_and_device() -> None:
    resolved = registry.resolve("uir-cuda:a100", "gpu")
    assert str(resolved.target.attrs["arch"]) == "sm_80" and resolved.name == "uir-cuda:a100"


def test_an_unknown_device_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TargetError, match="does not run on 'tpu'") as caught:
        registry.resolve("uir-cuda", "tpu")
    assert caught.value.need == "one of auto, gpu, model"
    with pytest.raises(TargetError, match="uir-cpu does not run on 'gpu'"):
        registry.resolve("uir-cpu", "gpu")


def test_auto_takes_the_first_that_is_there() -> None:
    here = place.Place("a", "llvm", "cpu", lambda hw: {})
    there = place.Place("b", "llvm", "cpu", lambda hw: {})
    missing = place.Place("c", "llvm", "cpu", lambda hw: {}, absent=lambda: "broken")
    assert place.choose((missing, here, there), "auto", "t").name == "a"
    assert place.choose((missing,), "auto", "t").name == "c", "the last one says itself why it cannot run"


def test_a_notice_is_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_said", set())
    row = registry.get("uir-cuda").place("model")
    with caplog.at_level(logging.WARNING):
        row.say()
        row.say()
    assert caplog.text.count("host model of a GPU") == 1


GPUS = [
    (places.Gpu("NVIDIA H200", "sm_90", 132), "h200"),
    (places.Gpu("NVIDIA H100 80GB HBM3", "sm_90", 132), "h100"),
    (places.Gpu("NVIDIA A100-PCIE-40GB", "sm_80", 108), "a100"),
    (places.Gpu("NVIDIA L40S", "sm_89", 142), "l40s"),
    (places.Gpu("NVIDIA RTX 6000 Ada Generation", "sm_89", 142), "l40s"),
    (places.Gpu("Tesla V100", "sm_70", 80), None),
]


@pytest.mark.parametrize(("gpu", "wanted"), GPUS, ids=[row[0].name for row in GPUS])
def test_the_hardware_model_is_that_of_the_gpu(
    gpu: places.Gpu, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "absent", lambda: "")
    monkeypatch.setattr(places, "gpus", lambda: (gpu,))
    assert places.preset() == wanted


def test_every_hardware_model_has_a_target_everywhere() -> None:
    spec = registry.get("uir-cuda")
    for name in hardware.names("cuda"):
        for row in spec.places:
            assert str(spec.target(name, row.name).attrs["model"]) == name
