# SPDX-License-Identifier: Apache-2.0
"""Operators of the sizes that models have, most of them small: what `sweep.py` compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from operators import Function, rms_norm
from torch import Tensor
from torch.nn import functional as F

Shape = tuple[int, ...]
#: What makes an input: a shape for normal numbers; below which number integers are; 2: booleans.
Made = Shape | tuple[Shape, int]


def _norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def _masked(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(mask, float("-inf")), -1)


def _clamps(x: Tensor) -> Tensor:
    return torch.clamp(torch.clamp(x * 2.0, -1.0, 1.0) + 0.5, min=0.0) * 0.5


def _batch_norm(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.batch_norm(x, mean, variance * variance + 0.5, weight, bias)


def _rows(name: str, fn: Callable[..., Any], *shapes: Shape, weights: int = 0) -> dict[str, Any]:
    """The operator along rows of each shape, with so many weights of a row's length."""
    return {f"{name} {'x'.join(map(str, s))}": (fn, (s, *[s[-1:]] * weights)) for s in shapes}


SHORT = ((512, 64), (128, 128), (32, 768), (1, 768), (4096, 256), (1000, 37), (8, 512))
#: name -> function, what makes its inputs
USUAL: Mapping[str, tuple[Callable[..., Any], tuple[Made, ...]]] = {
    **_rows("softmax", lambda x: torch.softmax(x, -1), *SHORT, (1000, 10), (4096, 16), (1, 50257)),
    **_rows("log-softmax", lambda x: torch.log_softmax(x, -1), (512, 64), (1000, 100)),
    "softmax 256x50257": (lambda x: torch.softmax(x, -1), ((256, 50257),)),
    "masked softmax 8x12x64x64": (_masked, ((8, 12, 64, 64), ((8, 1, 1, 64), 2))),
    **_rows("layernorm", _norm, *SHORT, (1, 4096), weights=2),
    **_rows("rmsnorm", rms_norm, *SHORT, (1, 4096), weights=1),
    **_rows("sum", lambda x: x.sum(-1), (4096, 64), (1000, 37), (1, 1 << 20)),
    **_rows("mean", lambda x: x.mean(-1), (512, 768)),
    **_rows("max", lambda x: x.amax(-1), (4096, 64)),
    **_rows("argmax", lambda x: x.argmax(-1), (512, 1000), (4096, 64), (1, 50257)),
    "softmax along 0 of 710x64": (lambda x: torch.softmax(x, 0), ((710, 64),)),
    "softmax along 1 of 4x196x64": (lambda x: torch.softmax(x, 1), ((4, 196, 64),)),
    "softmax along 1 of 1x2048x256": (lambda x: torch.softmax(x, 1), ((1, 2048, 256),)),
    "sum along 0 of 512x768": (lambda x: x.sum(0), ((512, 768),)),
    "mean along 1 of 16x128x256": (lambda x: x.mean(1), ((16, 128, 256),)),
    "max along 0 of 1000x64": (lambda x: x.amax(0), ((1000, 64),)),
    "transpose 128x64": (lambda x: x.t().contiguous(), ((128, 64),)),
    "transpose 1024x768": (lambda x: x.t().contiguous(), ((1024, 768),)),
    "permute 2 0 1 of 128x64x32": (lambda x: x.permute(2, 0, 1).contiguous(), ((128, 64, 32),)),
    "permute 2 1 0 of 128x64x32": (lambda x: x.permute(2, 1, 0).contiguous(), ((128, 64, 32),)),
    "permute 1 0 2 of 128x64x32": (lambda x: x.permute(1, 0, 2).contiguous(), ((128, 64, 32),)),
    "permute 0 2 1 of 128x64x32": (lambda x: x.permute(0, 2, 1).contiguous(), ((128, 64, 32),)),
    "heads 1x128x12x64": (lambda x: x.permute(0, 2, 1, 3).contiguous(), ((1, 128, 12, 64),)),
    "concat 2 of 128x512": (lambda x, y: torch.cat((x, y), -1), ((128, 512), (128, 512))),
    "slice+add 128x512": (lambda x, y: x[:, 128:384] + y, ((128, 512), (128, 256))),
    "embedding 32x128 of 50257x768": (
        lambda table, at: F.embedding(at, table),
        ((50257, 768), ((32, 128), 50257)),
    ),
    "gather 512x64 of 512x1000": (lambda x, at: x.gather(1, at), ((512, 1000), ((512, 64), 1000))),
    "cumsum 128x512": (lambda x: x.cumsum(-1), ((128, 512),)),
    "topk 10 of 64x1000": (lambda x: x.topk(10)[0], ((64, 1000),)),
    "where 512x768": (lambda x, y, m: torch.where(m, x, y), ((512, 768), (512, 768), ((512, 768), 2))),
    "masked fill 12x128x128": (lambda x, m: x.masked_fill(m, -1e9), ((12, 128, 128), ((128, 128), 2))),
    "bias 512x768": (lambda x, b: x + b, ((512, 768), (768,))),
    "outer sum 1024x512": (lambda x, y: x + y, ((1024, 1), (1, 512))),
    "pow 512x768": (lambda x: (x * x + 0.1) ** 1.7, ((512, 768),)),
    "square 512x768": (lambda x: x**2, ((512, 768),)),
    "tanh 512x768": (torch.tanh, ((512, 768),)),
    "tanh 8x64": (torch.tanh, ((8, 64),)),
    "erf 512x768": (torch.erf, ((512, 768),)),
    "sin 512x768": (torch.sin, ((512, 768),)),
    "exp 64x512": (torch.exp, ((64, 512),)),
    "gelu 128x3072": (F.gelu, ((128, 3072),)),
    "silu 128x3072": (F.silu, ((128, 3072),)),
    "max pool 3x3/2 1x64x112x112": (lambda x: F.max_pool2d(x, 3, 2, 1), ((1, 64, 112, 112),)),
    "avg pool 2x2 1x64x56x56": (lambda x: F.avg_pool2d(x, 2), ((1, 64, 56, 56),)),
    "global avg pool 1x512x7x7": (lambda x: x.mean((2, 3)), ((1, 512, 7, 7),)),
    "batch norm 4x64x56x56": (_batch_norm, ((4, 64, 56, 56), *[(64,)] * 4)),
    "one-hot 512 of 1000": (lambda at: F.one_hot(at, 1000).float(), (((512,), 1000),)),
    "clamps 512x768": (_clamps, ((512, 768),)),
    "add 8x64": (lambda x, y: x + y, ((8, 64), (8, 64))),
    "resize 2x of 1x64x28x28": (lambda x: F.interpolate(x, scale_factor=2.0), ((1, 64, 28, 28),)),
    "pad 1x64x56x56": (lambda x: F.pad(x, (1, 1, 1, 1)), ((1, 64, 56, 56),)),
    "roll 128x512": (lambda x: torch.roll(x, 3, 1), ((128, 512),)),
    "flip 128x512": (lambda x: x.flip(1), ((128, 512),)),
    "variance 512x256": (lambda x: x.var(-1), ((512, 256),)),
    "l2 normalise 1000x128": (lambda x: F.normalize(x, dim=-1), ((1000, 128),)),
    "to half 512x768": (lambda x: x.half(), ((512, 768),)),
    "all 512x768": (lambda x: (x > -9.0).all(-1), ((512, 768),)),
}


def build(name: str) -> tuple[torch.nn.Module, tuple[Tensor, ...]]:
    """The module and its inputs, always the same ones."""
    fn, made = USUAL[name]
    generator = torch.Generator().manual_seed(7)

    def tensor(each: Made) -> Tensor:
        if len(each) == 2 and isinstance(each[0], tuple):
            drawn = torch.randint(int(each[1]), each[0], generator=generator)  # type: ignore[call-overload]
            return drawn.bool() if each[1] == 2 else drawn
        return torch.randn(each, generator=generator)  # type: ignore[call-overload]

    return Function(name, fn).eval(), tuple(map(tensor, made))
