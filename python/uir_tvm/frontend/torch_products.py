# SPDX-License-Identifier: Apache-2.0
"""Products of PyTorch in terms of matrix products, and group normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _scaled(bias: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta * bias + alpha * product; without beta the bias does not count, NaN or not."""
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (bias if beta == 1 else bias * beta)


def addmv(bias: Tensor, matrix: Tensor, vector: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * bias + alpha * (matrix @ vector)."""
    return _scaled(bias, torch.matmul(matrix, vector), beta, alpha)


def addbmm(bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * bias + alpha * the sum of the batch's products."""
    return _scaled(bias, torch.bmm(left, right).sum(0), beta, alpha)


def baddbmm(bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * bias + alpha * (left @ right)."""
    return _scaled(bias, torch.bmm(left, right), beta, alpha)


def trilinear(
    x: Tensor, y: Tensor, z: Tensor, x_axes: list[int], y_axes: list[int], z_axes: list[int],
    summed: list[int], unroll: int = 1,
) -> Tensor:  # fmt: skip
    """The sum over axes of the product of three tensors, each spread over the axes that it lacks."""
    for axis in x_axes:
        x = x.unsqueeze(axis)
    for axis in y_axes:
        y = y.unsqueeze(axis)
    for axis in z_axes:
        z = z.unsqueeze(axis)
    return (x * y * z).sum(summed)


def group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, batch: int, channels: int, *rest: Any
) -> Any:
    """Group normalisation with its weight and bias, 1 and 0 where there is none (TVM's importer fails)."""
    if weight is not None and bias is not None:
        return NotImplemented
    weight = x.new_ones(channels) if weight is None else weight
    bias = x.new_zeros(channels) if bias is None else bias
    return aten.native_group_norm.default(x, weight, bias, batch, channels, *rest)


PRODUCTS: dict[Any, Callable[..., Any]] = {
    aten.addmv.default: addmv,
    aten.addbmm.default: addbmm,
    aten.baddbmm.default: baddbmm,
    aten.native_group_norm.default: group_norm,
    aten._trilinear.default: trilinear,
}
