# SPDX-License-Identifier: Apache-2.0
"""Activations, padding and losses."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax

from ..conversion_context import ConversionContext, Value


def _softmax(operation: Callable[..., Any]) -> Callable[..., Value]:
    return lambda c, a, x: c.emit(operation(x, a.axis))


def _leaky_relu(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    return c.emit(relax.op.nn.leakyrelu(x, a.alpha))


def _prelu(c: ConversionContext, a: SimpleNamespace, x: Value, alpha: Value) -> Value:
    slope = c.along(alpha, a.axis % c.ndim(x), c.ndim(x))
    positive = c.emit(relax.op.greater(x, c.like(0, x)))
    return c.emit(relax.op.where(positive, x, c.emit(relax.op.multiply(x, slope))))


def _pad(c: ConversionContext, a: SimpleNamespace, x: Value, *rest: Value) -> Value:
    *widths, value = rest
    pairs = c.static(widths[0], "a width").reshape(-1, 2).tolist() if widths else a.pad_width
    if a.pad_mode != "constant":
        return _mirrored(c, x, pairs, a.pad_mode)
    number = c.static(value, "a value").item()
    return c.emit(relax.op.nn.pad(x, [int(n) for pair in pairs for n in pair], "constant", float(number)))


def _mirrored(c: ConversionContext, x: Value, pairs: Any, mode: str) -> Value:
    """Padding with the tensor's own elements: ``edge``, ``reflect``, or ``symmetric`` (the edge twice)."""
    modes = {"edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}
    if mode.lower() not in modes:
        raise c.refuse(f"has mode {mode!r}", ", ".join(modes))
    for axis, pair in enumerate(pairs):
        low, high = (int(n) for n in pair)
        if low or high:
            places = np.pad(np.arange(c.shape(x)[axis]), (low, high), modes[mode.lower()])  # type: ignore[call-overload]
            x = c.emit(relax.op.take(x, c.const(places, "int64"), axis))
    return x


def _cross_entropy(c: ConversionContext, a: SimpleNamespace, x: Value, target: Value) -> Value:
    return _entropy(c, c.emit(relax.op.log(x)), target)


def _entropy(c: ConversionContext, x: Value, target: Value) -> Value:
    """-sum(target * x) / rows"""
    total = c.emit(relax.op.sum(c.emit(relax.op.multiply(x, target))))
    return c.emit(relax.op.divide(c.emit(relax.op.negative(total)), c.like(c.shape(x)[0], x)))


def _nll_loss(c: ConversionContext, a: SimpleNamespace, x: Value, target: Value, weights: Value) -> Value:
    return c.emit(relax.op.nn.nll_loss(x, target, weights, a.reduction, a.ignore_index))


TABLE = {
    "nn.softmax": _softmax(relax.op.nn.softmax),
    "nn.fast_softmax": _softmax(relax.op.nn.softmax),
    "nn.log_softmax": _softmax(relax.op.nn.log_softmax),
    "nn.relu": lambda c, a, x: c.emit(relax.op.nn.relu(x)),
    "nn.leaky_relu": _leaky_relu,
    "nn.prelu": _prelu,
    "nn.dropout": lambda c, a, x: (x, c.emit(relax.op.ones_like(x))),
    "nn.pad": _pad,
    "dyn.nn.pad": _pad,
    "nn.mirror_pad": lambda c, a, x: _mirrored(c, x, a.pad_width, a.mode),
    "nn.cross_entropy": _cross_entropy,
    "nn.cross_entropy_with_logits": lambda c, a, x, target: _entropy(c, x, target),
    "nn.nll_loss": _nll_loss,
}
