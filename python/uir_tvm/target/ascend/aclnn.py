# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions of the kernel graph as calls of aclnn: which function, on which views.

What a product is, the native code says: it makes the same calls at run time (src/library/ascend/products.h).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import tvm_ffi

from ...library.attrs import Conv2dAttrs, MatmulAttrs


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


def products(product: MatmulAttrs) -> tuple[Product, ...]:
    """The calls that compute a product.

    Parameters
    ----------
    product : MatmulAttrs
        Without alpha, activation and packed weights, with at most one term to add.

    Raises
    ------
    ValueError
        It has what the library's table (`target.ascend.library.TABLE`) does not allow.
    """
    calls = tvm_ffi.get_global_func("uir.library.ascend.products")(product.to_json())
    return tuple(Product(str(call["function"]), tuple(map(_operand, call["operands"]))) for call in calls)


def _operand(row: Mapping[str, Any]) -> Operand:
    shape, strides = (tuple(map(int, row[key])) for key in ("shape", "strides"))
    return Operand(str(row["role"]), shape, strides, int(row["offset"]))


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
