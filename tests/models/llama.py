# SPDX-License-Identifier: Apache-2.0
"""A Llama-style decoder: RMSNorm, rotary embedding, grouped-query attention, SwiGLU (arXiv 2302.13971)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .registry import Built, Scale


@dataclass(frozen=True)
class LlamaShape:
    """Sizes of the decoder; ``heads`` is a multiple of ``kv_heads``."""

    vocabulary: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    length: int


SHAPES = {
    "full": LlamaShape(8192, 4, 512, 8, 4, 1408, 128),
    "small": LlamaShape(97, 2, 32, 4, 2, 88, 16),
}


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last axis (arXiv 1910.07467)."""

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate_half(x: Tensor) -> Tensor:
    """(a, b) -> (-b, a) on the halves of the last axis."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Rotary(nn.Module):
    """Rotary position embedding (arXiv 2104.09864), its angles computed from the positions at run time."""

    inverse_frequency: Tensor

    def __init__(self, head: int, base: float = 10000.0) -> None:
        super().__init__()
        exponent = torch.arange(0, head, 2, dtype=torch.float32) / head
        self.register_buffer("inverse_frequency", base**-exponent, persistent=False)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        position = torch.arange(query.shape[2], dtype=torch.float32)
        angle = torch.outer(position, self.inverse_frequency)
        angle = torch.cat((angle, angle), dim=-1)
        cos, sin = angle.cos().to(query.dtype), angle.sin().to(query.dtype)
        return query * cos + rotate_half(query) * sin, key * cos + rotate_half(key) * sin


class Attention(nn.Module):
    """Causal grouped-query attention, written out in primitive operators."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.heads, self.kv_heads = shape.heads, shape.kv_heads
        self.head = shape.hidden // shape.heads
        self.query = nn.Linear(shape.hidden, shape.heads * self.head, bias=False)
        self.key = nn.Linear(shape.hidden, shape.kv_heads * self.head, bias=False)
        self.value = nn.Linear(shape.hidden, shape.kv_heads * self.head, bias=False)
        self.out = nn.Linear(shape.heads * self.head, shape.hidden, bias=False)
        self.rotary = Rotary(self.head)

    def split(self, x: Tensor, heads: int) -> Tensor:
        """(batch, length, heads * head) -> (batch, heads, length, head)."""
        return x.view(x.shape[0], x.shape[1], heads, self.head).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        query, key = self.rotary(
            self.split(self.query(x), self.heads), self.split(self.key(x), self.kv_heads)
        )
        value = self.split(self.value(x), self.kv_heads)
        group = self.heads // self.kv_heads
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
        score = query @ key.transpose(2, 3) / math.sqrt(self.head)
        length = x.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weight = score.masked_fill(future, float("-inf")).softmax(-1)
        return self.out((weight @ value).transpose(1, 2).reshape(x.shape[0], length, -1))


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)) (arXiv 2002.05202)."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    """Attention and feed-forward, each on a normalised input and added to it."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.attention_norm, self.attention = RMSNorm(shape.hidden), Attention(shape)
        self.feed_norm, self.feed = RMSNorm(shape.hidden), SwiGLU(shape.hidden, shape.intermediate)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed(self.feed_norm(x))


class Llama(nn.Module):
    """Token ids, int64 (batch, length) -> logits, fp32 (batch, length, vocabulary)."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def build(scale: Scale) -> Built:
    """The decoder on one row of random token ids."""
    shape = SHAPES[scale]
    return Llama(shape), (torch.randint(shape.vocabulary, (1, shape.length)),)
