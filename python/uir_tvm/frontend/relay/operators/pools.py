# SPDX-License-Identifier: Apache-2.0
"""Pools: windows, adaptive and global."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
from tvm import relax, topi

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value
from .convolutions import paddings
from .layout import relayout

_PLAIN = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _pool(operation: Callable[..., Any], dims: int) -> Callable[..., Value]:
    plain = _PLAIN[dims]

    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        result = c.emit(
            operation(
                relayout(c, x, a.layout, plain),
                pool_size=list(a.pool_size),
                strides=list(a.strides),
                padding=paddings(a.padding, dims),
                dilation=list(a.dilation),
                ceil_mode=bool(a.ceil_mode),
                count_include_pad=bool(getattr(a, "count_include_pad", False)),
                layout=plain,
            )
        )
        if a.ceil_mode:
            result = _windows_outside(c, a, x, result, operation)
        return relayout(c, result, plain, a.out_layout or a.layout)

    return convert


def _windows_outside(
    c: ConversionContext, a: SimpleNamespace, x: Value, result: Value, operation: Callable[..., Any]
) -> Value:
    """Relay counts a last window that begins behind the tensor; Relax does not.

    It holds what a pool of nothing is: 0, or the lowest number.
    """
    dims = len(a.pool_size)
    spatial = [size for size, letter in zip(c.shape(x), a.layout, strict=True) if letter not in "NC"]
    low, high = paddings(a.padding, dims)[:dims], paddings(a.padding, dims)[dims:]
    widths = [0] * 4
    for n, size in enumerate(spatial):
        window = (a.pool_size[n] - 1) * a.dilation[n] + 1
        count = -(-(size + low[n] + high[n] - window) // a.strides[n]) + 1
        widths += [0, max(0, count - c.shape(result)[2 + n])]
    if not any(widths):
        return result
    dtype = dtype_of(result)
    lowest = ml_dtypes.finfo(dtype).min if "float" in dtype else np.iinfo(dtype).min
    value = float(lowest) if "max" in operation.__name__ else 0.0
    return c.emit(relax.op.nn.pad(result, widths, "constant", value))


def _adaptive(kind: str, dims: int) -> Callable[..., Value]:
    """Windows that cover the axis in ``output_size`` parts: from floor(i n / m) to ceil((i + 1) n / m)."""
    plain = _PLAIN[dims]
    mean = {
        1: relax.op.nn.adaptive_avg_pool1d,
        2: relax.op.nn.adaptive_avg_pool2d,
        3: relax.op.nn.adaptive_avg_pool3d,
    }

    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        x = relayout(c, x, a.layout, plain)
        spatial = c.shape(x)[2:]
        given = [int(n) for n in a.output_size or []]
        sizes = given * dims if len(given) == 1 else given or list(spatial)
        sizes = [n if n > 0 else have for n, have in zip(sizes, spatial, strict=True)]
        if kind == "avg":
            result = c.emit(mean[dims](x, sizes, layout=plain))
        elif all(n == 1 for n in sizes):
            result = c.emit(relax.op.max(x, list(range(2, dims + 2)), keepdims=True))
        elif dims == 1:
            result = c.kernel(topi.nn.adaptive_pool1d, x, sizes, "max", plain)
        else:
            result = c.kernel(
                {2: topi.nn.adaptive_pool, 3: topi.nn.adaptive_pool3d}[dims], x, sizes, "max", plain
            )
        return relayout(c, result, plain, a.out_layout or a.layout)

    return convert


def _global(operation: Callable[..., Any]) -> Callable[..., Value]:
    def convert(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
        axes = [n for n, letter in enumerate(a.layout) if letter not in "NC"]
        return c.emit(operation(x, axes, keepdims=True))

    return convert


TABLE = {
    **{
        f"nn.{kind}_pool{dims}d": _pool(getattr(relax.op.nn, f"{kind}_pool{dims}d"), dims)
        for kind in ("max", "avg")
        for dims in _PLAIN
    },
    **{
        f"nn.adaptive_{kind}_pool{dims}d": _adaptive(kind, dims) for kind in ("max", "avg") for dims in _PLAIN
    },
    "nn.global_max_pool2d": _global(relax.op.max),
    "nn.global_avg_pool2d": _global(relax.op.mean),
}
