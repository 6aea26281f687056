# SPDX-License-Identifier: Apache-2.0
"""Networks that the benchmark compares beside the models of the tests: a perceptron and convolutions."""

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


class Excited(nn.Module):
    """MobileNetV3's block: an inverted one whose channels are weighed by their means (arXiv 1905.02244)."""

    def __init__(self, inner: int, wide: int, outer: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.filter = nn.Sequential(
            nn.Conv2d(inner, wide, 1, bias=False),
            norm(wide),
            nn.Hardswish(),
            nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False),
            norm(wide),
            nn.Hardswish(),
        )
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(wide, wide // 4, 1),
            nn.ReLU(),
            nn.Conv2d(wide // 4, wide, 1),
            nn.Hardsigmoid(),
        )
        self.narrow = nn.Sequential(nn.Conv2d(wide, outer, 1, bias=False), norm(outer))
        self.adds = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        y = self.filter(x)
        y = self.narrow(y * self.weigh(y))
        return torch.as_tensor(x + y if self.adds else y)


#: Widened channels, channels, size of the filter, stride: those of MobileNetV3-small's table 2.
EXCITED = (
    (16, 16, 3, 2),
    (72, 24, 3, 2),
    (88, 24, 3, 1),
    (96, 40, 5, 2),
    (240, 40, 5, 1),
    (240, 40, 5, 1),
    (120, 48, 5, 1),
    (144, 48, 5, 1),
    (288, 96, 5, 2),
    (576, 96, 5, 1),
    (576, 96, 5, 1),
)


def mobilenet_v3() -> nn.Module:
    """Images (batch, 3, 224, 224) -> logits (batch, 1000)."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), norm(16), nn.Hardswish()]
    inner = 16
    for wide, outer, kernel, stride in EXCITED:
        layers.append(Excited(inner, wide, outer, kernel, stride))
        inner = outer
    layers += [nn.Conv2d(inner, 576, 1, bias=False), norm(576), nn.Hardswish(), nn.AdaptiveAvgPool2d(1)]
    layers += [nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, 1000)]
    return nn.Sequential(*layers)


def silu(inner: int, outer: int, kernel: int = 1, stride: int = 1) -> nn.Sequential:
    """A convolution, batch normalisation, SiLU."""
    made = nn.Conv2d(inner, outer, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(made, norm(outer), nn.SiLU())


class CrossStage(nn.Module):
    """Two ways that meet again, one of them through residual blocks (arXiv 1911.11929)."""

    def __init__(self, inner: int, outer: int, blocks: int, adds: bool) -> None:
        super().__init__()
        half = outer // 2
        self.ways = nn.ModuleList([silu(inner, half), silu(inner, half)])
        self.blocks = nn.ModuleList(
            nn.Sequential(silu(half, half), silu(half, half, 3)) for _ in range(blocks)
        )
        self.adds, self.joined = adds, silu(2 * half, outer)

    def forward(self, x: Tensor) -> Tensor:
        y, beside = (way(x) for way in self.ways)
        for block in self.blocks:
            y = y + block(y) if self.adds else block(y)
        return torch.as_tensor(self.joined(torch.cat((y, beside), dim=1)))


class Detector(nn.Module):
    """Images (1, 3, n, n), n in 32s -> three grids of 85 numbers a place: 103 convolutions.

    A trunk of four levels, a pyramid down and up again, and a head for each of three grids.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        sizes = [width * 2**level for level in range(1, 5)]
        self.first = silu(3, width, 3, 2)
        stages = zip([width, *sizes[:-1]], sizes, (3, 6, 9, 3), strict=True)
        self.trunk = nn.ModuleList(
            nn.Sequential(silu(inner, outer, 3, 2), CrossStage(outer, outer, blocks, True))
            for inner, outer, blocks in stages
        )
        low, middle, high = sizes[1:]
        self.pooled = silu(high, high)
        self.lateral = nn.ModuleList([silu(high, middle), silu(middle, low)])
        self.down = nn.ModuleList(
            [CrossStage(2 * middle, middle, 3, False), CrossStage(2 * low, low, 3, False)]
        )
        self.stride = nn.ModuleList([silu(low, low, 3, 2), silu(middle, middle, 3, 2)])
        self.up = nn.ModuleList(
            [CrossStage(2 * low, middle, 3, False), CrossStage(2 * middle, high, 3, False)]
        )
        self.heads = nn.ModuleList(nn.Conv2d(size, 3 * 85, 1) for size in (low, middle, high))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.first(x)
        levels = []
        for stage in self.trunk:
            x = stage(x)
            levels.append(x)
        x = self.pooled(x)
        beside = []
        for lateral, mixed, level in zip(self.lateral, self.down, levels[2:0:-1], strict=True):
            x = lateral(x)
            beside.append(x)
            x = mixed(torch.cat((nn.functional.interpolate(x, scale_factor=2.0), level), dim=1))
        grids = [x]
        for stride, mixed, earlier in zip(self.stride, self.up, beside[::-1], strict=True):
            x = mixed(torch.cat((stride(x), earlier), dim=1))
            grids.append(x)
        return tuple(head(grid) for head, grid in zip(self.heads, grids, strict=True))


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
    "mobilenet-v3": (mobilenet_v3, (1, 3, 224, 224)),
    "detector": (Detector, (1, 3, 320, 320)),
}


def build(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A network in eval mode with its input; equal calls give equal weights and inputs."""
    make, shape = NETWORKS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return make().eval().requires_grad_(False), (torch.randn(shape),)
