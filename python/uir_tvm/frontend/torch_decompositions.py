# SPDX-License-Identifier: Apache-2.0
"""PyTorch operators in terms of simpler ones, applied to an exported program before its import."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.export.decomp_utils import CustomDecompTable

aten = torch.ops.aten

# Left whole, because the importer knows them and their parts would only hide what they are.
KEPT = (
    aten.layer_norm.default,
    aten.linear.default,
    aten.matmul.default,
    aten.max_pool2d.default,
    aten.silu.default,
)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key^T * scale + mask) @ value; rows whose keys are all masked give zeros.

    Source: the reference implementation in the documentation of
    ``torch.nn.functional.scaled_dot_product_attention``. The rows are found from the mask, which is small
    and often constant, where PyTorch looks for them in the scores.
    """
    if dropout_p:
        # A dropout that a later check refuses by name; its meaning here is the identity.
        query = aten.native_dropout.default(query, dropout_p, True)[0]
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        group = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(group, -3), value.repeat_interleave(group, -3)
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    score = torch.matmul(query * factor, key.transpose(-2, -1))
    if attn_mask is None:
        return torch.matmul(score.softmax(-1), value)
    seen = attn_mask
    if attn_mask.dtype == torch.bool:
        attn_mask = torch.where(seen, score.new_zeros(()), score.new_full((), -math.inf))
    else:
        seen = attn_mask != -math.inf
    weights = (score + attn_mask).softmax(-1)
    # Found by numbers that are finite: TVM's maximum of a row of -inf is the least finite number.
    weights = torch.where(any_dims(seen, -1, keepdim=True), weights, weights.new_zeros(()))
    return torch.matmul(weights, value)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Inference batch normalisation as x * scale + shift, whose factors are constants."""
    scale = torch.rsqrt(variance + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    shape = [1, -1] + [1] * (x.dim() - 2)
    empty = x.new_empty((0,))
    return x * scale.reshape(shape) + shift.reshape(shape), empty, empty


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1 without cancellation near 0: tanh(x/2) * (exp(x) + 1)."""
    return torch.tanh(x * 0.5) * (torch.exp(x) + 1)


def log1p(x: Tensor) -> Tensor:
    """log(1 + x) without cancellation near 0: log(u) * x / (u - 1), u = fl(1 + x) (W. Kahan)."""
    u = x + 1
    corrected = torch.log(u) * (x / (u - 1))
    return torch.where((u == 1), x, torch.where(torch.isinf(u), torch.log(u), corrected))


def power(x: Tensor, exponent: float) -> Tensor:
    """x ** 0.5 and x ** -0.5 as the roots that PyTorch takes: of -inf NaN, where C's pow is inf or 0."""
    roots = {0.5: torch.sqrt, -0.5: torch.rsqrt}
    if exponent not in roots or not x.is_floating_point():
        return NotImplemented
    return roots[exponent](x)


def cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """cumsum with its result's dtype made explicit: integers and bool are summed in int64."""
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() else torch.int64
    if x.dtype == dtype:
        return NotImplemented
    return torch.cumsum(x.to(dtype), dim)


def any_dims(x: Tensor, dim: int | list[int] | None = None, keepdim: bool = False) -> Tensor:
    """Logical or over axes, as the maximum of 0 and 1."""
    axes = list(range(x.dim())) if dim is None else dim
    flags = torch.where(x if x.dtype == torch.bool else x != 0, 1.0, 0.0)
    return flags.amax(axes, keepdim) > 0


def all_dims(x: Tensor, dim: int | list[int] | None = None, keepdim: bool = False) -> Tensor:
    """Logical and over axes, as the minimum of 0 and 1."""
    axes = list(range(x.dim())) if dim is None else dim
    flags = torch.where(x if x.dtype == torch.bool else x != 0, 1.0, 0.0)
    return flags.amin(axes, keepdim) > 0


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: attention,
    aten._native_batch_norm_legit_no_training.default: batch_norm,
    aten.expm1.default: expm1,
    aten.log1p.default: log1p,
    aten.pow.Tensor_Scalar: power,
    aten.cumsum.default: cumsum,
    aten.any.default: any_dims,
    aten.any.dim: any_dims,
    aten.any.dims: any_dims,
    aten.all.default: all_dims,
    aten.all.dim: all_dims,
    aten.all.dims: all_dims,
}


def decomposition_table() -> CustomDecompTable:
    """PyTorch's decompositions to core operators, with `KEPT` taken out and `DECOMPOSITIONS` put in."""
    table = torch.export.default_decompositions()
    for operator in KEPT:
        table.pop(operator)
    for operator, decomposition in DECOMPOSITIONS.items():
        table[operator] = decomposition
    return table
