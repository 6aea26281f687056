# SPDX-License-Identifier: Apache-2.0
"""A ResNet-18-style CNN: convolutions with batch normalisation, residuals, max pooling (arXiv 1512.03385)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .registry import Built, Scale


@dataclass(frozen=True)
class ResnetShape:
    """Input size, channels and blocks of each stage, classes."""

    image: int
    channels: tuple[int, ...]
    blocks: tuple[int, ...]
    classes: int


SHAPES = {
    "full": ResnetShape(224, (64, 128, 256, 512), (2, 2, 2, 2), 1000),
    "small": ResnetShape(32, (8, 16), (1, 1), 10),
}


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """A batch normalisation whose statistics are not the identity, so that a wrong fold shows."""
    norm = nn.BatchNorm2d(channels)
    for tensor in (norm.weight, norm.running_var):
        tensor.data.uniform_(0.5, 1.5)
    for tensor in (norm.bias, norm.running_mean):
        tensor.data.uniform_(-0.2, 0.2)
    return norm


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm1 = batch_norm(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm2 = batch_norm(outer)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), batch_norm(outer))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class Resnet(nn.Module):
    """Images, fp32 (batch, 3, image, image) -> logits, fp32 (batch, classes)."""

    def __init__(self, shape: ResnetShape) -> None:
        super().__init__()
        inner = shape.channels[0]
        self.stem = nn.Sequential(
            nn.Conv2d(3, inner, 7, 2, 3, bias=False), batch_norm(inner), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        blocks: list[nn.Module] = []
        for stage, (outer, count) in enumerate(zip(shape.channels, shape.blocks, strict=True)):
            for index in range(count):
                blocks.append(Block(inner, outer, 2 if stage > 0 and index == 0 else 1))
                inner = outer
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inner, shape.classes)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(image))).flatten(1))


def build(scale: Scale) -> Built:
    """The network on one random image."""
    shape = SHAPES[scale]
    return Resnet(shape), (torch.randn(1, 3, shape.image, shape.image),)
