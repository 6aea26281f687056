# SPDX-License-Identifier: Apache-2.0
"""Matrix products and bias."""

from __future__ import annotations

from types import SimpleNamespace

from tvm import relax

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value


def swapped(c: ConversionContext, x: Value) -> Value:
    """The last two axes exchanged."""
    ndim = c.ndim(x)
    return c.permute(x, [*range(ndim - 2), ndim - 1, ndim - 2])


def product(c: ConversionContext, x: Value, y: Value, a: SimpleNamespace) -> Value:
    """x @ y, in ``out_dtype`` where it is said; integers are widened first, which is exact."""
    out = a.out_dtype or dtype_of(x)
    if out != dtype_of(x) or out != dtype_of(y):
        x, y = c.cast(x, out), c.cast(y, out)
    return c.emit(relax.op.matmul(x, y))


def _matmul(c: ConversionContext, a: SimpleNamespace, x: Value, y: Value) -> Value:
    x = swapped(c, x) if a.transpose_a else x
    return product(c, x, swapped(c, y) if a.transpose_b else y, a)


def _bias_add(c: ConversionContext, a: SimpleNamespace, x: Value, bias: Value) -> Value:
    axis = a.axis % c.ndim(x)
    if axis < c.ndim(x) - 1:
        bias = c.along(bias, axis, c.ndim(x))
    return c.emit(relax.op.add(x, bias))


TABLE = {
    "nn.dense": lambda c, a, x, w: product(c, x, swapped(c, w), a),
    "nn.matmul": _matmul,
    "nn.batch_matmul": _matmul,
    "nn.bias_add": _bias_add,
    "einsum": lambda c, a, parts: c.emit(relax.op.einsum(list(parts), a.equation)),
}
