# SPDX-License-Identifier: Apache-2.0
"""Decoder layers of `transformers` as their authors wrote them: of GPT-2 medium, and of Llama-2-7B's shape.

Attention is the one in separate operators (``attn_implementation="eager"``), which is what runs where no
vendor's fused one is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch
from transformers import GPT2Config, LlamaConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

SEED = 20240229


@attrs.frozen
class Shape:
    """Sizes of a model; ``layers`` equal ones make it."""

    layers: int
    hidden: int
    heads: int
    ffn: int

    @property
    def head(self) -> int:
        """Width of a head."""
        return self.hidden // self.heads


@attrs.frozen
class Step:
    """What a layer is run on: so many rows of so many tokens, after as many tokens in a cache."""

    batch: int
    tokens: int
    cached: int = 0

    @property
    def name(self) -> str:
        """``b4_prefill512`` or ``b1_decode512``."""
        what = f"decode{self.cached}" if self.cached else f"prefill{self.tokens}"
        return f"b{self.batch}_{what}"


class Past:
    """Keys and values of earlier tokens, before those of the new ones."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values = keys, values

    def update(self, keys: torch.Tensor, values: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values, as the layer's attention reads them."""
        self.keys = torch.cat([self.keys, keys], dim=2)
        self.values = torch.cat([self.values, values], dim=2)
        return self.keys, self.values


class Gpt2Layer(torch.nn.Module):
    """Hidden rows (batch, tokens, hidden), mask (1, 1, tokens, keys), [keys, values] -> hidden rows."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        config = GPT2Config(n_embd=shape.hidden, n_head=shape.heads, n_inner=shape.ffn, n_layer=1)
        config._attn_implementation = "eager"
        self.block = GPT2Block(config, layer_idx=0)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, *cache: torch.Tensor) -> Any:
        """The layer's result, and with a cache the keys and values to keep."""
        past = Past(*cache) if cache else None
        result = self.block(x, past_key_values=past, attention_mask=mask)
        return result if past is None else (result, past.keys, past.values)


class LlamaLayer(torch.nn.Module):
    """As `Gpt2Layer`; the angles of the tokens' positions are constants of the module."""

    cos: torch.Tensor
    sin: torch.Tensor

    def __init__(self, shape: Shape, step: Step) -> None:
        super().__init__()
        config = LlamaConfig(
            hidden_size=shape.hidden,
            num_attention_heads=shape.heads,
            intermediate_size=shape.ffn,
            num_hidden_layers=1,
        )
        config._attn_implementation = "eager"
        self.layer = LlamaDecoderLayer(config, layer_idx=0)
        rates = 10000.0 ** -(torch.arange(0, shape.head, 2) / shape.head)
        angles = torch.outer(torch.arange(step.cached, step.cached + step.tokens), rates)
        angles = torch.cat((angles, angles), -1)[None]
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x: torch.Tensor, mask: torch.Tensor, *cache: torch.Tensor) -> Any:
        """The layer's result, and with a cache the keys and values to keep."""
        past = Past(*cache) if cache else None
        angles = (self.cos, self.sin)
        result = self.layer(x, attention_mask=mask, past_key_values=past, position_embeddings=angles)
        return result if past is None else (result, past.keys, past.values)


@attrs.frozen
class Model:
    """A model by its layers: sizes, those of its narrow relative for checks, and what makes a layer."""

    full: Shape
    narrow: Shape
    make: Callable[[Shape, Step], torch.nn.Module]


#: GPT-2 medium: Radford et al. 2019, table 2. Llama-2-7B: arXiv 2307.09288.
MODELS: Mapping[str, Model] = {
    "gpt2_medium": Model(
        Shape(24, 1024, 16, 4096), Shape(24, 128, 2, 512), lambda shape, _: Gpt2Layer(shape)
    ),
    "llama2_7b": Model(Shape(32, 4096, 32, 11008), Shape(32, 256, 2, 704), LlamaLayer),
}


def build(model: Model, shape: Shape, step: Step, dtype: torch.dtype) -> tuple[torch.nn.Module, list[Any]]:
    """A layer with random weights, and its arguments; equal calls give equal values."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        layer = model.make(shape, step).eval().requires_grad_(False).to(dtype)
        for parameter in layer.parameters():
            # zeros and ones of a fresh layer would be simplified away
            parameter.add_(torch.randn(parameter.shape).to(dtype), alpha=0.02)
        keys = step.cached + step.tokens
        inputs = [torch.randn(step.batch, step.tokens, shape.hidden).to(dtype)]
        late = torch.ones(step.tokens, keys, dtype=torch.bool).triu(step.cached + 1)
        mask = torch.zeros(step.tokens, keys).masked_fill(late, torch.finfo(dtype).min)
        inputs.append(mask.to(dtype)[None, None])
        if step.cached:
            rows = (step.batch, shape.heads, step.cached, shape.head)
            inputs += [torch.randn(rows).to(dtype) for _ in range(2)]
    return layer, inputs
