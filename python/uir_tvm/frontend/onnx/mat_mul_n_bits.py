# SPDX-License-Identifier: Apache-2.0
"""MatMulNBits of ONNX Runtime's domain: a product with a packed weight, which stays packed.

Its meaning is that of ONNX Runtime's document "Contrib Operator Documentation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np
from onnx import helper

from ...errors import QuantizationError
from .known import VersionedNode, attributes_of
from .quantized_parts import check_scale
from .weight_only import packed_weight

if TYPE_CHECKING:
    from .simplifier import Simplifier

#: The standard's version whose operators are written.
VERSION = 20
#: Bits of a code -> those of a quantised tensor's.
BITS = {2: 4, 4: 4, 8: 8}


@attrs.frozen
class _Sizes:
    """What the node says: outputs, inputs, bits of a code, inputs of a block."""

    count: int
    length: int
    bits: int
    block: int

    @property
    def blocks(self) -> int:
        """Blocks of an output, the last of which need not be full."""
        return -(-self.length // self.block)

    def nbytes(self, codes: int) -> int:
        """Bytes of some codes."""
        return -(-codes * self.bits // 8)


def mat_mul_n_bits(step: VersionedNode, simplifier: Simplifier) -> bool:
    """MatMulNBits(A, B, scales, zero points, group index, bias) -> A times the weight that B stands for.

    Where blocks are not full, or inputs have groups in another order, columns of A are brought into the order
    of whole groups, with columns of zeros: the weight is a quantised tensor all the same.
    """
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
    sizes = _Sizes(
        *(
            int(attributes.get(key, default))  # type: ignore[call-overload]
            for key, default in (("N", 0), ("K", 0), ("bits", 4), ("block_size", 32))
        )
    )
    if sizes.bits not in BITS:
        simplifier.refuse(step, f"has weights of {sizes.bits} bits", "2, 4 or 8 bits")
    _check(step, sizes, packed, scales, zeros, groups)
    count, blocks, block = sizes.count, sizes.blocks, sizes.block
    codes = unpacked(packed.reshape(count, blocks, -1), sizes.bits)[..., :block].reshape(count, -1)
    group = np.arange(sizes.length) // block if groups is None else groups.reshape(-1)[: sizes.length]
    places, pieces = _columns(group, block)
    codes = np.concatenate([codes[:, : sizes.length], np.zeros((count, 1), codes.dtype)], 1)[:, places]
    if zeros is None:
        points = np.full((1, 1), 2.0 ** (sizes.bits - 1), np.float32)
    else:
        stored = unpacked(zeros.reshape(count, -1), sizes.bits) if zeros.dtype == np.uint8 else zeros
        points = stored.reshape(count, -1)[:, pieces].astype(np.float32)
    element = simplifier.known.element(step.node.input[0])
    scales = scales.reshape(count, blocks)[:, pieces]
    weight = packed_weight(codes, scales, points, BITS[sizes.bits], element, step, simplifier)
    weight = simplifier.emit("Transpose", [weight], step, version=VERSION, perm=[1, 0])
    x = _in_order(names[0], places, sizes.length, step, simplifier)
    product = simplifier.emit("MatMul", [x, weight], step, version=VERSION)
    if names[5]:
        product = simplifier.emit("Add", [product, names[5]], step, version=VERSION)
    simplifier.run(VersionedNode(helper.make_node("Identity", [product], [step.node.output[0]]), VERSION))
    return True


def _columns(group: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in whole blocks of one group each, and the group of each block.

    A place that no input has is the number of inputs.
    """
    places: list[np.ndarray] = []
    pieces: list[int] = []
    for number in np.unique(group):
        members = np.flatnonzero(group == number)
        whole = -(-len(members) // block)
        places.append(np.full(whole * block, len(group)))
        places[-1][: len(members)] = members
        pieces += [number] * whole
    return np.concatenate(places), np.array(pieces)


def _in_order(x: str, places: np.ndarray, length: int, step: VersionedNode, simplifier: Simplifier) -> str:
    """The columns of A at these places; behind the last one are zeros."""
    order = np.arange(len(places))
    sorted_ = bool((places[:length] == order[:length]).all())
    empty = len(places) - length if sorted_ else int((places == length).any())
    if empty:
        pads = [simplifier.constant(np.array(each, np.int64)) for each in ((0, empty), (-1,))]
        x = simplifier.emit("Pad", [x, pads[0], "", pads[1]], step, version=VERSION)
    if sorted_:
        return x
    index = simplifier.constant(places.astype(np.int64))
    return simplifier.emit("Gather", [x, index], step, version=VERSION, axis=-1)


def _check(
    step: VersionedNode,
    sizes: _Sizes,
    packed: np.ndarray,
    scales: np.ndarray,
    zeros: np.ndarray | None,
    groups: np.ndarray | None,
) -> None:
    """Refuse parts that do not fit what the node says.

    Raises
    ------
    QuantizationError
    """
    if min(sizes.count, sizes.length, sizes.block) < 1:
        raise QuantizationError(
            f"MatMulNBits has N={sizes.count}, K={sizes.length}, block_size={sizes.block}.",
            where=step.text,
            need="numbers above 0",
            remedy="quantise the model again",
        )
    each, blocks = sizes.count, sizes.blocks
    needs: dict[str, tuple[np.ndarray | None, list[int]]] = {
        "B": (packed, [each * blocks * sizes.nbytes(sizes.block)]),
        "scales": (scales, [each * blocks]),
        "zero points": (
            zeros,
            [each * (blocks if zeros is None or zeros.dtype != np.uint8 else sizes.nbytes(blocks))],
        ),
        "g_idx": (groups, [sizes.length, blocks * sizes.block]),
    }
    for name, (array, need) in needs.items():
        if array is not None and array.size not in need:
            raise QuantizationError(
                f"{name} of MatMulNBits has {array.size} elements.",
                where=step.text,
                need=f"{need[0]}, by N={sizes.count}, K={sizes.length}, bits={sizes.bits}, "
                f"block_size={sizes.block}",
                remedy="quantise the model again",
            )
    if groups is not None and not (0 <= groups.min() and groups.max() < blocks):
        raise QuantizationError(
            f"g_idx of MatMulNBits has groups {groups.min()} to {groups.max()}.",
            where=step.text,
            need=f"0 to {blocks - 1}",
            remedy="quantise the model again",
        )
    check_scale(scales, step.text)


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Unsigned numbers of some bits in bytes, the lowest bits first, along the last axis; as float32."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return numbers.reshape(*packed.shape[:-1], -1).astype(np.float32)
