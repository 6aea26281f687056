# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans of PyTorch: narrow floats summed in float32 and rounded once, integers in int64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false, guard_or_true

from .torch_arithmetic import NARROW

aten = torch.ops.aten
Axes = int | list[int] | None


def widened(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """A decomposition: of narrow floats the same in float32; TVM's importer rounds every partial result."""

    def compute(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype") or x.dtype
        if x.dtype not in NARROW or dtype not in NARROW:
            return NotImplemented
        kwargs.pop("dtype", None)
        return function(x.float(), *args, **kwargs).to(dtype)

    return compute


def _axes(x: Tensor, dim: Axes) -> list[int]:
    """The axes that are reduced: all of them if none is named."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


def mean(x: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """The mean; of narrow floats summed in float32."""
    dtype = dtype or x.dtype
    if x.dtype == dtype and dtype not in NARROW:
        return NotImplemented
    wide = torch.float32 if dtype in NARROW else dtype
    result = torch.mean(x.to(wide), _axes(x, dim), keepdim)
    return result if wide == dtype else result.to(dtype)


def variance(
    x: Tensor, dim: Axes = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    """The mean square of what is left when the mean is taken away."""
    wide = x.float() if x.dtype in NARROW else x
    axes = _axes(x, dim)
    rest = wide - wide.mean(axes, True)
    taken = 1 if correction is None else correction
    count = math.prod(x.shape[axis] for axis in axes) - taken
    total = (rest * rest).sum(axes, keepdim)
    if guard_or_true(count > 0) != guard_or_false(count > 0):  # data decide how many there are
        result = total / (torch.ones_like(wide).sum(axes, keepdim) - taken).clamp(min=0)
    else:
        result = total / max(count, 0) if count > 0 else total * math.nan
    return result if wide is x else result.to(x.dtype)


def vector_norm(
    x: Tensor, ord: float = 2, dim: Axes = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """(sum |x|^ord)^(1/ord) and its limits; TVM's importer has no ord of 0, and rounds at each step."""
    dtype = dtype or x.dtype
    wide = torch.float32 if dtype in NARROW else dtype
    axes, size = _axes(x, dim), x.to(wide).abs()
    if not axes:
        result = (size != 0).to(wide) if ord == 0 else size
    elif ord == 0:
        result = (size != 0).to(wide).sum(axes, keepdim)
    elif ord == math.inf:
        result = size.amax(axes, keepdim)
    elif ord == -math.inf:
        result = size.amin(axes, keepdim)
    elif ord == 1:
        result = size.sum(axes, keepdim)
    elif ord == 2:
        result = torch.sqrt((size * size).sum(axes, keepdim))
    else:
        result = torch.pow(torch.pow(size, ord).sum(axes, keepdim), 1 / ord)
    return result if wide == dtype else result.to(dtype)


def logsumexp(x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) about the maximum, where that is finite."""
    wide = x if x.is_floating_point() and x.dtype not in NARROW else x.float()
    axes = _axes(x, dim)
    if not x.dim():
        return wide.to(x.dtype) if x.is_floating_point() else wide
    if not x.numel():  # nothing has no maximum
        result = torch.log(wide.sum(axes, keepdim))
        return result.to(x.dtype) if x.is_floating_point() else result
    peak = wide.amax(axes, True)
    peak = torch.where(torch.isinf(peak), torch.zeros_like(peak), peak)
    result = torch.log(torch.exp(wide - peak).sum(axes, keepdim))
    result = result + (peak if keepdim else peak.squeeze(tuple(axes)))
    return result.to(x.dtype) if x.is_floating_point() else result


def product(
    x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """The product: integers and bool in int64, narrow floats in float32."""
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() else torch.int64
    wide = torch.float32 if dtype in NARROW else dtype
    if x.dtype == wide:
        return NotImplemented
    result = torch.prod(x.to(wide)) if dim is None else torch.prod(x.to(wide), dim, keepdim)
    return result.to(dtype)


def scan(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """cumsum and cumprod with their result's dtype made explicit, in float32 for narrow floats."""

    def compute(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
        if dtype is None:
            dtype = x.dtype if x.is_floating_point() else torch.int64
        wide = torch.float32 if dtype in NARROW else dtype
        if not x.dim():
            return x.to(dtype)
        if x.dtype == wide:
            return NotImplemented
        return function(x.to(wide), dim).to(dtype)

    return compute


def doubling(
    x: Tensor, dim: int, combine: Callable[..., tuple[Tensor, ...]], *others: Tensor
) -> tuple[Tensor, ...]:
    """A scan by an associative function: after k steps an element stands for the last 2**k."""
    values, reach, size = (x, *others), 1, x.shape[dim]
    while reach < size:
        before = [value.narrow(dim, 0, size - reach) for value in values]
        after = [value.narrow(dim, reach, size - reach) for value in values]
        joined = combine(before, after)
        values = tuple(
            torch.cat([value.narrow(dim, 0, reach), new], dim)
            for value, new in zip(values, joined, strict=True)
        )
        reach *= 2
    return values


def _extreme_so_far(largest: bool) -> Callable[..., tuple[Tensor, Tensor]]:
    def combine(before: list[Tensor], after: list[Tensor]) -> tuple[Tensor, Tensor]:
        (old, old_index), (new, new_index) = before, after
        taken = new >= old if largest else new <= old
        if new.is_floating_point():
            taken = torch.isnan(new) | (taken & ~torch.isnan(old))
        return torch.where(taken, new, old), torch.where(taken, new_index, old_index)

    def compute(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if not x.dim():
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        wide = x.to(torch.int32) if x.dtype == torch.bool else x
        shape = [1] * x.dim()
        shape[dim] = x.shape[dim]
        place = torch.arange(x.shape[dim], device=x.device).reshape(shape).expand(x.shape)
        values, index = doubling(wide, dim, combine, place)
        return (values != 0 if x.dtype == torch.bool else values), index

    return compute


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """log(cumsum(exp(x))) without leaving the logarithm."""
    if not x.dim():
        return x.clone()
    wide = x.float() if x.dtype in NARROW else x
    result = doubling(wide, dim, lambda old, new: (torch.logaddexp(old[0], new[0]),))[0]
    return result if wide is x else result.to(x.dtype)


def distances(x: Tensor, y: Tensor, p: float, mode: int | None = None) -> Tensor:
    """The norm of every difference of a row of one and a row of the other."""
    return vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, [-1])


def own_distances(x: Tensor, p: float = 2) -> Tensor:
    """The norm of the difference of every pair of rows, the first before the second."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    return vector_norm(torch.index_select(x, 0, first) - torch.index_select(x, 0, second), p, [-1])


REDUCTIONS: dict[Any, Callable[..., Any]] = {
    aten.sum.default: widened(lambda x: torch.sum(x)),
    aten.sum.dim_IntList: widened(lambda x, dim, keepdim=False: torch.sum(x, dim, keepdim)),
    aten.mean.default: mean,
    aten.mean.dim: mean,
    aten.var.correction: variance,
    aten.var_mean.correction: lambda x, dim=None, *, correction=None, keepdim=False: (
        variance(x, dim, correction=correction, keepdim=keepdim),
        torch.mean(x, _axes(x, dim), keepdim),
    ),
    aten.linalg_vector_norm.default: vector_norm,
    aten.logsumexp.default: logsumexp,
    aten._cdist_forward.default: distances,
    aten._pdist_forward.default: own_distances,
    aten._euclidean_dist.default: lambda x, y: distances(x, y, 2),
    aten.dist.default: lambda x, y, p=2: vector_norm(x - y, p),
    aten.prod.default: product,
    aten.prod.dim_int: product,
    aten.cumsum.default: scan(torch.cumsum),
    aten.cumprod.default: scan(torch.cumprod),
    aten.cummax.default: _extreme_so_far(True),
    aten.cummin.default: _extreme_so_far(False),
    aten.logcumsumexp.default: logcumsumexp,
}
