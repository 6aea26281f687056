# SPDX-License-Identifier: Apache-2.0
"""Small GGUF files with random weights, written by the package ``gguf``."""

from __future__ import annotations

import pathlib
import string
from collections.abc import Callable, Mapping
from typing import Any

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

WORDS = 64
HEADS, KEY_HEADS = 4, 2
MODELS = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen3": (Qwen3Config, Qwen3ForCausalLM)}
#: Values of a head; transformers reads no setting of it for Qwen3, whose default this is.
HEAD = {"llama": 16, "qwen3": 128}
#: Of the products of a layer, and of the embedding.
KINDS = ("Q4_1", "Q4_0", "Q8_0", "F16")


def model(arch: str = "llama", tied: bool = True) -> Any:
    """Two layers; rows are whole groups of 32."""
    torch.manual_seed(5)
    config, kind = MODELS[arch]
    made = kind(
        config(
            vocab_size=WORDS,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=HEADS,
            num_key_value_heads=KEY_HEADS,
            head_dim=HEAD[arch],
            max_position_embeddings=96,
            tie_word_embeddings=tied,
        )
    ).eval()
    for parameter in made.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return made


def settings(arch: str) -> dict[str, Any]:
    """Of the file, by the names that `gguf.GGUFWriter` has methods for."""
    return {
        "context_length": 96,
        "embedding_length": 64,
        "block_count": 2,
        "feed_forward_length": 96,
        "head_count": HEADS,
        "head_count_kv": KEY_HEADS,
        "layer_norm_rms_eps": 1e-6,
        "rope_freq_base": 10000.0,
        "rope_dimension_count": HEAD[arch],
    }


def write(
    path: pathlib.Path,
    arch: str = "llama",
    *,
    tied: bool = True,
    change: Callable[[dict[str, np.ndarray]], None] | None = None,
    more: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> pathlib.Path:
    """A file of `model`.

    Parameters
    ----------
    path : pathlib.Path
    arch : str
        Of `MODELS`.
    tied : bool
    change : callable, optional
        Changes the tensors, float32 by GGUF's names, before they are packed.
    more : mapping, optional
        Settings instead of `settings`.
    name : str, optional
        What the file calls the architecture.
    """
    writer = gguf.GGUFWriter(path, name or arch)
    for key, value in {**settings(arch), **(more or {})}.items():
        getattr(writer, f"add_{key}")(value)
    words = ["<unk>", "</s>", "ab", *string.ascii_letters, *string.digits[:-1]]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3, 3, *[1] * (len(words) - 2)])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(0)
    tensors = named(model(arch, tied), arch)
    if change is not None:
        change(tensors)
    for index, (key, values) in enumerate(tensors.items()):
        kind = gguf.GGMLQuantizationType[KINDS[index % len(KINDS)] if values.ndim == 2 else "F32"]
        writer.add_tensor(key, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def named(model: Any, arch: str) -> dict[str, np.ndarray]:
    """The weights by their names in files; of llama, neighbouring rows of a head are rotated together."""
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], 2)
    found = {}
    for name, value in model.named_parameters():
        base, _, last = name.rpartition(".")
        key, values = f"{table.get_name(base)}.{last}", value.detach().numpy()
        heads = {"attn_q": HEADS, "attn_k": KEY_HEADS}.get(key.split(".")[-2])
        if heads and arch == "llama":
            rows = values.shape[0] // heads // 2
            values = values.reshape(heads, 2, rows, -1).swapaxes(1, 2).reshape(values.shape)
        found[key] = np.ascontiguousarray(values)
    return found
