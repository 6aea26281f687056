# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions of the kernel graph as calls of aclnn: which function, on which views.

| product | function |
|---|---|
| no term to add | aclnnMatmul, with up to three batch dimensions that broadcast |
| a bias or a residual, one matrix | aclnnAddmm |
| a bias or a residual, a batch | aclnnBaddbmm, once for each outer index where batches do not join |

The documents that the functions were checked in: `ascend_api.json`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod

import attrs

from ..library.attrs import Conv2dAttrs, MatmulAttrs, View


@attrs.frozen
class Operand:
    """A view of the tensor that an operand of the product lies in; strides and offset in elements.

    Parameters
    ----------
    role : str
        ``a``, ``b``, ``bias``, ``residual`` or ``out``.
    """

    role: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@attrs.frozen
class Product:
    """One call: ``Matmul(a, b, out)``, or ``Addmm`` and ``Baddbmm`` with (term, a, b, out)."""

    function: str
    operands: tuple[Operand, ...]


@attrs.frozen
class _Axis:
    """A batch dimension: its extent, and the strides of a, b and out; 0 repeats."""

    extent: int
    strides: tuple[int, int, int]

    def joins(self, inner: _Axis) -> bool:
        """Whether this one and the next are one dimension for every operand."""
        pairs = zip(self.strides, inner.strides, strict=True)
        return all(outer == stride * inner.extent for outer, stride in pairs)


def products(product: MatmulAttrs) -> tuple[Product, ...]:
    """The calls that compute a product.

    Parameters
    ----------
    product : MatmulAttrs
        Without alpha, activation and packed weights, with at most one term to add.
    """
    assert product.alpha == 1.0 and product.activation == "none" and not product.packed, product
    assert not (product.bias and product.residual != "none"), product
    term = "bias" if product.bias else "residual" if product.residual != "none" else ""
    axes = _batch(product)
    if not term:
        return (Product("Matmul", tuple(_operand(product, role, axes) for role in ("a", "b", "out"))),)
    roles = (term, "a", "b", "out")
    if not axes:
        return (Product("Addmm", tuple(_operand(product, role, axes) for role in roles)),)
    calls = []
    for shift in _shifts(axes[:-1]):
        operands = tuple(_operand(product, role, axes[-1:], shift) for role in roles)
        calls.append(Product("Baddbmm", operands))
    return tuple(calls)


def _batch(product: MatmulAttrs) -> list[_Axis]:
    """The batch dimensions, joined where they lie so that they are one for all operands."""
    axes: list[_Axis] = []
    views = (product.a, product.b, product.out)
    for index, extent in enumerate(product.batch):
        first, second, third = (view.strides[index] for view in views)
        axis = _Axis(extent, (first, second, third))
        if extent == 1:
            continue
        if axes and axes[-1].joins(axis):
            axis = _Axis(axes.pop().extent * extent, axis.strides)
        axes.append(axis)
    return axes


def _shifts(axes: Sequence[_Axis]) -> Iterator[tuple[int, int, int]]:
    """Offsets of a, b and out for every index of these dimensions."""
    for index in itertools.product(*(range(axis.extent) for axis in axes)):
        a, b, out = (sum(i * axis.strides[k] for i, axis in zip(index, axes, strict=True)) for k in range(3))
        yield a, b, out


def _operand(
    product: MatmulAttrs, role: str, axes: Sequence[_Axis], shift: tuple[int, int, int] = (0, 0, 0)
) -> Operand:
    """An operand with the batch dimensions in front; those that it repeats have the extent 1."""
    if role == "bias":
        return Operand(role, (product.n,), (1,), 0)
    position = {"a": 0, "b": 1, "out": 2, "residual": 2}[role]
    view: View = (product.a, product.b, product.out)[position]
    matrix = {"a": (product.m, product.k), "b": (product.k, product.n)}.get(role, (product.m, product.n))
    strides = [axis.strides[position] for axis in axes]
    shape = [axis.extent if stride else 1 for axis, stride in zip(axes, strides, strict=True)]
    # A dimension of one element has no stride; as if it were contiguous is what the library expects.
    inner = (*matrix, *view.strides[-2:])
    filled = [stride or prod(shape[i + 1 :]) * inner[0] * inner[1] for i, stride in enumerate(strides)]
    return Operand(role, (*shape, *matrix), (*filled, *view.strides[-2:]), view.offset + shift[position])


@attrs.frozen
class Convolution:
    """A call of aclnnConvolution on whole contiguous tensors."""

    shapes: tuple[tuple[int, ...], ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def convolution(conv: Conv2dAttrs) -> Convolution:
    """The call that computes a convolution: shapes of input, weight, [bias], output.

    Parameters
    ----------
    conv : Conv2dAttrs
        With equal padding on opposite sides, no epilogue but a bias, and no packed weight.
    """
    above, left, below, right = conv.padding
    assert (above, left) == (below, right) and conv.residual == "none", conv
    assert conv.alpha == 1.0 and conv.activation == "none" and not conv.packed, conv
    bias = ((conv.weight[0],),) if conv.bias else ()
    return Convolution(
        (conv.input, conv.weight, *bias, conv.output), conv.strides, (above, left), conv.dilation, conv.groups
    )
