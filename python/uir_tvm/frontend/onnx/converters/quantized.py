# SPDX-License-Identifier: Apache-2.0
"""Quantised operators, exact by their definition: integers in int32, scales in float32, halves to even."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ...relax_view import dtype_of
from ..quantized_parts import check_parts, check_scale
from .narrow_floats import NARROW, SIGNED, from_narrow, to_narrow
from .node import Converter, OnnxNode, number


def _wide(node: OnnxNode, data: Any, to: str) -> Any:
    """Numbers of a quantised dtype in a wider one."""
    source = str(data.ty.dtype.dtype)
    if source == to:
        return data
    return from_narrow(node, data, to) if source in NARROW else node.emit(relax.op.astype(data, to))


def _spread(node: OnnxNode, scale: Any, shape: tuple[int, ...]) -> Any:
    """A scale or zero point in the shape of the data: of a tensor, of an axis, or of blocks along it."""
    sizes = tuple(int(size) for size in scale.ty.shape)
    if len(sizes) == 0 or sizes == (1,):
        return node.emit(relax.op.reshape(scale, [1] * len(shape))) if shape else scale
    axis = int(node.attributes.get("axis", 1)) % len(shape)
    if len(sizes) == 1:
        return node.emit(relax.op.reshape(scale, [-1 if i == axis else 1 for i in range(len(shape))]))
    block = int(node.attributes.get("block_size", 0)) or -(-shape[axis] // sizes[axis])
    places = np.arange(shape[axis], dtype=np.int64) // block
    return node.emit(relax.op.take(scale, relax.const(places), axis=axis))


def _check(node: OnnxNode, dtype: str, divides: bool) -> None:
    """Refuse scales and zero points that do not fit the first operand, whose codes are of a dtype."""
    check_scale(node.constant(1), node.step.text, divides=divides)
    shape, zero = node.shape(), node.input(2)
    given = None if zero is None else (node.shape(2), dtype_of(zero))
    axis, block = (
        int(node.attributes.get(name, default)) for name, default in (("axis", 1), ("block_size", 0))
    )
    check_parts(node.step.text, shape, dtype, node.shape(1), given, axis, block)


def _check_scales(node: OnnxNode, **places: int) -> None:
    """Refuse scales of 0, and those that are no numbers, of operands and results by their names."""
    for name, place in places.items():
        check_scale(node.constant(place), node.step.text, f"the scale of {name}", divides=name == "y")


def dequantize(node: OnnxNode) -> list[Any]:
    """DequantizeLinear: (x - zero point) * scale, in the dtype of the scale."""
    _check(node, node.dtype(), divides=False)
    shape, (_, to) = node.shape(), node.result()
    data, scale, zero = node.input(0), node.input(1), node.input(2)
    exact = node.dtype() in NARROW
    middle = "float32" if exact else "int32"
    data = _wide(node, data, middle)
    if zero is not None:
        data = node.emit(relax.op.subtract(data, _spread(node, _wide(node, zero, middle), shape)))
    wide = node.emit(relax.op.astype(data, "float32")) if not exact else data
    factor = _spread(node, _wide(node, scale, "float32"), shape)
    result = node.emit(relax.op.multiply(wide, factor))
    return [result if to in ("float32", "") else relax.op.astype(result, to)]


def rounded(node: OnnxNode, data: Any, zero: Any, to: str) -> Any:
    """Float32 numbers rounded, moved by a zero point and saturated to an integer dtype."""
    bounds = np.iinfo(to)
    data = node.emit(relax.op.round(data))
    if zero is not None:
        data = node.emit(relax.op.add(data, zero))
    data = relax.op.maximum(data, number(float(bounds.min), "float32"))
    data = node.emit(relax.op.minimum(data, number(float(bounds.max), "float32")))
    return node.emit(relax.op.astype(data, to))


def quantize(node: OnnxNode) -> list[Any]:
    """QuantizeLinear: x / scale, rounded with halves to even, plus the zero point, saturated."""
    shape, (_, to) = node.shape(), node.result()
    data, scale, zero = node.input(0), node.input(1), node.input(2)
    _check(node, to or (dtype_of(zero) if zero is not None else "uint8"), divides=True)
    if node.attributes.get("precision", 0) not in (0, 1):
        node.refuse("with another precision than the scale's or float32", need="precision 0 or 1 (float32)")
    data = _wide(node, data, "float32")
    data = node.emit(relax.op.divide(data, _spread(node, _wide(node, scale, "float32"), shape)))
    if to in SIGNED:
        return [to_narrow(node, data, to, bool(node.attributes.get("saturate", 1)))]
    if zero is not None:
        zero = _spread(node, _wide(node, zero, "float32"), shape)
    return [rounded(node, data, zero, to or "uint8")]


def dynamic_quantize(node: OnnxNode) -> list[Any]:
    """DynamicQuantizeLinear: the scale and zero point of the data's range with zero, to uint8."""
    data = node.input(0)
    axes, zero = list(range(len(node.shape()))), number(0, "float32")
    low = node.emit(relax.op.minimum(relax.op.min(data, axes), zero))
    high = node.emit(relax.op.maximum(relax.op.max(data, axes), zero))
    scale = node.emit(relax.op.divide(relax.op.subtract(high, low), number(255, "float32")))
    point = node.emit(relax.op.divide(relax.op.subtract(zero, low), scale))
    point = rounded(node, point, None, "uint8")
    shift = node.emit(relax.op.astype(point, "float32"))
    result = rounded(node, node.emit(relax.op.divide(data, scale)), shift, "uint8")
    return [result, scale, point]


def _centred(node: OnnxNode, place: int, zero_place: int, axis: int) -> Any:
    """An operand in int32 without its zero point, which is of the tensor or of one axis."""
    data = _wide(node, node.input(place), "int32")
    zero = node.input(zero_place)
    if zero is None:
        return data
    sizes = [int(size) for size in zero.ty.shape]
    check_parts(node.step.text, node.shape(place), node.dtype(place), sizes, (sizes, dtype_of(zero)), axis, 0)
    rank = len(node.shape(place))
    if len(sizes) == 1:
        zero = node.emit(relax.op.reshape(zero, [-1 if i == axis % rank else 1 for i in range(rank)]))
    return node.emit(relax.op.subtract(data, _wide(node, zero, "int32")))


def _product(node: OnnxNode, a: Any, b: Any) -> Any:
    """A product of int32 tensors."""
    return node.emit(relax.op.matmul(a, b, out_dtype="int32"))


def matmul_integer(node: OnnxNode) -> list[Any]:
    """MatMulInteger: the product of the centred integers in int32."""
    return [_product(node, _centred(node, 0, 2, -2), _centred(node, 1, 3, -1))]


def qlinear_matmul(node: OnnxNode) -> list[Any]:
    """QLinearMatMul: the product of the centred integers, scaled once and quantised."""
    if node.dtype() in NARROW:
        node.refuse("of floats of eight bits", need="int8 or uint8")
    _check_scales(node, a=1, b=4, y=6)
    exact = _product(node, _centred(node, 0, 2, -2), _centred(node, 3, 5, -1))
    return [_requantized(node, exact, node.input(1), node.input(4), node.input(6), node.input(7), None)]


def _requantized(node: OnnxNode, exact: Any, a: Any, b: Any, y: Any, zero: Any, axis: int | None) -> Any:
    """Int32 sums times the scales of both operands over that of the result, quantised."""
    to = str(zero.ty.dtype.dtype)
    a, b, y = (_wide(node, scale, "float32") for scale in (a, b, y))
    rank = len(exact.ty.shape)
    if axis is not None and len(b.ty.shape) == 1:
        b = node.emit(relax.op.reshape(b, [-1 if i == axis else 1 for i in range(rank)]))
    factor = node.emit(relax.op.divide(relax.op.multiply(a, b), y))
    data = node.emit(relax.op.multiply(relax.op.astype(exact, "float32"), factor))
    return rounded(node, data, _wide(node, zero, "float32"), to)


def _convolution(node: OnnxNode, data: Any, weight: Any) -> Any:
    """A convolution of int32 tensors, of any rank."""
    shape = [int(size) for size in data.ty.shape]
    spatial = len(shape) - 2
    kernel = [int(size) for size in weight.ty.shape][2:]
    strides = list(node.attributes.get("strides") or [1] * spatial)
    dilations = list(node.attributes.get("dilations") or [1] * spatial)
    pads = list(node.attributes.get("pads") or [0] * (2 * spatial))
    auto = node.attributes.get("auto_pad", b"NOTSET")
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        for i in range(spatial):
            size, extent = shape[2 + i], (kernel[i] - 1) * dilations[i] + 1
            total = max((-(-size // strides[i]) - 1) * strides[i] + extent - size, 0)
            less, more = total // 2, total - total // 2
            pads[i], pads[spatial + i] = (less, more) if auto == b"SAME_UPPER" else (more, less)
    convolve = {1: relax.op.nn.conv1d, 2: relax.op.nn.conv2d, 3: relax.op.nn.conv3d}.get(spatial)
    if convolve is None:
        node.refuse(f"along {spatial} axes", need="1 to 3 axes of space")
    return node.emit(
        convolve(
            data,
            weight,
            strides=strides,
            padding=pads,
            dilation=dilations,
            groups=int(node.attributes.get("group", 1)),
            out_dtype="int32",
        )
    )


def conv_integer(node: OnnxNode) -> list[Any]:
    """ConvInteger: the convolution of the centred integers; what is padded counts as the zero point."""
    return [_convolution(node, _centred(node, 0, 2, 0), _centred(node, 1, 3, 0))]


def qlinear_conv(node: OnnxNode) -> list[Any]:
    """QLinearConv: the convolution of the centred integers plus an int32 bias, scaled once and quantised."""
    _check_scales(node, x=1, w=4, y=6)
    exact = _convolution(node, _centred(node, 0, 2, 0), _centred(node, 3, 5, 0))
    if node.input(8) is not None:
        along = [-1 if i == 1 else 1 for i in range(len(exact.ty.shape))]
        exact = node.emit(relax.op.add(exact, relax.op.reshape(node.input(8), along)))
    return [_requantized(node, exact, node.input(1), node.input(4), node.input(6), node.input(7), 1)]


QUANTIZED: dict[str, Converter] = {
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
}
