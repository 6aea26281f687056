# SPDX-License-Identifier: Apache-2.0
"""Quantised operators, exact by their definition: integers stay integers.

The definitions are those of TVM 0.16 (``src/relay/qnn/op``).  A scale between two integers is a 31-bit fixed
point multiplier and a shift, computed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value
from .convolutions import plain_convolution, transposed_convolution
from .elementwise import round_away
from .products import product, swapped


def _range(c: ConversionContext, x: Value, dtype: str) -> Value:
    """An integer tensor within another dtype's values, as that dtype."""
    info = np.iinfo(dtype)
    have = np.iinfo(dtype_of(x))
    if info.min > have.min:
        x = c.emit(relax.op.maximum(x, c.like(info.min, x)))
    if info.max < have.max:
        x = c.emit(relax.op.minimum(x, c.like(info.max, x)))
    return c.cast(x, dtype)


def _spread(c: ConversionContext, x: Value, axis: int, ndim: int) -> Value:
    """A scale or an offset of each channel along the axis; one of all as it is."""
    size = int(np.prod(c.shape(x)))
    if size == 1:
        return c.reshape(x, [])
    return c.along(c.reshape(x, [-1]), axis % ndim, ndim)


def quantize(c: ConversionContext, a: SimpleNamespace, x: Value, scale: Value, zero: Value) -> Value:
    """round(x / scale) + zero, within the dtype"""
    ndim = c.ndim(x)
    scale, zero = (_spread(c, part, a.axis, ndim) for part in (scale, zero))
    rounded = round_away(c, c.emit(relax.op.divide(x, scale)))
    moved = c.emit(relax.op.add(c.cast(rounded, "int32"), c.cast(zero, "int32")))
    return _range(c, moved, a.out_dtype)


def dequantize(c: ConversionContext, a: SimpleNamespace, x: Value, scale: Value, zero: Value) -> Value:
    """(x - zero) * scale"""
    ndim = c.ndim(x)
    scale, zero = (_spread(c, part, a.axis, ndim) for part in (scale, zero))
    moved = c.emit(relax.op.subtract(c.cast(x, "int32"), c.cast(zero, "int32")))
    return c.emit(relax.op.multiply(c.cast(moved, dtype_of(scale)), scale))


def fixed_point(scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A factor as (31-bit multiplier, power of two)."""
    fraction, power = np.frexp(scale.astype(np.float64))
    multiplier = np.floor(fraction * (1 << 31) + 0.5).astype(np.int64)
    over = multiplier == 1 << 31
    return np.where(over, multiplier >> 1, multiplier), np.where(over, power + 1, power).astype(np.int64)


def multiply_fixed(
    c: ConversionContext, x: Value, multiplier: np.ndarray, power: np.ndarray, nearest: bool = False
) -> Value:
    """round(x * multiplier * 2 ** (power - 31)) as int32; halves up, or away from 0 (``nearest``)."""
    left, right = np.maximum(power, 0), np.maximum(-power, 0) + 31
    wide = c.cast(x, "int64")
    if left.any():
        wide = c.emit(relax.op.multiply(wide, c.const(1 << left, "int64")))
    wide = c.emit(relax.op.multiply(wide, c.const(multiplier, "int64")))
    half = c.const(1 << (right - 1), "int64")
    if nearest:
        less = c.const((1 << (right - 1)) - 1, "int64")
        positive = c.emit(relax.op.greater_equal(x, c.like(0, x)))
        half = c.emit(relax.op.where(positive, half, less))
    return c.cast(
        c.emit(relax.op.right_shift(c.emit(relax.op.add(wide, half)), c.const(right, "int64"))), "int32"
    )


def requantize(c: ConversionContext, a: SimpleNamespace, x: Value, *qparams: Value) -> Value:
    """The integers of another scale and offset."""
    ndim = c.ndim(x)
    scale, zero, new_scale, new_zero = qparams
    scales = c.static(scale, "a scale").astype(np.float32)
    target = c.static(new_scale, "a scale").astype(np.float32).reshape(())
    rounding = "UPWARD" if a.rounding == "None" else a.rounding
    compute = "int64" if a.compute_dtype == "None" else a.compute_dtype
    if rounding not in ("UPWARD", "TONEAREST"):
        raise c.refuse(f"rounds {rounding!r}", "UPWARD or TONEAREST")
    per_axis = scales.size > 1
    shape = [-1 if n == a.axis % ndim else 1 for n in range(ndim)] if per_axis else []
    scales = scales.reshape(shape)
    zeros = _spread(c, zero, a.axis, ndim)
    moved = c.emit(relax.op.subtract(c.cast(x, "int32"), c.cast(zeros, "int32")))
    if compute in ("float32", "float64"):
        return _requantized_floats(c, a, moved, scales, target, new_zero, rounding, compute)
    if per_axis or scales.reshape(()) != target:
        multiplier, power = fixed_point(scales.astype(np.float64) / np.float64(target))
        moved = multiply_fixed(c, moved, multiplier, power, rounding == "TONEAREST")
    moved = c.emit(relax.op.add(moved, c.cast(c.reshape(new_zero, []), "int32")))
    return _range(c, moved, a.out_dtype or dtype_of(x))


def _requantized_floats(
    c: ConversionContext,
    a: SimpleNamespace,
    moved: Value,
    scales: np.ndarray,
    target: np.ndarray,
    new_zero: Value,
    rounding: str,
    compute: str,
) -> Value:
    factor = c.const(scales.astype(compute) / target.astype(compute), compute)
    scaled = c.emit(relax.op.multiply(c.cast(moved, compute), factor))
    if rounding == "UPWARD":
        scaled = c.emit(relax.op.floor(c.emit(relax.op.add(scaled, c.const(0.5, compute)))))
    else:
        scaled = round_away(c, scaled)
    shifted = c.emit(relax.op.add(scaled, c.cast(c.reshape(new_zero, []), compute)))
    info = np.iinfo(a.out_dtype or "int32")
    low = c.emit(relax.op.maximum(shifted, c.const(info.min, compute)))
    return c.cast(c.emit(relax.op.minimum(low, c.const(info.max, compute))), a.out_dtype or "int32")


def _requantize(
    c: ConversionContext, x: Value, old: tuple[Value, Value], new: tuple[Value, Value], dtype: str
) -> Value:
    a = SimpleNamespace(axis=-1, rounding="None", compute_dtype="None", out_dtype=dtype)
    return requantize(c, a, x, *old, *new)


def _same(c: ConversionContext, one: tuple[Value, Value], other: tuple[Value, Value]) -> bool:
    return all(
        np.array_equal(c.static(p, "a scale or offset"), c.static(q, "a scale or offset"))
        for p, q in zip(one, other, strict=True)
    )


def _sum(operation: Callable[..., Any], back: Callable[..., Any]) -> Callable[..., Value]:
    """Both operands at the result's scale, as int32; their offset once."""

    def convert(c: ConversionContext, a: SimpleNamespace, x: Value, y: Value, *q: Value) -> Value:
        out = (q[4], q[5])
        sides = []
        for side, own in ((x, (q[0], q[1])), (y, (q[2], q[3]))):
            same = _same(c, own, out)
            sides.append(c.cast(side, "int32") if same else _requantize(c, side, own, out, "int32"))
        total = c.emit(operation(*sides))
        return _range(c, c.emit(back(total, c.cast(q[5], "int32"))), dtype_of(x))

    return convert


def _mul(c: ConversionContext, a: SimpleNamespace, x: Value, y: Value, *q: Value) -> Value:
    moved = [
        c.emit(relax.op.subtract(c.cast(side, "int32"), c.cast(zero, "int32")))
        for side, zero in ((x, q[1]), (y, q[3]))
    ]
    factor = c.static(q[0], "a scale").astype(np.float32) * c.static(q[2], "a scale").astype(np.float32)
    old = (c.const(factor, "float32"), c.const(0, "int32"))
    return _requantize(c, c.emit(relax.op.multiply(*moved)), old, (q[4], q[5]), dtype_of(x))


def _concatenate(
    c: ConversionContext, a: SimpleNamespace, parts: Value, scales: Value, zeros: Value, *out: Value
) -> Value:
    new = (out[0], out[1])
    moved = []
    for part, scale, zero in zip(parts, scales, zeros, strict=True):
        old = (scale, zero)
        moved.append(part if _same(c, old, new) else _requantize(c, part, old, new, dtype_of(part)))
    return c.emit(relax.op.concat(moved, a.axis))


def _moved(c: ConversionContext, x: Value, zero: Value, axis: int = 0) -> Value:
    """x - zero, as int32."""
    offset = c.cast(_spread(c, zero, axis, c.ndim(x)), "int32")
    return c.emit(relax.op.subtract(c.cast(x, "int32"), offset))


def _convolution(plain: Callable[..., Value]) -> Callable[..., Value]:
    def convert(c: ConversionContext, a: SimpleNamespace, x: Value, w: Value, *q: Value) -> Value:
        a.out_dtype = a.out_dtype or "int32"
        return plain(c, a, _moved(c, x, q[0]), _moved(c, w, q[1], a.kernel_layout.index("O")))

    return convert


def _dense(c: ConversionContext, a: SimpleNamespace, x: Value, w: Value, *q: Value) -> Value:
    return product(c, _moved(c, x, q[0]), swapped(c, _moved(c, w, q[1])), SimpleNamespace(out_dtype="int32"))


def _unary(function: Callable[[ConversionContext, Value], Value]) -> Callable[..., Value]:
    """The real number's function, quantised again."""

    def convert(c: ConversionContext, a: SimpleNamespace, x: Value, *q: Value) -> Value:
        real = function(c, dequantize(c, SimpleNamespace(axis=-1), x, q[0], q[1]))
        return quantize(c, SimpleNamespace(axis=-1, out_dtype=dtype_of(x)), real, q[2], q[3])

    return convert


def _one(operation: Callable[..., Any]) -> Callable[[ConversionContext, Value], Value]:
    return lambda c, x: c.emit(operation(x))


def _hardswish(c: ConversionContext, x: Value) -> Value:
    shifted = c.emit(relax.op.add(x, c.const(3, "float32")))
    low = c.emit(relax.op.maximum(shifted, c.const(0, "float32")))
    gate = c.emit(
        relax.op.divide(c.emit(relax.op.minimum(low, c.const(6, "float32"))), c.const(6, "float32"))
    )
    return c.emit(relax.op.multiply(x, gate))


def _fixed(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    return multiply_fixed(c, x, np.array(a.multiplier, np.int64), np.array(a.shift, np.int64))


TABLE = {
    "qnn.quantize": quantize,
    "qnn.dequantize": dequantize,
    "qnn.requantize": requantize,
    "qnn.add": _sum(relax.op.add, relax.op.subtract),
    "qnn.subtract": _sum(relax.op.subtract, relax.op.add),
    "qnn.mul": _mul,
    "qnn.concatenate": _concatenate,
    "qnn.conv2d": _convolution(plain_convolution(relax.op.nn.conv2d, "NCHW")),
    "qnn.conv2d_transpose": _convolution(transposed_convolution(relax.op.nn.conv2d_transpose, "NCHW")),
    "qnn.dense": _dense,
    "qnn.batch_matmul": lambda c, a, x, y, *q: product(
        c, _moved(c, x, q[0]), swapped(c, _moved(c, y, q[1])), SimpleNamespace(out_dtype="int32")
    ),
    **{
        f"qnn.{name}": _unary(_one(getattr(relax.op, name)))
        for name in ("abs", "erf", "exp", "log", "rsqrt", "sigmoid", "sqrt", "tanh")
    },
    "qnn.hardswish": _unary(_hardswish),
    "fixed_point_multiply": _fixed,
}
