# SPDX-License-Identifier: Apache-2.0
"""Folders as GPTQ and AWQ write them, of random codes, written code by code as their own packers do."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from .small import model as small_model
from .small import tokenizer

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def gptq_words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes [inputs, outputs] in words along the inputs: one stream of bits, the lowest first."""
    words = np.zeros((codes.shape[0] * bits // 32, codes.shape[1]), np.uint64)
    for place, row in enumerate(codes.astype(np.uint64)):
        word, bit = divmod(place * bits, 32)
        words[word] |= row << np.uint64(bit) & np.uint64(0xFFFFFFFF)
        if bit + bits > 32:
            words[word + 1] |= row >> np.uint64(32 - bit)
    return words.astype(np.uint32).view(np.int32)


def awq_words(codes: np.ndarray) -> np.ndarray:
    """Codes [rows, outputs] of 4 bits in words along the outputs."""
    words = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
    for column in range(words.shape[1]):
        for place, output in enumerate(AWQ_ORDER):
            words[:, column] |= codes[:, 8 * column + output].astype(np.uint32) << np.uint32(4 * place)
    return words.view(np.int32)


def packed(
    rng: np.random.Generator, shape: tuple[int, int], method: str, bits: int, group: int, ordered: bool
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The tensors of a module of (outputs, inputs), and the float weight that they stand for."""
    outputs, inputs = shape
    codes = rng.integers(0, 1 << bits, (inputs, outputs))
    points = rng.integers(1, 1 << bits, (inputs // group, outputs))
    scales = (0.1 * rng.random(points.shape) + 0.05).astype(np.float16) * 2.0 ** (2 - bits)
    scales = scales.astype(np.float16)
    index = np.arange(inputs) // group
    if ordered:
        index = rng.permutation(index)
    weight = scales[index].astype(np.float32) * (codes - points[index])
    if method == "awq":
        parts = {"qweight": awq_words(codes), "qzeros": awq_words(points), "scales": scales}
    else:
        parts = {"qweight": gptq_words(codes, bits), "qzeros": gptq_words((points - 1).T, bits).T}
        parts |= {"scales": scales, "g_idx": index.astype(np.int32)}
    return parts, weight.T.astype(np.float32)


def write(
    folder: pathlib.Path, method: str = "gptq", bits: int = 4, group: int = 16, ordered: bool = False
) -> Any:
    """A small model's folder; returns the model with the float weights that the folder stands for."""
    rng, model = np.random.default_rng(5), small_model()
    tensors: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            shape = (module.out_features, module.in_features)
            parts, weight = packed(rng, shape, method, bits, group, ordered)
            tensors |= {f"{name}.{key}": torch.from_numpy(part.copy()) for key, part in parts.items()}
            module.weight.data = torch.from_numpy(weight)
    for name, parameter in model.named_parameters():
        if f"{name.removesuffix('.weight')}.qweight" not in tensors:
            tensors[name] = parameter.data.half()
            parameter.data = parameter.data.half().float()
    config = model.config.to_dict() | {"architectures": ["LlamaForCausalLM"]}
    config["quantization_config"] = {"quant_method": method, "bits": bits, "group_size": group}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    tokenizer().save_pretrained(folder)
    return model
