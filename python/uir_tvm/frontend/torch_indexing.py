# SPDX-License-Identifier: Apache-2.0
"""Indexing, writing at indices and pools with indices, in terms of operators along one axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .torch_search import first_extreme

aten = torch.ops.aten
Indices = Sequence[Tensor | None]


def _linear(x: Tensor, indices: Indices) -> tuple[list[int], Tensor, int] | None:
    """The indexed axes, an element's index among them in row-major order, and where PyTorch puts the result.

    None for masks, whose number of elements depends on data.
    """
    known = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if any(index.dtype in (torch.bool, torch.uint8) for _, index in known):
        return None
    axes = [axis for axis, _ in known]
    total: Tensor | None = None
    for axis, index in known:
        size = x.shape[axis]
        index = index.to(torch.int64)
        index = torch.where(index < 0, index + size, index)
        total = index if total is None else total * size + index
    assert total is not None
    adjacent = axes == list(range(axes[0], axes[-1] + 1))
    return axes, total, axes[0] if adjacent else 0


def index(x: Tensor, indices: Indices) -> Tensor:
    """x[i, :, j]: elements at pairs of indices (TVM's importer takes every i with every j)."""
    if sum(item is not None for item in indices) == 1 or all(item is not None for item in indices):
        return NotImplemented
    found = _linear(x, indices)
    if found is None:
        return NotImplemented
    axes, linear, place = found
    rest = [axis for axis in range(x.dim()) if axis not in axes]
    rows = x.permute(*axes, *rest).reshape(-1, *[x.shape[axis] for axis in rest])
    taken = torch.index_select(rows, 0, linear.reshape(-1))
    taken = taken.reshape(*linear.shape, *rows.shape[1:])
    order = list(range(linear.dim(), taken.dim()))
    order[place:place] = range(linear.dim())
    return taken.permute(order)


def index_put(x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write or add at indices, as scattered rows of a matrix; a mask with one value is a choice."""
    found = _linear(x, indices)
    if found is None:
        mask = indices[0]
        if len(indices) > 1 or mask is None or values.numel() != 1 or accumulate:
            return NotImplemented
        mask = mask.reshape(*mask.shape, *[1] * (x.dim() - mask.dim()))
        return torch.where(mask != 0, values.reshape(()).to(x.dtype), x)
    axes, linear, place = found
    rest = [axis for axis in range(x.dim()) if axis not in axes]
    sizes = [x.shape[axis] for axis in rest]
    values = values.expand(*sizes[:place], *linear.shape, *sizes[place:])
    front = list(range(place, place + linear.dim()))
    values = values.permute(*front, *(axis for axis in range(values.dim()) if axis not in front))
    order = [*axes, *rest]
    moved = x.permute(order)
    count, width = linear.numel(), math.prod(sizes)
    rows = moved.reshape(-1, width)
    places = linear.reshape(count, 1).expand(count, width)
    values = values.reshape(count, width)
    rows = rows.scatter_add(0, places, values) if accumulate else rows.scatter(0, places, values)
    return rows.reshape(moved.shape).permute([order.index(axis) for axis in range(x.dim())])


def _flat(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """Writes of rank 0 as writes of rank 1; the source cut to the index's shape, which counts."""

    def compute(x: Tensor, dim: int, index: Tensor, source: Any, *args: Any, **kwargs: Any) -> Any:
        if not x.dim():
            source = source.reshape(1) if isinstance(source, Tensor) else source
            return function(x.reshape(1), 0, index.reshape(1), source, *args, **kwargs).reshape(())
        if isinstance(source, Tensor) and source.shape != index.shape:
            source = (
                source[tuple(slice(0, size) for size in index.shape)] if index.dim() else source.reshape(())
            )
            return function(x, dim, index, source, *args, **kwargs)
        return NotImplemented

    return compute


def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Reduce into elements; without their own values those are first set to what changes nothing."""
    cut = _flat(torch.scatter_reduce)(x, dim, index, source, reduce, include_self=include_self)
    if cut is not NotImplemented:
        return cut
    if reduce == "mean":
        ones = torch.ones_like(source)
        total = scatter_reduce_sum(x, dim, index, source, include_self)
        count = (torch.ones_like(x) if include_self else torch.zeros_like(x)).scatter_add(dim, index, ones)
        count = count if include_self else torch.where(count == 0, torch.ones_like(count), count)
        return torch.div(total, count, rounding_mode=None if x.is_floating_point() else "floor")
    if include_self:
        return NotImplemented
    x = x.scatter(dim, index, _identity(reduce, x.dtype))
    return torch.scatter_reduce(x, dim, index, source, reduce, include_self=True)


def scatter_reduce_sum(x: Tensor, dim: int, index: Tensor, source: Tensor, include_self: bool) -> Tensor:
    """Sum into elements."""
    x = x if include_self else x.scatter(dim, index, 0)
    return x.scatter_add(dim, index, source)


def _identity(reduce: str, dtype: torch.dtype) -> float:
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    info = torch.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


def scatter_with(reduce: str) -> Callable[..., Tensor]:
    """scatter(reduce=...) as the newer operator."""
    return {
        "add": lambda x, dim, index, source: x.scatter_add(dim, index, source),
        "multiply": lambda x, dim, index, source: x.scatter_reduce(dim, index, source, "prod"),
    }[reduce]


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of the source, in order, where the mask is set."""
    mask = mask.expand(x.shape)
    place = mask.reshape(-1).to(torch.int64).cumsum(0) - 1
    taken = torch.index_select(source.reshape(-1), 0, place.clamp(0, source.numel() - 1))
    return torch.where(mask, taken.reshape(x.shape), x)


def take(x: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat tensor."""
    place = torch.where(index < 0, index + x.numel(), index)
    return torch.index_select(x.reshape(-1), 0, place.reshape(-1)).reshape(index.shape)


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write at elements of the flat tensor."""
    flat = x.reshape(-1)
    return flat.index_put((index.reshape(-1),), source.reshape(-1), accumulate).reshape(x.shape)


def max_pool(rank: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """A pool with its indices (TVM's importer makes zeros): the first largest of a window, or NaN."""

    def compute(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:
        kernel, padding, dilation = (_each(value, rank) for value in (kernel, padding, dilation))
        stride = _each(stride, rank) if stride else kernel
        pool = aten.max_pool2d.default if rank == 2 else aten.max_pool3d.default
        values = pool(x, kernel, stride, padding, dilation, ceil_mode)
        sizes, out = x.shape[-rank:], values.shape[-rank:]
        needed = [
            (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(out, stride, kernel, dilation, strict=True)
        ]
        after = [max(0, n - size - p) for n, size, p in zip(needed, sizes, padding, strict=True)]
        edges = [edge for pair in reversed(list(zip(padding, after, strict=True))) for edge in pair]
        lowest = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
        padded = torch.nn.functional.pad(x, edges, value=lowest)
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(rank)]
        best: Tensor | None = None
        where: Tensor | None = None
        for tap in itertools.product(*map(range, kernel)):
            piece, flat = padded, torch.zeros((), dtype=torch.int64, device=x.device)
            valid: Tensor | None = None
            for axis, (t, n) in enumerate(zip(tap, out, strict=True)):
                begin = t * dilation[axis]
                dim = axis - rank
                last = begin + (n - 1) * stride[axis] + 1
                piece = aten.slice.Tensor(piece, dim, begin, last, stride[axis])
                place = torch.arange(n, device=x.device) * stride[axis] + begin - padding[axis]
                inside = (place >= 0) & (place < sizes[axis])
                shape = [n if i == axis else 1 for i in range(rank)]
                flat = flat + (place * strides[axis]).reshape(shape)
                valid = inside.reshape(shape) if valid is None else valid & inside.reshape(shape)
            assert valid is not None
            if best is None or where is None:
                best, where = piece, torch.where(valid, flat, -1).expand(piece.shape)
                continue
            taken = piece > best
            if x.is_floating_point():
                taken = torch.isnan(piece) | (taken & ~torch.isnan(best))
            taken = valid & (taken | (where < 0))
            best, where = torch.where(taken, piece, best), torch.where(taken, flat, where)
        assert where is not None
        return values, where

    return compute


def adaptive_max_pool(rank: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """Windows from floor(i * size / n) to ceil((i + 1) * size / n), gathered side by side (ATen's bounds)."""

    def compute(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
        out, sizes = _each(output_size, rank), x.shape[-rank:]
        wide, flat = x, torch.zeros((), dtype=torch.int64, device=x.device)
        shape = list(x.shape[:-rank])
        for axis, (n, size) in enumerate(zip(out, sizes, strict=True)):
            width = max(-(-(i + 1) * size // n) - i * size // n for i in range(n))
            number = torch.arange(n, device=x.device).unsqueeze(1)
            begin = torch.div(number * size, n, rounding_mode="floor")
            last = torch.div((number + 1) * size + (n - 1), n, rounding_mode="floor") - 1
            # what a shorter window lacks is its last element again, which changes neither extreme nor index
            place = torch.minimum(begin + torch.arange(width, device=x.device), last).reshape(-1)
            wide = torch.index_select(wide, axis - rank, place)
            spread = [1] * (2 * rank)
            spread[2 * axis : 2 * axis + 2] = [n, width]
            flat = flat * size + place.reshape(spread)
            shape += [n, width]
        lead = len(shape) - 2 * rank
        windows = wide.reshape(shape)
        order = [*range(lead), *range(lead, len(shape), 2), *range(lead + 1, len(shape), 2)]
        rows = windows.permute(order).reshape(*shape[:lead], *out, -1)
        flat = flat.expand([shape[lead + i] for i in range(2 * rank)])
        flat = flat.permute(*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)).reshape(*out, -1)
        values, best = first_extreme(rows, -1, True, True)
        index = torch.gather(flat.expand(rows.shape), -1, best)
        return values.squeeze(-1), index.squeeze(-1)

    return compute


def _each(value: Sequence[int] | int, rank: int) -> list[int]:
    items = [value] if isinstance(value, int) else list(value)
    return items * rank if len(items) == 1 else items


INDEXING: dict[Any, Callable[..., Any]] = {
    aten.index.Tensor: index,
    aten.index_put.default: index_put,
    aten.scatter.src: _flat(torch.scatter),
    aten.scatter.value: _flat(torch.scatter),
    aten.scatter.reduce: lambda x, dim, i, source, *, reduce: scatter_with(reduce)(x, dim, i, source),
    aten.scatter.value_reduce: lambda x, dim, i, value, *, reduce: scatter_with(reduce)(
        x, dim, i, torch.full_like(i, value, dtype=x.dtype)
    ),
    aten.scatter_add.default: _flat(torch.scatter_add),
    aten.scatter_reduce.two: scatter_reduce,
    aten.masked_scatter.default: masked_scatter,
    aten.take.default: take,
    aten.put.default: put,
    aten.max_pool2d_with_indices.default: max_pool(2),
    aten.max_pool3d_with_indices.default: max_pool(3),
    aten.adaptive_max_pool2d.default: adaptive_max_pool(2),
    aten.adaptive_max_pool3d.default: adaptive_max_pool(3),
}
