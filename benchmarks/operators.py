# SPDX-License-Identifier: Apache-2.0
"""Fused operators that the benchmark compares, as torch functions with their inputs.

``bytes`` is the least that must move through memory: every input read once, every output written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


class Function(torch.nn.Module):
    """A function as a module, so that operators and models are exported alike."""

    def __init__(self, name: str, fn: Callable[..., Tensor | tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.name, self.fn = name, fn

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Apply the function."""
        return self.fn(*inputs)


@dataclass(frozen=True)
class Operator:
    """A fused operator; ``streaming`` marks those that only move memory at sizes beyond the caches."""

    name: str
    fn: Callable[..., Tensor | tuple[Tensor, ...]]
    shapes: tuple[tuple[int, ...], ...]
    streaming: bool = False

    def build(self) -> tuple[torch.nn.Module, tuple[Tensor, ...]]:
        """The module and random inputs (always the same ones)."""
        generator = torch.Generator().manual_seed(7)
        inputs = tuple(torch.randn(shape, generator=generator) for shape in self.shapes)
        return Function(self.name, self.fn).eval(), inputs

    def least_bytes(self) -> int:
        """Bytes of all inputs and outputs, once."""
        module, inputs = self.build()
        outputs = module(*inputs)
        tensors = (*inputs, *((outputs,) if isinstance(outputs, Tensor) else outputs))
        return sum(t.numel() * t.element_size() for t in tensors)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """x / rms(x) * weight."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def layer_norm_residual(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """layer_norm(x + residual)."""
    return F.layer_norm(x + residual, x.shape[-1:], weight, bias)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up."""
    return F.silu(gate) * up


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the halves of every head."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def rms_norm_residual(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The sum, and its rms norm: what a layer of a language model begins with."""
    y = x + residual
    return rms_norm(y, weight), y


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(d)) v, written out."""
    return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same, each query on the keys up to its own place."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def group_norm_silu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """silu(group_norm(x)) with 32 groups."""
    return F.silu(F.group_norm(x, 32, weight, bias))


_MANY, _IMAGES = (32 * 1024 * 1024,), (16, 64, 128, 128)
#: What only moves memory, each tensor beyond the caches.
MOVES: tuple[Operator, ...] = (
    Operator("row sum 4096x4096", lambda x: x.sum(-1), ((4096, 4096),), streaming=True),
    Operator("mean over tokens 32x512x768", lambda x: x.mean(1), ((32, 512, 768),), streaming=True),
    Operator("scale+shift 64M", lambda x: x * 2.0 + 1.0, ((64 * 1024 * 1024,),), streaming=True),
    Operator("add+relu 32M", lambda x, y: torch.relu(x + y), (_MANY, _MANY), streaming=True),
    Operator("row added 8192x4096", lambda x, row: x + row, ((8192, 4096), (4096,)), streaming=True),
    Operator(
        "column added 8192x4096", lambda x, column: x + column, ((8192, 4096), (8192, 1)), streaming=True
    ),
    Operator("to fp16 32M", lambda x: x.half(), (_MANY,), streaming=True),
    Operator("concat 2 x 16x64x128x128", lambda *x: torch.cat(x, 1), (_IMAGES, _IMAGES), streaming=True),
    Operator("pad 16x64x128x128", lambda x: F.pad(x, (1, 1, 1, 1)), (_IMAGES,), streaming=True),
    Operator("slice 16x64x126x126", lambda x: x[:, :, 1:-1, 1:-1] + 0.0, (_IMAGES,), streaming=True),
    Operator(
        "channels last 16x64x128x128",
        lambda x: x.permute(0, 2, 3, 1).contiguous(),
        (_IMAGES,),
        streaming=True,
    ),
    Operator(
        "head transpose 32x1024x16x64",
        lambda x: x.permute(0, 2, 1, 3).contiguous(),
        ((32, 1024, 16, 64),),
        streaming=True,
    ),
)
OPERATORS: tuple[Operator, ...] = (
    Operator("softmax 4096x1024", lambda x: torch.softmax(x, -1), ((4096, 1024),)),
    Operator(
        "masked softmax 4x12x384x384",
        lambda x, m: torch.softmax(x * 0.125 + m, -1),
        ((4, 12, 384, 384), (4, 1, 1, 384)),
    ),
    Operator("softmax 4096x4096", lambda x: torch.softmax(x, -1), ((4096, 4096),)),
    Operator(
        "masked softmax 12x512x512",
        lambda x, m: torch.softmax(x * 0.125 + m, -1),
        ((12, 512, 512), (512, 512)),
    ),
    Operator("log-softmax 512x50257", lambda x: torch.log_softmax(x, -1), ((512, 50257),)),
    Operator("log-softmax 128x50257", lambda x: torch.log_softmax(x, -1), ((128, 50257),)),
    Operator("layernorm+residual 4096x768", layer_norm_residual, ((4096, 768), (4096, 768), (768,), (768,))),
    Operator("rmsnorm 4096x1024", rms_norm, ((4096, 1024), (1024,))),
    Operator("rmsnorm+residual 4096x1024", rms_norm_residual, ((4096, 1024), (4096, 1024), (1024,))),
    Operator("group norm+silu 2x320x64x64", group_norm_silu, ((2, 320, 64, 64), (320,), (320,))),
    Operator("gelu+bias 2048x3072", lambda x, b: F.gelu(x + b), ((2048, 3072), (3072,))),
    Operator(
        "tanh-gelu+bias 2048x3072", lambda x, b: F.gelu(x + b, approximate="tanh"), ((2048, 3072), (3072,))
    ),
    Operator("swiglu 2048x2816", swiglu, ((2048, 2816), (2048, 2816))),
    Operator("swiglu 512x11008", swiglu, ((512, 11008), (512, 11008))),
    Operator("rotary 32x512x128", rotary, ((32, 512, 128), (512, 128), (512, 128))),
    Operator("attention 12x512x64", attention, ((1, 12, 512, 64),) * 3),
    Operator("causal attention 12x512x64", causal_attention, ((1, 12, 512, 64),) * 3),
    Operator("attention 32x2048x128", attention, ((1, 32, 2048, 128),) * 3),
    Operator("causal attention 32x2048x128", causal_attention, ((1, 32, 2048, 128),) * 3),
    Operator("rotary 8x16x512x64", rotary, ((8, 16, 512, 64), (512, 64), (512, 64))),
    Operator("transpose 4096x4096", lambda x: x.t().contiguous(), ((4096, 4096),), streaming=True),
    Operator("head transpose 8x512x16x64", lambda x: x.permute(0, 2, 1, 3).contiguous(), ((8, 512, 16, 64),)),
    Operator("bias 784x58", lambda x, b: x + b, ((784, 58), (58,))),
    Operator("transpose 784x58x2", lambda x: x.permute(1, 0, 2).contiguous(), ((784, 58, 2),)),
    Operator("mean 128x512", lambda x: x.mean(-1), ((128, 512),)),
    *MOVES,
)
