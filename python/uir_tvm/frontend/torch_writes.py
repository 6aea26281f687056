# SPDX-License-Identifier: Apache-2.0
"""Writing and reducing at indices, in terms of scatters along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import (
    guard_or_false,
    guard_or_true,
    has_free_unbacked_symbols,
)

from .torch_arithmetic import NARROW
from .torch_indexing import Indices, linear_index

aten = torch.ops.aten


def index_put(x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write or add at indices, as scattered rows of a matrix; a mask is a choice."""
    found = linear_index(x, indices)
    if found is None:
        return _put_masked(x, indices, values, accumulate)
    axes, linear, place = found
    if len(axes) == 1:
        return _put_rows(x, axes[0], indices[axes[0]], values, accumulate)
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


def _put_rows(x: Tensor, axis: int, index: Any, values: Tensor, accumulate: bool) -> Tensor:
    """Write at indices along one axis, of which a negative one counts from the end."""
    sizes = list(x.shape)
    values = values.expand(*sizes[:axis], *index.shape, *sizes[axis + 1 :]).to(x.dtype)
    values = values.reshape(*sizes[:axis], index.numel(), *sizes[axis + 1 :])
    index = index.to(torch.int64).reshape(-1)
    if accumulate:
        index = torch.where(index < 0, index + sizes[axis], index)
    places = index.reshape([-1 if at == axis else 1 for at in range(x.dim())]).expand(values.shape)
    return x.scatter_add(axis, places, values) if accumulate else x.scatter(axis, places, values)


def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """One slice of a tensor, at a place that may be known at run time."""
    dim %= x.dim()
    if isinstance(index, int) and index < 0:
        index += x.shape[dim]
    return torch.slice_scatter(x, source.unsqueeze(dim), dim, index, index + 1)


def copied(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """The source in the shape and dtype of a tensor."""
    return source.to(x.dtype).expand(x.shape)


def _put_masked(x: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Any:
    """x[:, mask] = values: the same for all that the mask takes along its axes, or as many as data decide."""
    known = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    ((axis, mask), *others) = known
    after = x.dim() - axis - mask.dim()
    taken = values.dim() - after - 1  # the axis of the values along which the mask's elements lie
    if others:
        return NotImplemented
    if taken >= 0 and guard_or_true(values.shape[taken] != 1):
        if not _is_found(values.shape[taken]):
            return NotImplemented
        values = _in_order(mask != 0, values.to(x.dtype), taken)
        values = values.unflatten(taken, mask.shape)
    elif taken >= 0:
        values = values.reshape(*values.shape[:taken], *[1] * mask.dim(), *values.shape[taken + 1 :])
    mask = mask.reshape(*mask.shape, *[1] * after) != 0
    values = values.to(x.dtype)
    return torch.where(mask, x + values if accumulate else values, x)


def _is_found(size: Any) -> bool:
    """Whether data decide a size."""
    return isinstance(size, torch.SymInt) and has_free_unbacked_symbols(size)


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


def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduce slices of a source into those of a tensor."""
    if not x.dim():
        return index_reduce(x.reshape(1), 0, index, source.reshape(-1), reduce, include_self=include_self)[0]
    shape = [-1 if axis == dim % x.dim() else 1 for axis in range(x.dim())]
    places = index.to(torch.int64).reshape(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums, means or maxima (modes 0, 1, 2) of rows of a table, by bags that begin at offsets.

    Of the results that serve the gradient, the bags' sizes alone are computed.
    """
    starts = offsets[:-1] if include_last_offset else offsets
    place = torch.arange(indices.numel(), device=weight.device)
    bag = (starts.unsqueeze(0) <= place.unsqueeze(1)).to(torch.int64).sum(1) - 1
    counted = torch.ones_like(bag) if padding_idx < 0 else (indices != padding_idx).to(torch.int64)
    sizes = torch.zeros(starts.numel(), dtype=torch.int64, device=weight.device).index_add(0, bag, counted)
    rows = torch.index_select(weight, 0, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    wide = rows.float() if rows.dtype in NARROW else rows
    kept = counted.unsqueeze(1) != 0
    neutral = -math.inf if mode == 2 else 0.0
    wide = torch.where(kept, wide, neutral)
    result = torch.full((starts.numel(), weight.shape[1]), neutral, dtype=wide.dtype, device=weight.device)
    if mode == 2:
        result = result.index_reduce(0, bag, wide, "amax")
        result = torch.where(sizes.unsqueeze(1) == 0, 0.0, result)
    else:
        result = result.index_add(0, bag, wide)
    if mode == 1:
        result = result / sizes.clamp(min=1).unsqueeze(1)
    return result.to(weight.dtype), bag, sizes, torch.zeros_like(sizes)


def scatter_with(reduce: str) -> Callable[..., Tensor]:
    """scatter(reduce=...) as the newer operator."""
    return {
        "add": lambda x, dim, index, source: x.scatter_add(dim, index, source),
        "multiply": lambda x, dim, index, source: x.scatter_reduce(dim, index, source, "prod"),
    }[reduce]


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of the source, in order, where the mask is set."""
    if guard_or_false(source.numel() == 0):
        return x.clone()
    mask = mask.expand(x.shape)
    return torch.where(mask, _in_order(mask, source.reshape(-1), 0).reshape(x.shape), x)


def _in_order(mask: Tensor, values: Tensor, axis: int) -> Tensor:
    """For each element of a mask the next of some values along an axis, where it is set; any where it is not.

    One value is that of all. Of which there are how many, data may decide.
    """
    last = torch.full((), values.shape[axis] - 1, dtype=torch.int64, device=values.device)
    if guard_or_true(values.shape[axis] == 0):  # there may be nothing, of which none is taken
        shape = [1 if at == axis else size for at, size in enumerate(values.shape)]
        values = torch.cat([values, values.new_zeros(shape)], axis)
    place = mask.reshape(-1).to(torch.int64).cumsum(0) - 1
    return torch.index_select(values, axis, torch.minimum(place, last).clamp(min=0))


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write at elements of the flat tensor."""
    flat = x.reshape(-1)
    return flat.index_put((index.reshape(-1),), source.reshape(-1), accumulate).reshape(x.shape)


WRITES: dict[Any, Callable[..., Any]] = {
    aten.index_put.default: index_put,
    aten.copy.default: copied,
    aten.select_scatter.default: select_scatter,
    aten.scatter.src: _flat(torch.scatter),
    aten.scatter.value: _flat(torch.scatter),
    aten.scatter.reduce: lambda x, dim, i, source, *, reduce: scatter_with(reduce)(x, dim, i, source),
    aten.scatter.value_reduce: lambda x, dim, i, value, *, reduce: scatter_with(reduce)(
        x, dim, i, torch.full_like(i, value, dtype=x.dtype)
    ),
    aten.scatter_add.default: _flat(torch.scatter_add),
    aten.scatter_reduce.two: scatter_reduce,
    aten.masked_scatter.default: masked_scatter,
    aten.put.default: put,
    aten.index_reduce.default: index_reduce,
    aten._embedding_bag_forward_only.default: embedding_bag,
    aten._embedding_bag.default: embedding_bag,
}
