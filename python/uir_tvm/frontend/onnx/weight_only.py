# SPDX-License-Identifier: Apache-2.0
"""Constant weights of few bits that stay packed: those of MatMulNBits, and blocks of DequantizeLinear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper

from ...quantized import RESULTS
from ...quantized_weight import MOST_GROUP, affine_weight
from .converters.packed_weights import DOMAIN, OPERATOR
from .known import VersionedNode, attributes_of
from .quantized_parts import check_parts, check_scale
from .rewrites import Rewrite

if TYPE_CHECKING:
    from .simplifier import Simplifier

#: Element type of codes -> bits, and what makes a code of a number with a sign.
CODES: dict[int, tuple[int, int]] = {
    onnx.TensorProto.INT4: (4, 8),
    onnx.TensorProto.UINT4: (4, 0),
    onnx.TensorProto.INT8: (8, 128),
    onnx.TensorProto.UINT8: (8, 0),
}


def packed_weight(
    codes: np.ndarray,
    scales: np.ndarray,
    points: np.ndarray,
    bits: int,
    element: int,
    step: VersionedNode,
    simplifier: Simplifier,
    result: str = "",
    most: int | None = None,
) -> str:
    """A weight as a quantised tensor, scale * (code - zero point).

    Parameters
    ----------
    codes : numpy.ndarray
        Whole numbers [rows, columns], of 0 to 2**bits - 1.
    scales : numpy.ndarray
        [rows, groups].
    points : numpy.ndarray
        Zero points as float32, of one element or like the scales. Those that differ become offsets in
        float32, -(zero point * scale).
    bits : int
    element : int
        Type of the values.
    step : VersionedNode
        The node whose weight it is.
    simplifier : Simplifier
    result : str
        What the tensor is called; default: a name of its own.
    most : int, optional
        Values of a group at most (`affine_weight`).
    """
    weight = affine_weight(codes, scales, points, bits, most)
    sides = [] if weight.offsets is None else [weight.offsets]
    name = result or f"{simplifier.prefix()}weight"
    simplifier.known.add_type(name, element, weight.shape)
    node = helper.make_node(
        OPERATOR,
        [simplifier.constant(part) for part in (weight.packed, weight.scales, *sides)],
        [name],
        domain=DOMAIN,
        packing=weight.packing.to_json(),
        dtype=helper.tensor_dtype_to_np_dtype(element).name,
    )
    simplifier.run(VersionedNode(node, 1))
    return name


def dequantize_blocks(step: VersionedNode, simplifier: Simplifier) -> bool:
    """DequantizeLinear of a constant, with a scale for blocks of an axis, for its places, or for all.

    Before: w = DequantizeLinear(x, s, z, axis=1, block_size=32).  After: w = Dequantize(codes, s, ...), whose
    codes are packed; along axis 0 it is the turned tensor of those of x.T.
    """
    names = [*step.node.input, ""][:3]
    known, attributes = simplifier.known, attributes_of(step)
    arrays = [known.array(name) if name else None for name in names]
    x, scales, zeros = arrays
    if x is None or scales is None or (names[2] and zeros is None):
        return False
    axis, block = (int(attributes.get(name, least)) for name, least in (("axis", 1), ("block_size", 0)))  # type: ignore[call-overload]
    check_scale(scales, step.text)
    element = known.element(names[0])
    given = None if zeros is None else (zeros.shape, _named(known.element(names[2])))
    check_parts(step.text, x.shape, _named(element), scales.shape, given, axis, block)
    kind = CODES.get(element)
    if kind is not None and not block and scales.size and scales.ndim < 2:
        return _dequantize_axis(step, simplifier, kind)
    if kind is None or not block or x.ndim != 2 or scales.ndim != 2:
        return False
    element = known.element(step.node.output[0]) or known.element(names[1])
    axis %= 2
    bits, shift = kind
    whole = x.shape[axis] % block == 0 and block % (8 // bits) == 0
    if not whole or helper.tensor_dtype_to_np_dtype(element).name not in RESULTS:
        return False
    codes = x.astype(np.int32) + shift
    points = np.full((1, 1), shift, np.float32) if zeros is None else zeros.astype(np.float32) + shift
    scales = np.asarray(scales)
    if axis == 1:
        packed_weight(codes, scales, points, bits, element, step, simplifier, step.node.output[0])
        return True
    turned = packed_weight(codes.T, scales.T, points.T, bits, element, step, simplifier)
    node = helper.make_node("Transpose", [turned], [step.node.output[0]], perm=[1, 0])
    simplifier.run(VersionedNode(node, step.version))
    return True


def _named(element: int) -> str:
    """An element type by its name in NumPy."""
    return helper.tensor_dtype_to_np_dtype(element).name if element else ""


def _dequantize_axis(step: VersionedNode, simplifier: Simplifier, kind: tuple[int, int]) -> bool:
    """A weight of a product or a convolution, with a scale for each output or one for all.

    Before: w = DequantizeLinear(x, s, z, axis=0), of 32x3x3x3.
    After: w = Reshape(Dequantize(codes, s, ...), (32, 3, 3, 3)).
    A matrix is multiplied from the right: its outputs are columns, and it is the turned tensor of x.T.
    """
    known, attributes = simplifier.known, attributes_of(step)
    names = [*step.node.input, ""][:3]
    x, scales, zeros = (known.array(name) if name else None for name in names)
    assert x is not None and scales is not None
    element = known.element(step.node.output[0]) or known.element(names[1])
    axis = int(attributes.get("axis", 1))  # type: ignore[call-overload]
    one = scales.size == 1
    if (
        x.ndim not in (2, 4)
        or not x.size
        or not -x.ndim <= axis < x.ndim
        or helper.tensor_dtype_to_np_dtype(element).name not in RESULTS
    ):
        return False
    axis = axis % x.ndim if not one else 0 if x.ndim == 4 else 1
    turned = x.ndim == 2 and axis == 1
    if (axis != 0 and not turned) or (not one and scales.size != x.shape[axis]):
        return False
    bits, shift = kind
    matrix = (x.T if turned else x.reshape(len(x), -1)).astype(np.int32) + shift
    if matrix.shape[1] % (8 // bits):
        return False
    points = np.full(1, shift, np.float32) if zeros is None else zeros.astype(np.float32).reshape(-1) + shift
    if points.size not in (1, scales.size):
        return False
    columns = np.broadcast_to(np.asarray(scales).reshape(-1, 1), (len(matrix), 1))
    points = points[:1] if (points == points[0]).all() else points
    column = points.reshape(-1, 1)
    inner = packed_weight(matrix, columns, column, bits, element, step, simplifier, most=MOST_GROUP)
    if turned:
        node = helper.make_node("Transpose", [inner], [step.node.output[0]], perm=[1, 0])
    else:
        shape = simplifier.constant(np.array(x.shape, np.int64))
        node = helper.make_node("Reshape", [inner, shape], [step.node.output[0]])
    simplifier.run(VersionedNode(node, step.version))
    return True


#: Operators that are rewritten before their value is computed of constants.
KEPT_PACKED: dict[str, Rewrite] = {"DequantizeLinear": dequantize_blocks}
