# SPDX-License-Identifier: Apache-2.0
"""Constant weights of few bits that stay packed: those of MatMulNBits, and blocks of DequantizeLinear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper

from ...quantized import RESULTS
from ...quantized_weight import affine_weight
from .converters.packed_weights import DOMAIN, OPERATOR
from .known import VersionedNode, attributes_of
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
    """
    weight = affine_weight(codes, scales, points, bits)
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
    """DequantizeLinear(x, scales, zero points) of a constant matrix with a scale for every block of an axis.

    Before: w = DequantizeLinear(x, s, z, axis=1, block_size=32).  After: w = Dequantize(codes, s, ...), whose
    codes are packed; along axis 0 it is the turned tensor of those of x.T.  Scales of a whole axis, or of the
    whole tensor, stay as they are: such weights belong to quantised activations as a rule.
    """
    names = [*step.node.input, ""][:3]
    known, attributes = simplifier.known, attributes_of(step)
    arrays = [known.array(name) if name else None for name in names]
    x, scales, zeros = arrays
    if x is None or scales is None or (names[2] and zeros is None):
        return False
    kind = CODES.get(known.element(names[0]))
    block = int(attributes.get("block_size", 0))  # type: ignore[call-overload]
    if kind is None or not block or x.ndim != 2 or scales.ndim != 2:
        return False
    element = known.element(step.node.output[0]) or known.element(names[1])
    axis = int(attributes.get("axis", 1)) % 2  # type: ignore[call-overload]
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


#: Operators that are rewritten before their value is computed of constants.
KEPT_PACKED: dict[str, Rewrite] = {"DequantizeLinear": dequantize_blocks}
