# SPDX-License-Identifier: Apache-2.0
"""ViT-small, a vision transformer with a class token (arXiv 2010.11929; sizes of arXiv 2012.12877)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .registry import Built, Scale, perturb


@dataclass(frozen=True)
class VitShape:
    """Sizes of the transformer; ``image`` is a multiple of ``patch``."""

    image: int
    patch: int
    layers: int
    hidden: int
    heads: int
    classes: int


SHAPES = {"full": VitShape(224, 16, 12, 384, 6, 1000), "small": VitShape(32, 8, 2, 32, 2, 10)}


class Attention(nn.Module):
    """Self-attention from one joint projection, through PyTorch's fused operator."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, hidden // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.out(attended.transpose(1, 2).reshape(batch, length, hidden))


class Layer(nn.Module):
    """Attention and a GELU feed-forward, each on a normalised input and added to it."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(hidden, eps=1e-6), Attention(hidden, heads)
        self.feed_norm = nn.LayerNorm(hidden, eps=1e-6)
        self.feed = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed(self.feed_norm(x))


class Vit(nn.Module):
    """Images, fp32 (batch, 3, image, image) -> logits, fp32 (batch, classes)."""

    def __init__(self, shape: VitShape) -> None:
        super().__init__()
        patches = (shape.image // shape.patch) ** 2
        self.embedding = nn.Conv2d(3, shape.hidden, shape.patch, stride=shape.patch)
        self.class_token = nn.Parameter(torch.randn(1, 1, shape.hidden) * 0.02)
        self.position = nn.Parameter(torch.randn(1, patches + 1, shape.hidden) * 0.02)
        self.layers = nn.Sequential(*(Layer(shape.hidden, shape.heads) for _ in range(shape.layers)))
        self.norm = nn.LayerNorm(shape.hidden, eps=1e-6)
        self.head = nn.Linear(shape.hidden, shape.classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.embedding(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_token.expand(x.shape[0], -1, -1), x), dim=1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


def build(scale: Scale) -> Built:
    """The transformer on one random image."""
    shape = SHAPES[scale]
    return perturb(Vit(shape)), (torch.randn(1, 3, shape.image, shape.image),)
