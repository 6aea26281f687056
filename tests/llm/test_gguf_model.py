# SPDX-License-Identifier: Apache-2.0
"""Models of GGUF files compute what transformers computes of them; files of two models are refused."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm.llm
from uir_tvm.errors import GenerationError, ModelFormatError
from uir_tvm.llm.quantized_modules import QuantizedEmbedding, QuantizedLinear, packed_weight
from uir_tvm.llm.read_model import packed_model, read_model

pytest.importorskip("gguf")
pytest.importorskip("accelerate")
import transformers

from .gguf_files import WORDS, model, write


def _logits(model: Any) -> np.ndarray:
    with torch.no_grad():
        return model(torch.arange(9)[None] % WORDS).logits[0].numpy()


@pytest.fixture(scope="module", params=[("llama", True), ("llama", False), ("qwen3", True)])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    arch, tied = request.param
    return write(tmp_path_factory.mktemp("gguf") / "small.gguf", arch, tied=tied)


def _by_transformers(path: pathlib.Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    ).eval()


@pytest.mark.parametrize("weights", ["packed", "float32"])
def test_as_transformers_reads_it(written: pathlib.Path, weights: str) -> None:
    """The same values, so the same logits to the bit; tied weights are one."""
    made, _ = read_model(written, weights)
    np.testing.assert_array_equal(_logits(made), _logits(_by_transformers(written)))
    kinds = {type(module) for module in made.modules()}
    assert ({QuantizedLinear, QuantizedEmbedding} <= kinds) == (weights == "packed")
    embedding, last = made.get_input_embeddings(), made.get_output_embeddings()
    if weights == "packed" and made.config.tie_word_embeddings:
        assert last.packed is embedding.packed and last.scales is embedding.scales
    assert not any(parameter.is_meta for parameter in made.parameters())


@pytest.mark.parametrize(("weights", "error"), [("float16", 0.01), ("bfloat16", 0.1)])
def test_in_16_bits(written: pathlib.Path, weights: str, error: float) -> None:
    """All parameters are of the type, rates of angles are not; tied weights are one."""
    made, _ = read_model(written, weights)
    assert {str(each.dtype) for each in made.parameters()} == {f"torch.{weights}"}
    assert {each.dtype for name, each in made.named_buffers() if "inv_freq" in name} == {torch.float32}
    embedding, last = made.get_input_embeddings(), made.get_output_embeddings()
    assert (last.weight is embedding.weight) == made.config.tie_word_embeddings
    wanted = _logits(_by_transformers(written))
    found = np.asarray(made.float()(torch.arange(9)[None] % WORDS).logits[0].detach())
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < error


@pytest.mark.parametrize(("weights", "error"), [("q8", 0.05), ("q4", 0.5)])
def test_packed_anew(written: pathlib.Path, weights: str, error: float) -> None:
    """Near the file's own: what two layers make of steps of 1/127, or 1/15, of a group's values."""
    wanted = _logits(_by_transformers(written))
    made, _ = read_model(written, weights)
    found = _logits(made)
    distance = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert 0 < distance < error
    if made.config.tie_word_embeddings:
        assert made.get_output_embeddings().packed is made.get_input_embeddings().packed


@pytest.mark.parametrize(("bits", "steps"), [(8, 127), (4, 15)])
def test_a_packed_value_is_off_by_half_a_step(bits: int, steps: int) -> None:
    """And by what fp16 rounds of the scale and the offset of its group."""
    values = np.random.default_rng(4).standard_normal((6, 96)).astype(np.float32)
    values[2, 32:64] = 0
    found = packed_weight(values, bits)
    groups = values.reshape(6, 3, 32)
    width = np.abs(groups).max(-1) if bits == 8 else groups.max(-1) - groups.min(-1)
    bound = (0.5 / steps + 2.0**-11) * width + 2.0**-11 * np.abs(groups).max(-1)
    assert (np.abs(found.values().reshape(6, 3, 32) - groups).max(-1) <= bound).all()
    assert (found.values()[2, 32:64] == 0).all()


def test_a_model_of_transformers_is_packed_in_a_copy() -> None:
    given = model()
    wanted = _logits(given)
    made = packed_model(given, "q8", copied=True)
    assert 0 < np.linalg.norm(_logits(made) - wanted) / np.linalg.norm(wanted) < 0.05
    np.testing.assert_array_equal(_logits(given), wanted)
    assert made.get_output_embeddings().packed is made.get_input_embeddings().packed
    with pytest.raises(GenerationError, match="not packed"):
        packed_model(given, "packed")
    given.model.layers[0].mlp.up_proj.weight.data[3, 4] = float("inf")
    with pytest.raises(ModelFormatError, match="cannot be packed"):
        packed_model(given, "q4", copied=True)


def _drop(name: str) -> Any:
    return lambda tensors: tensors.pop(name)


def _wide(tensors: dict[str, np.ndarray]) -> None:
    tensors["blk.1.ffn_up.weight"] = np.ones((96, 32), np.float32)


def _more(tensors: dict[str, np.ndarray]) -> None:
    tensors["blk.0.attn_q_norm.weight"] = np.ones(16, np.float32)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"change": _drop("blk.1.ffn_up.weight")}, "without blk.1.ffn_up.weight"),
        ({"change": _wide}, r"'blk.1.ffn_up.weight' of shape \(96, 32\)"),
        ({"change": _more}, "with blk.0.attn_q_norm.weight"),
        ({"more": {"block_count": 3}}, "without blk.2"),
        ({"more": {"feed_forward_length": 128}}, r"need: *\(128, 64\)"),
        ({"name": "unheard"}, "transformers cannot read .*unheard"),
    ],
)
def test_weights_of_another_model(tmp_path: pathlib.Path, given: dict[str, Any], match: str) -> None:
    path = write(tmp_path / "other.gguf", **given)
    with pytest.raises(ModelFormatError, match=match) as caught:
        read_model(path, "float32")
    assert caught.value.need and caught.value.remedy


def test_compiled(tmp_path: pathlib.Path) -> None:
    """What a file packs computes as the same weights in float32 do; nothing is compiled for one token."""
    path = write(tmp_path / "small.gguf")
    made = uir_tvm.llm.load(path, max_length=32, chunk=16, cache="float32")
    tokens = [5, 9, 33, 60, 2, 7]
    with torch.no_grad():
        wanted = _by_transformers(path)(torch.tensor([tokens])).logits[0].numpy()
    np.testing.assert_allclose(made.prefill(tokens[:3]), wanted[2], atol=1e-3)
    for place in range(3, 6):
        np.testing.assert_allclose(made.decode(tokens[place]), wanted[place], atol=1e-3)
    (program,) = made.executable.report()["programs"]
    assert program["conditions"] == ["1 <= length <= 16"]


def test_an_architecture_that_does_not_stay_packed(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "gemma.gguf", name="gemma2")
    with pytest.raises(ModelFormatError, match="'gemma2', whose weights cannot stay packed"):
        read_model(path, "packed")
