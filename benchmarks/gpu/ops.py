# SPDX-License-Identifier: Apache-2.0
"""One vocabulary for all contenders: each spells an operation as its users would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

EPSILON = 1e-5


class TorchOps:
    """torch as its users write it: the fused operators that it has."""

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        """x (.., k), weight (n, k), bias (n)."""
        return F.linear(x, weight, bias)

    def softmax(self, x: Any) -> Any:
        return torch.softmax(x, -1)

    def log_softmax(self, x: Any) -> Any:
        return torch.log_softmax(x, -1)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return F.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)

    def rms_norm(self, x: Any, weight: Any) -> Any:
        return F.rms_norm(x, x.shape[-1:], weight, EPSILON)

    def group_norm(self, x: Any, groups: int, weight: Any, bias: Any) -> Any:
        return F.group_norm(x, groups, weight, bias, EPSILON)

    def gelu(self, x: Any) -> Any:
        """By tanh."""
        return F.gelu(x, approximate="tanh")

    def silu(self, x: Any) -> Any:
        return F.silu(x)

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        """softmax(q k^T / sqrt(size)) v over (batch, heads, length, size)."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def exp(self, x: Any) -> Any:
        return torch.exp(x)

    def abs(self, x: Any) -> Any:
        return torch.abs(x)

    def where(self, mask: Any, x: Any, other: float) -> Any:
        return torch.where(mask, x, torch.full((), other, dtype=x.dtype, device=x.device))

    def cat(self, parts: Sequence[Any], axis: int) -> Any:
        return torch.cat(list(parts), axis)

    def permute(self, x: Any, axes: Sequence[int]) -> Any:
        return x.permute(*axes)

    def contiguous(self, x: Any) -> Any:
        """A result that lies in memory in its own order."""
        return x.contiguous()

    def take(self, table: Any, index: Any) -> Any:
        """Rows of a table."""
        return F.embedding(index, table)


class ExportOps(TorchOps):
    """torch for export: what TVM's importer does not take in half types is written in others."""

    def group_norm(self, x: Any, groups: int, weight: Any, bias: Any) -> Any:
        n, c = x.shape[:2]
        wide = x.float().reshape(n, groups, -1)
        mean = wide.mean(-1, keepdim=True)
        centred = wide - mean
        variance = (centred * centred).mean(-1, keepdim=True)
        normed = (centred * torch.rsqrt(variance + EPSILON)).reshape(x.shape)
        shape = (1, c, *[1] * (x.dim() - 2))
        return (normed * weight.float().reshape(shape) + bias.float().reshape(shape)).to(x.dtype)


class JaxOps:
    """jax.numpy and jax.nn; sums of normalisations in float32, as torch has them."""

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.np = jax, jnp

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        y = x @ weight.T
        return y if bias is None else y + bias

    def softmax(self, x: Any) -> Any:
        return self.jax.nn.softmax(x.astype(self.np.float32), -1).astype(x.dtype)

    def log_softmax(self, x: Any) -> Any:
        return self.jax.nn.log_softmax(x.astype(self.np.float32), -1).astype(x.dtype)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        wide = x.astype(self.np.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return (centred * self.jax.lax.rsqrt(variance + EPSILON) * weight + bias).astype(x.dtype)

    def rms_norm(self, x: Any, weight: Any) -> Any:
        wide = x.astype(self.np.float32)
        scale = self.jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + EPSILON)
        return (wide * scale * weight).astype(x.dtype)

    def group_norm(self, x: Any, groups: int, weight: Any, bias: Any) -> Any:
        n, c = x.shape[:2]
        wide = x.astype(self.np.float32).reshape(n, groups, -1)
        centred = wide - wide.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        normed = (centred * self.jax.lax.rsqrt(variance + EPSILON)).reshape(x.shape)
        shape = (1, c, *[1] * (x.ndim - 2))
        return (normed * weight.reshape(shape) + bias.reshape(shape)).astype(x.dtype)

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=True)

    def silu(self, x: Any) -> Any:
        return self.jax.nn.silu(x)

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        rows = [self.np.swapaxes(part, 1, 2) for part in (q, k, v)]
        return self.np.swapaxes(self.jax.nn.dot_product_attention(*rows, is_causal=causal), 1, 2)

    def exp(self, x: Any) -> Any:
        return self.np.exp(x)

    def abs(self, x: Any) -> Any:
        return self.np.abs(x)

    def where(self, mask: Any, x: Any, other: float) -> Any:
        return self.np.where(mask, x, self.np.asarray(other, x.dtype))

    def cat(self, parts: Sequence[Any], axis: int) -> Any:
        return self.np.concatenate(list(parts), axis)

    def permute(self, x: Any, axes: Sequence[int]) -> Any:
        return self.np.transpose(x, axes)

    def contiguous(self, x: Any) -> Any:
        return x

    def take(self, table: Any, index: Any) -> Any:
        return table[index]
