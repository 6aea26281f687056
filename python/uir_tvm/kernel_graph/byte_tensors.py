# SPDX-License-Identifier: Apache-2.0
"""What a Relax value is of bytes: scale * (byte - zero point), and constant weights of whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import attrs
import numpy as np
import tvm

from ..frontend.relax_view import (
    array_of,
    dtype_of,
    is_constant,
    op_name,
    permutation_of,
    shape_of,
    uniform_of,
)
from ..quantized import unpack
from ..quantized_calls import is_dequantize, packing_of

#: What a byte is kept in.
BYTES = ("int8", "uint8")
#: Operators that move elements and leave them as they are: they do the same with bytes.
MOVES = frozenset({"expand_dims", "flatten", "permute_dims", "reshape", "squeeze"})
#: Numbers in which weights are packed.
NARROW, WIDE = np.iinfo(np.int8), 255

#: An expression -> the call that it stands for; None where it is no call.
Definition = Callable[[Any], Any]


@attrs.frozen
class Bytes:
    """scale * (byte - zero), moved.

    Attributes
    ----------
    base : Expr
        Of int8 or uint8.
    zero : int
    point : Expr, optional
        A zero point of one byte that is computed; `zero` is 0 then.
    scale : float
    moves : tuple of Call
        What moves the elements of the base, in order.
    scaled : bool
        Whether the numbers are floats; else they are int32 and the scale is 1.
    """

    base: Any
    zero: int = 0
    point: Any = None
    scale: float = 1.0
    moves: tuple[Any, ...] = ()
    scaled: bool = False

    @property
    def farthest(self) -> int:
        """How far a byte may be from the zero point, which may be any byte where it is computed."""
        limits = np.iinfo(dtype_of(self.base))
        points = np.iinfo(dtype_of(self.point)) if self.point is not None else None
        zeros = (self.zero, self.zero) if points is None else (points.min, points.max)
        return max(int(limits.max) - int(zeros[0]), int(zeros[1]) - int(limits.min))


def bytes_of(expr: Any, definition: Definition) -> Bytes | None:
    """What an expression of int32 or float32 is of bytes; None where it is of nothing such.

    Before: q = astype(x, int32); c = subtract(q, 3); f = astype(c, float32); y = multiply(f, 0.5).
    After: Bytes(x, zero=3, scale=0.5).
    """
    if dtype_of(expr) in BYTES:
        return Bytes(expr)
    call = definition(expr)
    name = op_name(call)
    if name == "astype":
        inner, to = bytes_of(call.args[0], definition), dtype_of(call)
        fits = inner is not None and not inner.scaled and to in ("int32", "float32")
        return attrs.evolve(inner, scaled=to == "float32") if inner is not None and fits else None
    if name in MOVES:
        inner = bytes_of(call.args[0], definition)
        return None if inner is None else attrs.evolve(inner, moves=(*inner.moves, call))
    if name not in ("add", "multiply", "subtract"):
        return None
    inner, number = bytes_of(call.args[0], definition), uniform_of(call.args[1])
    if inner is None or shape_of(call) != shape_of(call.args[0]):
        return None
    if number is None:
        point = _point(call.args[1], definition) if name == "subtract" else None
        fresh = point is not None and inner.point is None and inner.zero == 0 and inner.scale == 1.0
        return attrs.evolve(inner, point=point) if fresh else None
    if name == "multiply":
        finite = inner.scaled and np.isfinite(number)
        return (
            attrs.evolve(inner, scale=float(np.float32(inner.scale) * np.float32(number))) if finite else None
        )
    whole = np.isfinite(number) and float(number) == int(number)
    if inner.scale != 1.0 or inner.point is not None or not whole:
        return None
    return attrs.evolve(inner, zero=inner.zero + (int(number) if name == "subtract" else -int(number)))


def _point(expr: Any, definition: Definition) -> Any:
    """One byte that an expression is, in int32."""
    found = bytes_of(expr, definition)
    plain = found is not None and (found.zero, found.point, found.scale) == (0, None, 1.0)
    shape = None if found is None else shape_of(found.base)
    return found.base if found is not None and plain and shape is not None and prod(shape) == 1 else None


@attrs.frozen(eq=False)
class Weight:
    """scale * whole number, element by element.

    Attributes
    ----------
    numbers : numpy.ndarray
        int16.
    scales : numpy.ndarray
        float32, of this shape (broadcast).
    """

    numbers: np.ndarray
    scales: np.ndarray

    def greatest(self, axis: int) -> int:
        """The greatest sum of the numbers' magnitudes of one output; these lie along an axis."""
        magnitudes = np.abs(np.moveaxis(self.numbers, axis, 0).astype(np.int64))
        return int(magnitudes.reshape(len(magnitudes), -1).sum(1).max(initial=0))

    def by_output(self, axis: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers with the outputs first, and a scale for each; None where scales differ within one."""
        numbers, scales = (np.moveaxis(part, axis, 0) for part in (self.numbers, self.scales))
        first = scales.reshape(len(scales), -1)[:, :1]
        alike = bool((scales.reshape(len(scales), -1) == first).all())
        return (numbers, first[:, 0]) if alike else None


def weight_of(expr: Any, definition: Definition) -> Weight | None:
    """A constant weight of whole numbers of at most nine bits: a quantised tensor, or one of int32."""
    if is_constant(expr):
        array = array_of(expr)
        if array.dtype != np.int32 or not array.size or np.abs(array.astype(np.int64)).max() > WIDE:
            return None
        return Weight(array.astype(np.int16), np.broadcast_to(np.float32(1), array.shape))
    call = definition(expr)
    if call is not None and is_dequantize(call):
        return _quantised(call)
    if op_name(call) not in MOVES:
        return None
    inner, shape = weight_of(call.args[0], definition), shape_of(call)
    if inner is None or shape is None:
        return None
    parts = [inner.numbers, inner.scales]
    if op_name(call) == "permute_dims":
        axes = permutation_of(call, inner.numbers.ndim)
        return Weight(*(part.transpose(axes) for part in parts))
    return Weight(*(part.reshape(shape) for part in parts))


def _quantised(call: tvm.ir.Call) -> Weight | None:
    """A quantised tensor of constants whose offsets, where there are, are zero points."""
    parts, packing = call.args[1:-1], packing_of(call)
    if not all(map(is_constant, parts)) or dtype_of(call) != "float32":
        return None
    codes, scales, *offsets = map(array_of, parts)
    scales = scales.astype(np.float32)
    shape = packing.shape_of(codes.shape)
    zeros = np.full(scales.shape, np.float32(packing.zero))
    if offsets:
        with np.errstate(all="ignore"):
            zeros = zeros - np.where(scales == 0, 0, offsets[0].astype(np.float32) / scales)
        zeros = np.rint(zeros)
        again = (np.float32(packing.zero) - zeros) * scales
        if not np.allclose(again, offsets[0], rtol=1e-6, atol=0) or np.abs(zeros).max(initial=0) > WIDE:
            return None
    spread = [np.repeat(side, packing.group, 1) for side in (scales, zeros)]
    numbers = unpack(codes, packing).astype(np.int16) - spread[1].astype(np.int16)
    return Weight(numbers.reshape(shape), spread[0].reshape(shape))


def packs_narrow(numbers: np.ndarray) -> bool:
    """Whether numbers fit into 8 bits."""
    return bool(numbers.size == 0 or (numbers.min() >= NARROW.min and numbers.max() <= NARROW.max))
