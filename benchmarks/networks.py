# SPDX-License-Identifier: Apache-2.0
"""Networks that the benchmark compares beside the models of the tests: a perceptron, a MobileNet, a U-Net."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

SEED = 20240229


def norm(channels: int) -> nn.BatchNorm2d:
    """A batch normalisation that is not the identity."""
    made = nn.BatchNorm2d(channels)
    for tensor in (made.weight, made.running_var):
        tensor.data.uniform_(0.5, 1.5)
    for tensor in (made.bias, made.running_mean):
        tensor.data.uniform_(-0.2, 0.2)
    return made


class Inverted(nn.Module):
    """MobileNetV2's block: 1x1 widens, a depthwise 3x3 filters, 1x1 narrows (arXiv 1801.04381)."""

    def __init__(self, inner: int, outer: int, stride: int, factor: int) -> None:
        super().__init__()
        wide = inner * factor
        widen = [nn.Conv2d(inner, wide, 1, bias=False), norm(wide), nn.ReLU6()] if factor > 1 else []
        self.layers = nn.Sequential(
            *widen,
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            norm(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, outer, 1, bias=False),
            norm(outer),
        )
        self.adds = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.adds else y


#: MobileNetV2's table 2: factor, channels, blocks, stride of the first.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet() -> nn.Module:
    """Images (batch, 3, 224, 224) -> logits (batch, 1000)."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), norm(32), nn.ReLU6()]
    inner = 32
    for factor, outer, blocks, stride in STAGES:
        for block in range(blocks):
            layers.append(Inverted(inner, outer, stride if block == 0 else 1, factor))
            inner = outer
    layers += [nn.Conv2d(inner, 1280, 1, bias=False), norm(1280), nn.ReLU6()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers)


def smooth(inner: int, outer: int) -> nn.Sequential:
    """Group norm, SiLU, a 3x3 convolution: half of a residual block of a diffusion model."""
    return nn.Sequential(nn.GroupNorm(8, inner), nn.SiLU(), nn.Conv2d(inner, outer, 3, padding=1))


class UNet(nn.Module):
    """Images (batch, 4, n, n) -> the same: two levels down, and up with the channels of the way down."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.down = nn.ModuleList([smooth(width, 2 * width), smooth(2 * width, 4 * width)])
        self.middle = smooth(4 * width, 4 * width)
        self.up = nn.ModuleList([smooth(8 * width, 2 * width), smooth(4 * width, width)])
        self.last = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        beside = []
        for layer in self.down:
            x = layer(x)
            beside.append(x)
            x = nn.functional.avg_pool2d(x, 2)
        x = self.middle(x)
        for layer in self.up:
            x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = layer(torch.cat((x, beside.pop()), dim=1))
        return torch.as_tensor(self.last(x))


def perceptron() -> nn.Module:
    """Rows (n, 784) -> logits (n, 10), as for MNIST."""
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


#: Name -> what makes the network, shape of its input.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (perceptron, (128, 784)),
    "mobilenet": (mobilenet, (1, 3, 224, 224)),
    "unet": (UNet, (1, 4, 64, 64)),
}


def build(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A network in eval mode with its input; equal calls give equal weights and inputs."""
    make, shape = NETWORKS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return make().eval().requires_grad_(False), (torch.randn(shape),)
