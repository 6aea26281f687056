# SPDX-License-Identifier: Apache-2.0
"""Operators of torchao and of PT2E that quantise and dequantise: what their arguments say, and converters.

They compute ``scale * (code - zero point)`` and its reverse, with a scale for each block of the tensor. Of
constant matrices `torch_packed_weights` makes quantised tensors; what is left, activations and weights of
other ranks, is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch import fx
from tvm import relax

from ..errors import QuantizationError
from .relax_view import dtype_of
from .torch_graph import arguments


@attrs.frozen
class AffineCall:
    """A quantising or dequantising call, each operand a node, a number or None.

    Attributes
    ----------
    data, scales, points : fx.Node, float, int or None
    blocks : tuple of int
        Sizes of the blocks that share a scale.
    low, high : int
        The least and the greatest code.
    """

    data: fx.Node
    scales: Any
    points: Any
    blocks: tuple[int, ...]
    low: int
    high: int

    @property
    def bits(self) -> int:
        """Of a code: 4 or 8; 0 for more."""
        count = self.high - self.low + 1
        return 4 if count <= 16 else 8 if count <= 256 else 0


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def _per_tensor(node: fx.Node) -> AffineCall:
    given = arguments(node, "data", "scale", "point", "low", "high")
    return AffineCall(
        given["data"], given["scale"], given["point"], _shape(given["data"]), given["low"], given["high"]
    )


def _per_channel(node: fx.Node) -> AffineCall:
    given = arguments(node, "data", "scale", "point", "axis", "low", "high")
    shape = _shape(given["data"])
    axis = given["axis"] % len(shape)
    blocks = tuple(1 if at == axis else size for at, size in enumerate(shape))
    return AffineCall(given["data"], given["scale"], given["point"], blocks, given["low"], given["high"])


def _per_group(node: fx.Node) -> AffineCall:
    given = arguments(node, "data", "scale", "point", "low", "high", "dtype", "group")
    shape = _shape(given["data"])
    blocks = (*(1 for _ in shape[1:]), given["group"])
    return AffineCall(given["data"], given["scale"], given["point"], blocks, given["low"], given["high"])


def _per_block(node: fx.Node) -> AffineCall:
    given = arguments(node, "data", "blocks", "scale", "point", "dtype", "low", "high")
    limits = torch.iinfo(given["dtype"])
    low, high = (
        limits.min if given.get("low") is None else int(given["low"]),
        limits.max if given.get("high") is None else int(given["high"]),
    )
    shape = _shape(given["data"])
    sizes = zip(given["blocks"], shape, strict=True)
    blocks = tuple(whole if size == -1 else size for size, whole in sizes)
    return AffineCall(given["data"], given["scale"], given["point"], blocks, low, high)


#: Operators by their whole name -> how their arguments are read.
DEQUANTIZE: dict[str, Callable[[fx.Node], AffineCall]] = {
    "quantized_decomposed.dequantize_per_tensor.default": _per_tensor,
    "quantized_decomposed.dequantize_per_tensor.tensor": _per_tensor,
    "quantized_decomposed.dequantize_per_channel.default": _per_channel,
    "quantized_decomposed.dequantize_per_channel_group.default": _per_group,
    "torchao.dequantize_affine.default": _per_block,
}
QUANTIZE: dict[str, Callable[[fx.Node], AffineCall]] = {
    "quantized_decomposed.quantize_per_tensor.default": _per_tensor,
    "quantized_decomposed.quantize_per_tensor.tensor": _per_tensor,
    "quantized_decomposed.quantize_per_channel.default": _per_channel,
    "quantized_decomposed.quantize_per_channel_group.default": _per_group,
}


def read(table: dict[str, Callable[[fx.Node], AffineCall]], name: str, node: fx.Node) -> AffineCall:
    """A call of one of the tables.

    Raises
    ------
    QuantizationError
        Blocks do not divide the tensor.
    """
    found = table[name](node)
    shape = _shape(found.data)
    whole = all(isinstance(size, int) for size in shape)
    if whole and any(size % block for size, block in zip(shape, found.blocks, strict=True)):
        raise QuantizationError(
            f"{name} has blocks of {found.blocks} of a tensor of {shape}.",
            where=node.name,
            need="blocks that divide it",
            remedy="quantise the model with a group that divides the columns of its weights",
        )
    return found


class _Blocks:
    """A tensor in its blocks, and what each block has, as shapes that fit."""

    def __init__(self, importer: Any, call: AffineCall) -> None:
        self.importer, self.emit = importer, importer.block_builder.emit
        self.call = call
        data = importer.env[call.data]
        self.shape = list(data.ty.shape.values)
        pairs = list(zip(self.shape, call.blocks, strict=True))
        self.whole = all(block in (1, size) or size is block for size, block in pairs)
        if self.whole:  # a scale for all of an axis, or for each of its places
            self.apart = self.shape
            self.side = [1 if block is size or block == size else size for size, block in pairs]
        else:
            self.apart = [part for size, block in pairs for part in (size // block, block)]
            self.side = [part for size, block in pairs for part in (size // block, 1)]
        self.data = data if self.whole else self.emit(relax.op.reshape(data, self.apart))

    def operand(self, value: Any, dtype: str) -> Any:
        """A number, or a tensor of a value for each block."""
        if not isinstance(value, fx.Node):
            return relax.const(value, dtype)
        found = self.importer.env[value]
        wide = found if dtype_of(found) == dtype else self.emit(relax.op.astype(found, dtype))
        count = math.prod(int(size) for size in found.ty.shape.values)
        return self.emit(relax.op.reshape(wide, self.side if count > 1 else [1] * len(self.side)))

    def done(self, values: Any, dtype: str) -> Any:
        """Values in the tensor's shape and a dtype."""
        if not self.whole:
            values = self.emit(relax.op.reshape(values, self.shape))
        return values if dtype_of(values) == dtype else self.emit(relax.op.astype(values, dtype))


def _result(node: fx.Node) -> str:
    return str(node.meta["val"].dtype).removeprefix("torch.")


def _dequantize(name: str, node: fx.Node, importer: Any) -> Any:
    call = read(DEQUANTIZE, name, node)
    parts = _Blocks(importer, call)
    values = parts.emit(relax.op.astype(parts.data, "float32"))
    if call.points is not None:
        values = parts.emit(relax.op.subtract(values, parts.operand(call.points, "float32")))
    values = parts.emit(relax.op.multiply(values, parts.operand(call.scales, "float32")))
    return parts.done(values, _result(node))


def _quantize(name: str, node: fx.Node, importer: Any) -> Any:
    """round(x * (1 / scale)) + zero point, halves to even, saturated."""
    call = read(QUANTIZE, name, node)
    parts = _Blocks(importer, call)
    wide = parts.data
    if dtype_of(wide) != "float32":
        wide = parts.emit(relax.op.astype(wide, "float32"))
    if isinstance(call.scales, fx.Node):
        one = relax.const(1.0, "float32")
        factor = parts.emit(relax.op.divide(one, parts.operand(call.scales, "float32")))
    else:
        factor = relax.const(1.0 / call.scales, "float32")
    values = parts.emit(relax.op.round(parts.emit(relax.op.multiply(wide, factor))))
    if call.points is not None:
        values = parts.emit(relax.op.add(values, parts.operand(call.points, "float32")))
    values = parts.emit(relax.op.maximum(values, relax.const(float(call.low), "float32")))
    values = parts.emit(relax.op.minimum(values, relax.const(float(call.high), "float32")))
    return parts.done(values, _result(node))


def _integer_product(node: fx.Node, importer: Any) -> Any:
    """_int_mm: a product of int8 in int32."""
    emit = importer.block_builder.emit
    left, right = (emit(relax.op.astype(importer.env[arg], "int32")) for arg in node.args[:2])
    return emit(relax.op.matmul(left, right, out_dtype="int32"))


def _imported_as(name: str) -> str:
    """The name that converters have for an operator: `torch_named.name_operators` gives it."""
    namespace, _, rest = name.partition(".")
    return rest if namespace == "quantized_decomposed" else f"{namespace}::{rest}"


def _bound(convert: Callable[..., Any], name: str) -> Callable[[fx.Node, Any], Any]:
    return lambda node, importer: convert(name, node, importer)


AFFINE: dict[str, Callable[[fx.Node, Any], Any]] = {
    **{_imported_as(name): _bound(_dequantize, name) for name in DEQUANTIZE},
    **{_imported_as(name): _bound(_quantize, name) for name in QUANTIZE},
    "_int_mm.default": _integer_product,
}
