# SPDX-License-Identifier: Apache-2.0
"""Extremes and their indices in terms of simpler operators: a NaN is extreme, the first of equals wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .torch_arithmetic import NARROW

aten = torch.ops.aten

#: Whole numbers up to this one are numbers of float32.
EXACT = 1 << 24


def first_extreme(x: Tensor, dim: int, keepdim: bool, largest: bool) -> tuple[Tensor, Tensor]:
    """The extreme along an axis and the first index that holds it.

    TVM's argmax starts from the least finite number, so that a row of -inf gives -1, and passes over NaN.
    Here the index is the smallest among those whose element equals the extreme, or is NaN as it is.
    """
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    wide = x.to(torch.int32) if x.dtype == torch.bool else x
    peak = wide.amax(dim, True) if largest else wide.amin(dim, True)
    found = wide == peak
    if x.is_floating_point():
        found = found | (torch.isnan(wide) & torch.isnan(peak))
    size = x.shape[dim]
    shape = [1] * x.dim()
    shape[dim] = size
    # of every row one is found; an open size is no number
    known = isinstance(size, int)
    # places are floats where these are exact: devices have vector instructions for them
    dtype = torch.float32 if known and size <= EXACT else torch.int32
    place = torch.arange(size, dtype=dtype, device=x.device).reshape(shape)
    beyond = size if known else torch.iinfo(torch.int32).max
    index = torch.where(found, place, beyond).to(dtype).amin(dim, keepdim).to(torch.int64)
    peak = peak if keepdim else peak.squeeze(dim)
    return (peak != 0 if x.dtype == torch.bool else peak), index


def _arg(largest: bool) -> Callable[..., Tensor]:
    def compute(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if dim is None:
            index = first_extreme(x.reshape(-1), 0, False, largest)[1]
            return index.reshape([1] * x.dim()) if keepdim else index
        return first_extreme(x, dim, keepdim, largest)[1]

    return compute


def _along(largest: bool) -> Callable[..., tuple[Tensor, Tensor]]:
    def compute(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return first_extreme(x, dim, keepdim, largest)

    return compute


def _over_all(largest: bool) -> Callable[..., Tensor]:
    def compute(x: Tensor) -> Tensor:
        return _extreme(x, list(range(x.dim())), False, largest)

    return compute


def _extremes(largest: bool) -> Callable[..., Tensor]:
    """amax and amin: of bool by its numbers."""

    def compute(x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        if x.dtype != torch.bool and x.dim():
            return NotImplemented
        axes = list(dim) if isinstance(dim, list | tuple) else [dim]
        return _extreme(x, axes or list(range(x.dim())), keepdim, largest)

    return compute


def _extreme(x: Tensor, axes: list[int], keepdim: bool, largest: bool) -> Tensor:
    if not x.dim():
        return x.clone()
    wide = x.to(torch.int32) if x.dtype == torch.bool else x
    result = wide.amax(axes, keepdim) if largest else wide.amin(axes, keepdim)
    return result != 0 if x.dtype == torch.bool else result


def bucketize(x: Tensor | float, bounds: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """How many boundaries lie below: those that are not at or above (NaN lies above all)."""
    value = x if isinstance(x, Tensor) else torch.full((), x, device=bounds.device)
    return _placed(value.unsqueeze(-1), bounds, right, out_int32)


def searchsorted(
    bounds: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Tensor:
    """As `bucketize`, with boundaries of each row."""
    if sorter is not None:
        bounds = torch.gather(bounds, -1, sorter)
    rows = bounds if bounds.dim() == 1 else bounds.unsqueeze(-2)
    return _placed(x.unsqueeze(-1), rows, right or side == "right", out_int32)


def _placed(x: Tensor, bounds: Tensor, right: bool, narrow: bool) -> Tensor:
    below = torch.logical_not(bounds > x if right else bounds >= x)
    return below.to(torch.int32 if narrow else torch.int64).sum(
        -1, dtype=torch.int32 if narrow else torch.int64
    )


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many numbers lie in each of equal bins, the last with its upper end; others are not counted."""
    if not x.is_floating_point() or min >= max:
        return NotImplemented  # bounds that depend on data
    wide = x.reshape(-1, 1).float() if x.dtype in NARROW else x.reshape(-1, 1)
    place = ((wide - min) * bins / (max - min)).to(torch.int64).clamp(max=bins - 1)
    inside = (wide >= min) & (wide <= max)
    found = (place == torch.arange(bins, device=x.device)) & inside
    return found.to(torch.int64).sum(0).to(x.dtype)


def isin(x: Tensor, among: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether a number is among others."""
    found = (x.unsqueeze(-1) == among.reshape(-1)).any(-1)
    return ~found if invert else found


def _ranked(x: Tensor, rank: int, dim: int, keepdim: bool, missing: bool) -> tuple[Tensor, Tensor]:
    """The element of a rank among the sorted ones and its index; a row's NaN instead, if asked for."""
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, indices = aten.sort.stable(x, stable=True, dim=dim)
    value, index = values.select(dim, rank), indices.select(dim, rank)
    if missing and x.is_floating_point():
        last = values.select(dim, -1)
        value = torch.where(torch.isnan(last), last, value)
        first_missing = first_extreme(x, dim, False, True)[1]
        index = torch.where(torch.isnan(last), first_missing, index)
    return (value.unsqueeze(dim), index.unsqueeze(dim)) if keepdim else (value, index)


def median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median, or NaN."""
    size = x.shape[dim] if x.dim() else 1
    return _ranked(x, (size - 1) // 2, dim, keepdim, True)


def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest."""
    return _ranked(x, k - 1, dim, keepdim, False)


def nanmedian(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median of what is a number; NaN where nothing is."""
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, indices = aten.sort.stable(x, stable=True, dim=dim)
    count = torch.logical_not(torch.isnan(x)).to(torch.int64).sum(dim, True)
    rank = ((count - 1).clamp(min=0)) // 2
    value, index = torch.gather(values, dim, rank), torch.gather(indices, dim, rank)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least of the most frequent numbers, and the last index that holds it."""
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, indices = aten.sort.stable(x, stable=True, dim=dim)
    last = values.movedim(dim, -1)
    same = last.unsqueeze(-1) == last.unsqueeze(-2)
    first = first_extreme(same.to(torch.int32).sum(-1), -1, True, True)[1]
    length = torch.gather(same.to(torch.int64).sum(-1), -1, first)
    # no number equals NaN, not itself either
    place = (first + length.clamp(min=1) - 1).movedim(-1, dim)
    value, index = torch.gather(values, dim, place), torch.gather(indices, dim, place)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


SEARCHES: dict[Any, Callable[..., Any]] = {
    aten.argmax.default: _arg(True),
    aten.argmin.default: _arg(False),
    aten.max.dim: _along(True),
    aten.min.dim: _along(False),
    aten.max.default: _over_all(True),
    aten.min.default: _over_all(False),
    aten.amax.default: _extremes(True),
    aten.amin.default: _extremes(False),
    aten.bucketize.Tensor: bucketize,
    aten.bucketize.Scalar: bucketize,
    aten.searchsorted.Tensor: searchsorted,
    aten.histc.default: histc,
    aten.isin.Tensor_Tensor: isin,
    aten.median.dim: median,
    aten.median.default: lambda x: median(x.reshape(-1), 0)[0],
    aten.kthvalue.default: kthvalue,
    aten.nanmedian.dim: nanmedian,
    aten.nanmedian.default: lambda x: nanmedian(x.reshape(-1), 0)[0],
    aten.mode.default: mode,
}
