# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime (domain com.microsoft) in terms of the standard's.

Their meaning is that of ONNX Runtime's document "Contrib Operator Documentation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import helper

from .known import VersionedNode, attributes_of
from .recurrent import VERSION, recurrent
from .rewrites import Rewrite
from .weight_only import packed_weight

if TYPE_CHECKING:
    from .simplifier import Simplifier

DOMAIN = "com.microsoft"


def mat_mul_n_bits(step: VersionedNode, simplifier: Simplifier) -> bool:
    """MatMulNBits(A, B, scales, zero points, group index, bias) -> A times the weight that B stands for."""
    names = [*step.node.input, *[""] * (6 - len(step.node.input))]
    arrays = [simplifier.known.array(name) if name else None for name in names[1:5]]
    packed, scales, zeros, groups = arrays
    if (
        packed is None
        or scales is None
        or any(n and a is None for n, a in zip(names[1:5], arrays, strict=True))
    ):
        simplifier.refuse(step, "has weights that are computed", "constants as B, scales and zero points")
    attributes = attributes_of(step)
    count, length, bits, block = (
        int(attributes.get(key, default))  # type: ignore[call-overload]
        for key, default in (("N", 0), ("K", 0), ("bits", 4), ("block_size", 32))
    )
    if bits not in (2, 4, 8):
        simplifier.refuse(step, f"has weights of {bits} bits", "2, 4 or 8 bits")
    blocks = -(-length // block)
    if groups is None and length % block == 0 and bits > 2:
        turned = _packed_weight(packed, scales, zeros, (count, length, block, bits), step, simplifier)
        return _product(names, turned, step, simplifier)
    numbers = unpacked(packed.reshape(count, blocks, -1), bits)[..., :block].reshape(count, -1)[:, :length]
    group = np.arange(length) // block if groups is None else groups
    if zeros is None:
        offsets = np.full((count, blocks), 2.0 ** (bits - 1))
    elif zeros.dtype == np.uint8:
        offsets = unpacked(zeros.reshape(count, -1), bits)[:, :blocks]
    else:
        offsets = zeros.reshape(count, blocks)
    weight = (numbers - offsets[:, group].astype(np.float32)) * scales.reshape(count, blocks)[:, group]
    return _product(names, simplifier.constant(weight.T.astype(scales.dtype)), step, simplifier)


def _product(names: list[str], weight: str, step: VersionedNode, simplifier: Simplifier) -> bool:
    """A times a weight [K, N], and the bias."""
    product = simplifier.emit("MatMul", [names[0], weight], step, version=VERSION)
    if names[5]:
        product = simplifier.emit("Add", [product, names[5]], step, version=VERSION)
    simplifier.run(VersionedNode(helper.make_node("Identity", [product], [step.node.output[0]]), VERSION))
    return True


def _packed_weight(
    packed: np.ndarray,
    scales: np.ndarray,
    zeros: np.ndarray | None,
    sizes: tuple[int, int, int, int],
    step: VersionedNode,
    simplifier: Simplifier,
) -> str:
    """The weight [K, N] as a quantised tensor: (N, K, block, bits) are its sizes."""
    count, length, block, bits = sizes
    groups = length // block
    codes = unpacked(packed.reshape(count, groups, -1), bits)[..., :block].reshape(count, length)
    if zeros is None:
        points = np.full((1, 1), float(1 << bits - 1), np.float32)
    elif zeros.dtype == np.uint8:
        points = unpacked(zeros.reshape(count, -1), bits)[:, :groups]
    else:
        points = zeros.reshape(count, groups).astype(np.float32)
    element = simplifier.known.element(step.node.input[0])
    scales = scales.reshape(count, groups)
    name = packed_weight(codes, scales, points, bits, element, step, simplifier)
    return simplifier.emit("Transpose", [name], step, version=VERSION, perm=[1, 0])


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Unsigned numbers of some bits in bytes, the lowest bits first, along the last axis; as float32."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return numbers.reshape(*packed.shape[:-1], -1).astype(np.float32)


RULES: dict[str, Rewrite] = {"DynamicQuantizeLSTM": recurrent, "MatMulNBits": mat_mul_n_bits}
