# SPDX-License-Identifier: Apache-2.0
"""Max pools with the indices of their elements, and adaptive ones, in terms of simpler operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .torch_search import first_extreme

aten = torch.ops.aten


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


POOLS: dict[Any, Callable[..., Any]] = {
    aten.max_pool2d_with_indices.default: max_pool(2),
    aten.max_pool3d_with_indices.default: max_pool(3),
    aten.adaptive_max_pool2d.default: adaptive_max_pool(2),
    aten.adaptive_max_pool3d.default: adaptive_max_pool(3),
}
