# SPDX-License-Identifier: Apache-2.0
"""Reductions over axes, and scans."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tvm import relax

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value


def axes_of(c: ConversionContext, a: SimpleNamespace, ndim: int) -> list[int]:
    """The axes that are reduced: all where none is named; the others where ``exclude``."""
    axis = a.axis
    named = list(range(ndim)) if axis is None or axis == [] else axis if isinstance(axis, list) else [axis]
    for n in named:
        if not -ndim <= n < ndim:
            raise c.refuse(f"has no axis {n}", f"an axis of {ndim} dimensions")
    chosen = sorted({n % ndim for n in named})
    if a.exclude and axis is not None:
        chosen = [n for n in range(ndim) if n not in chosen]
    return chosen


def _reduced(operation: Callable[..., Any]) -> Callable[..., Value]:
    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        axes = axes_of(c, a, c.ndim(x))
        return c.emit(operation(x, axes, keepdims=bool(a.keepdims))) if axes else x

    return convert


def _mean(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    """The mean; of integers as TVM has it, the sum divided towards zero."""
    if "int" not in dtype_of(x):
        return _reduced(relax.op.mean)(c, a, x)
    count = 1
    for axis in axes_of(c, a, c.ndim(x)):
        count *= c.shape(x)[axis]
    return c.emit(relax.op.divide(_reduced(relax.op.sum)(c, a, x), c.like(count, x)))


def _variance(c: ConversionContext, a: SimpleNamespace, x: Value, mean: Value) -> Value:
    """The mean square distance from a given mean."""
    axes = axes_of(c, a, c.ndim(x))
    count = 1
    for axis in axes:
        count *= c.shape(x)[axis]
    kept = [1 if axis in axes else size for axis, size in enumerate(c.shape(x))]
    distance = c.emit(relax.op.subtract(x, c.reshape(mean, kept)))
    total = c.emit(
        relax.op.sum(c.emit(relax.op.multiply(distance, distance)), axes, keepdims=bool(a.keepdims))
    )
    return c.emit(relax.op.divide(total, c.like(count - bool(a.unbiased), x)))


def _truths(operation: Callable[..., Any]) -> Callable[..., Value]:
    """all and any, as the least and the greatest of 0 and 1."""

    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        numbers = c.cast(x, "int32")
        return c.emit(relax.op.not_equal(_reduced(operation)(c, a, numbers), c.const(0, "int32")))

    return convert


def _arg(operation: Callable[..., Any]) -> Callable[..., Value]:
    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        shape = c.shape(x)
        axes = axes_of(c, a, len(shape))
        if len(axes) == 1:
            flat, axis, size = x, axes[0], shape[axes[0]]
        else:
            # the reduced axes last, as one: Relay counts through them in their order
            rest = [n for n in range(len(shape)) if n not in axes]
            size = 1
            for n in axes:
                size *= shape[n]
            flat = c.reshape(c.permute(x, [*rest, *axes]), [*(shape[n] for n in rest), size])
            axis = len(rest)
        if a.select_last_index:
            flat = c.emit(relax.op.flip(flat, axis))
        found = c.cast(c.emit(operation(flat, axis, keepdims=False)), "int32")
        if a.select_last_index:
            found = c.emit(relax.op.subtract(c.const(size - 1, "int32"), found))
        if a.keepdims:
            found = c.reshape(found, [1 if n in axes else size for n, size in enumerate(shape)])
        return found

    return convert


def _scan(operation: Callable[..., Any], neutral: int) -> Callable[..., Value]:
    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        dtype = a.dtype or dtype_of(x)
        if dtype == "bool":
            dtype = "int32"
        x, axis = c.cast(x, dtype), a.axis
        if axis is None:
            x, axis = c.reshape(x, [-1]), 0
        axis %= c.ndim(x)
        if a.exclusive:
            shape = list(c.shape(x))
            first = c.emit(
                relax.op.full([*shape[:axis], 1, *shape[axis + 1 :]], c.const(neutral, dtype), dtype)
            )
            x = c.emit(relax.op.concat([first, c.slice(x, axis, 0, shape[axis] - 1)], axis))
        return c.emit(operation(x, axis, dtype))

    return convert


TABLE = {
    "sum": _reduced(relax.op.sum),
    "prod": _reduced(relax.op.prod),
    "max": _reduced(relax.op.max),
    "min": _reduced(relax.op.min),
    "mean": _mean,
    "variance": _variance,
    "all": _truths(relax.op.min),
    "any": _truths(relax.op.max),
    "argmax": _arg(relax.op.argmax),
    "argmin": _arg(relax.op.argmin),
    "cumsum": _scan(relax.op.cumsum, 0),
    "cumprod": _scan(relax.op.cumprod, 1),
}
