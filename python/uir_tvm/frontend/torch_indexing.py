# SPDX-License-Identifier: Apache-2.0
"""Reading at indices, and views as elements at known places, in terms of operators along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch._decomp import decomposition_table as core

aten = torch.ops.aten
Indices = Sequence[Tensor | None]


def linear_index(x: Tensor, indices: Indices) -> tuple[list[int], Tensor, int] | None:
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
    found = linear_index(x, indices)
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


def take(x: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat tensor."""
    place = torch.where(index < 0, index + x.numel(), index)
    return torch.index_select(x.reshape(-1), 0, place.reshape(-1)).reshape(index.shape)


def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Windows along an axis, the place in the window as the last axis."""
    if not x.dim():
        return x.reshape(1)[:size]
    dim %= x.dim()
    first = torch.arange((x.shape[dim] - size) // step + 1, device=x.device) * step
    place = first.unsqueeze(1) + torch.arange(size, device=x.device)
    taken = torch.index_select(x, dim, place.reshape(-1))
    return taken.unflatten(dim, place.shape).movedim(dim + 1, -1)


def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Any:
    """Elements of a dense tensor's memory, by their addresses (TVM's importer knows those from the first)."""
    if not x.is_contiguous():
        return NotImplemented
    place = torch.full((), offset or 0, dtype=torch.int64, device=x.device)
    for count, distance in zip(size, stride, strict=True):
        place = place.unsqueeze(-1) + torch.arange(count, device=x.device) * distance
    return torch.index_select(x.reshape(-1), 0, place.reshape(-1)).reshape(list(size))


def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The tensor with another diagonal."""
    moved = x.movedim((dim1, dim2), (-2, -1))
    row, column = (torch.arange(size, device=x.device) for size in moved.shape[-2:])
    if not source.numel():
        return x.clone()
    place = (row - max(0, -offset)).clamp(0, source.shape[-1] - 1)
    spread = torch.index_select(source, -1, place).unsqueeze(-1)
    result = torch.where(row.unsqueeze(-1) + offset == column, spread, moved)
    return result.movedim((-2, -1), (dim1, dim2))


def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Of every rolled dimension two pieces change places; PyTorch's own reads at indices."""
    if not dims:
        return roll(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    if not all(isinstance(size, int) and size for size in x.shape):
        return cast(Tensor, core[aten.roll.default](x, shifts, dims))
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        start = -shift % size
        pieces = x.narrow(dim, start, size - start), x.narrow(dim, 0, start)
        x = torch.cat(pieces if start else (x,), dim)
    return x


INDEXING: dict[Any, Callable[..., Any]] = {
    aten.index.Tensor: index,
    aten.take.default: take,
    aten.unfold.default: unfold,
    aten.as_strided.default: as_strided,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.roll.default: roll,
}
