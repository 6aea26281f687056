# SPDX-License-Identifier: Apache-2.0
"""Max pools with the indices of their elements, and adaptive ones, in terms of simpler operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from .torch_graph import each
from .torch_search import first_extreme

aten = torch.ops.aten


@attrs.frozen
class _Window:
    """How windows lie along the axes of space: sizes of the tensor and of the result, strides and so on."""

    sizes: Sequence[int]
    out: Sequence[int]
    kernel: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    def padded(self, x: Tensor) -> Tensor:
        """The tensor with what its windows reach over, filled by what no maximum takes."""
        edges: list[int] = []
        for size, n, k, s, p, d in reversed(list(zip(*attrs.astuple(self, recurse=False), strict=True))):
            edges += [p, max(0, (n - 1) * s + (k - 1) * d + 1 - size - p)]
        lowest = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
        return torch.nn.functional.pad(x, edges, value=lowest)

    def tap(self, padded: Tensor, at: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """One element of every window: its value, its flat index, and whether it is in the tensor."""
        rank, device = len(at), padded.device
        flat = torch.zeros((), dtype=torch.int64, device=device)
        valid = torch.ones((), dtype=torch.bool, device=device)
        for axis, (n, step) in enumerate(zip(self.out, self.stride, strict=True)):
            begin = at[axis] * self.dilation[axis]
            padded = aten.slice.Tensor(padded, axis - rank, begin, begin + (n - 1) * step + 1, step)
            place = torch.arange(n, device=device) * step + begin - self.padding[axis]
            place = place.reshape([n if other == axis else 1 for other in range(rank)])
            flat = flat * self.sizes[axis] + place
            valid = valid & (place >= 0) & (place < self.sizes[axis])
        return padded, flat, valid


def max_pool(rank: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """A pool with its indices (TVM's importer makes zeros): the first largest of a window, or NaN."""
    pool = aten.max_pool2d.default if rank == 2 else aten.max_pool3d.default

    def compute(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:
        steps = (kernel, stride or kernel, padding, dilation)
        values = pool(x, *steps, ceil_mode)
        sizes, out = x.shape[-rank:], values.shape[-rank:]
        window = _Window(sizes, out, *(each(step, rank) for step in steps))
        padded = window.padded(x)
        best = torch.full_like(values, -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min)
        where = torch.full(values.shape, -1, dtype=torch.int64, device=x.device)
        for at in itertools.product(*map(range, window.kernel)):
            piece, flat, valid = window.tap(padded, at)
            taken = piece > best
            if x.is_floating_point():
                taken = torch.isnan(piece) | (taken & ~torch.isnan(best))
            taken = valid & (taken | (where < 0))
            best, where = torch.where(taken, piece, best), torch.where(taken, flat, where)
        return values, where

    return compute


def adaptive_max_pool(rank: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """Windows from floor(i * size / n) to ceil((i + 1) * size / n), gathered side by side (ATen's bounds)."""

    def compute(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
        out, sizes = each(output_size, rank), x.shape[-rank:]
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


POOLS: dict[Any, Callable[..., Any]] = {
    aten.max_pool2d_with_indices.default: max_pool(2),
    aten.max_pool3d_with_indices.default: max_pool(3),
    aten.adaptive_max_pool2d.default: adaptive_max_pool(2),
    aten.adaptive_max_pool3d.default: adaptive_max_pool(3),
}
