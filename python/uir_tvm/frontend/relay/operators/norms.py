# SPDX-License-Identifier: Apache-2.0
"""Normalisation."""

from __future__ import annotations

from types import SimpleNamespace

from tvm import relax

from ..conversion_context import ConversionContext, Value


def _factors(c: ConversionContext, a: SimpleNamespace, scale: Value, shift: Value) -> tuple[Value, Value]:
    """Scale and shift, 1 and 0 where the operator does without."""

    def number(tensor: Value, value: int) -> Value:
        return c.emit(relax.op.full(c.shape(tensor), c.like(value, tensor), str(tensor.ty.dtype)))

    return (scale if a.scale else number(scale, 1)), (shift if a.center else number(shift, 0))


def _batch_norm(
    c: ConversionContext, a: SimpleNamespace, x: Value, g: Value, b: Value, mean: Value, var: Value
) -> Value:
    """Inference: the statistics go in and out as they are."""
    g, b = _factors(c, a, g, b)
    three = c.emit(
        relax.op.nn.batch_norm(x, g, b, mean, var, axis=a.axis % c.ndim(x), epsilon=a.epsilon, training=False)
    )
    return c.emit(relax.TupleGetItem(three, 0)), mean, var


def _layer_norm(c: ConversionContext, a: SimpleNamespace, x: Value, g: Value, b: Value) -> Value:
    g, b = _factors(c, a, g, b)
    return c.emit(relax.op.nn.layer_norm(x, g, b, axes=[a.axis % c.ndim(x)], epsilon=a.epsilon))


def _group_norm(c: ConversionContext, a: SimpleNamespace, x: Value, g: Value, b: Value) -> Value:
    g, b = _factors(c, a, g, b)
    axis = a.axis % c.ndim(x)
    axes = [n for n in range(1, c.ndim(x)) if n != axis]
    return c.emit(relax.op.nn.group_norm(x, g, b, a.num_groups, axis, axes, a.epsilon))


def _instance_norm(c: ConversionContext, a: SimpleNamespace, x: Value, g: Value, b: Value) -> Value:
    g, b = _factors(c, a, g, b)
    axis = a.axis % c.ndim(x)
    axes = [n for n in range(1, c.ndim(x)) if n != axis]
    return c.emit(relax.op.nn.instance_norm(x, g, b, axis, axes, a.epsilon))


def _l2_normalize(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    """x / sqrt(max(sum of squares, eps))"""
    axes = [int(n) for n in a.axis] if a.axis else None
    total = c.emit(relax.op.sum(c.emit(relax.op.multiply(x, x)), axes, keepdims=True))
    root = c.emit(relax.op.sqrt(c.emit(relax.op.maximum(total, c.like(a.eps, x)))))
    return c.emit(relax.op.divide(x, root))


def _lrn(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    """x / (bias + alpha / size * sum of squares of ``size`` neighbours along the axis) ** beta"""
    axis = a.axis % c.ndim(x)
    half, size = a.size // 2, c.shape(x)[axis]
    widths = [0] * (2 * c.ndim(x))
    widths[2 * axis : 2 * axis + 2] = [half, half]
    squares = c.emit(relax.op.nn.pad(c.emit(relax.op.multiply(x, x)), widths, "constant", 0.0))
    total = c.slice(squares, axis, 0, size)
    for n in range(1, a.size):
        total = c.emit(relax.op.add(total, c.slice(squares, axis, n, n + size)))
    scaled = c.emit(relax.op.multiply(total, c.like(a.alpha / a.size, x)))
    base = c.emit(relax.op.add(scaled, c.like(a.bias, x)))
    return c.emit(relax.op.divide(x, c.emit(relax.op.power(base, c.like(a.beta, x)))))


TABLE = {
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.group_norm": _group_norm,
    "nn.instance_norm": _instance_norm,
    "nn.l2_normalize": _l2_normalize,
    "nn.lrn": _lrn,
}
