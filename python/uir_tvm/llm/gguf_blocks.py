# SPDX-License-Identifier: Apache-2.0
"""Blocks of GGUF's quantised tensors as quantised tensors of ours: the same values, bit for bit.

The layouts are those that the ``gguf`` package reads (``gguf/quants.py``; llama.cpp, ``ggml-common.h``). A
block is a few bytes of scales beside the codes of 32 or 256 values. Scales of scales are multiplied in fp32,
as the package does.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from ..quantized import Packing, pack
from ..quantized_weight import QuantizedWeight

#: Blocks (count, bytes) -> codes (count, values), scales (count, groups), offsets like scales or None.
Parts = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@attrs.frozen
class BlockKind:
    """A type of tensors of GGUF.

    Attributes
    ----------
    name : str
    values : int
        Of a block.
    nbytes : int
        Of a block.
    packing : Packing, optional
        What its tensors become; None: numbers that are no codes, or codes of which we have no form.
    parts : callable, optional
    """

    name: str
    values: int
    nbytes: int
    packing: Packing | None = None
    parts: Callable[[np.ndarray], Parts] | None = None


def _half(blocks: np.ndarray, begin: int) -> np.ndarray:
    """A number of fp16 of each block: (count, 1)."""
    return np.ascontiguousarray(blocks[:, begin : begin + 2]).view(np.float16)


def _halves(codes: np.ndarray, width: int) -> np.ndarray:
    """Codes of 4 bits, of runs of bytes whose low halves come first: (count, values)."""
    runs = codes.reshape(len(codes), -1, 1, width)
    return np.concatenate([runs & 15, runs >> 4], axis=2).reshape(len(codes), -1)


def _bit(blocks: np.ndarray) -> np.ndarray:
    """32 bits of each block, the lowest first, as fifth bits of codes."""
    return np.unpackbits(blocks, axis=1, bitorder="little") << 4


def _q4_0(blocks: np.ndarray) -> Parts:
    return _halves(blocks[:, 2:], 16), _half(blocks, 0), None


def _q4_1(blocks: np.ndarray) -> Parts:
    return _halves(blocks[:, 4:], 16), _half(blocks, 0), _half(blocks, 2)


def _q5_0(blocks: np.ndarray) -> Parts:
    return _halves(blocks[:, 6:], 16) | _bit(blocks[:, 2:6]), _half(blocks, 0), None


def _q5_1(blocks: np.ndarray) -> Parts:
    return _halves(blocks[:, 8:], 16) | _bit(blocks[:, 4:8]), _half(blocks, 0), _half(blocks, 2)


def _q8_0(blocks: np.ndarray) -> Parts:
    return blocks[:, 2:] ^ 128, _half(blocks, 0), None


def _k_scales(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scales and offsets of the 8 groups of a block of Q4_K or Q5_K: 6 bits of each, times two of fp16."""
    first, second, rest = (blocks[:, begin : begin + 4] for begin in (4, 8, 12))
    scales = np.concatenate([first & 63, (rest & 15) | (first >> 2 & 48)], axis=1)
    least = np.concatenate([second & 63, (rest >> 4) | (second >> 2 & 48)], axis=1)
    wide = [_half(blocks, begin).astype(np.float32) for begin in (0, 2)]
    return wide[0] * scales.astype(np.float32), -(wide[1] * least.astype(np.float32))


def _q4_k(blocks: np.ndarray) -> Parts:
    return _halves(blocks[:, 16:], 32), *_k_scales(blocks)


def _q5_k(blocks: np.ndarray) -> Parts:
    shifts = np.arange(8, dtype=np.uint8)[:, None]  # bit i of byte j belongs to value 32 i + j
    high = (blocks[:, 16:48][:, None] >> shifts & 1).reshape(len(blocks), 256) << 4
    return _halves(blocks[:, 48:], 32) | high, *_k_scales(blocks)


def _q6_k(blocks: np.ndarray) -> Parts:
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts & 3  # 4 runs of 32 values in each half
    codes = _halves(blocks[:, :128], 64) | (high << 4).reshape(len(blocks), 256)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    return codes, _half(blocks, 208).astype(np.float32) * scales, None


#: Types by GGUF's number. Without a packing, tensors become float32.
KINDS = {
    0: BlockKind("F32", 1, 4),
    1: BlockKind("F16", 1, 2),
    30: BlockKind("BF16", 1, 2),
    2: BlockKind("Q4_0", 32, 18, Packing(4, 32, 8, "float16"), _q4_0),
    3: BlockKind("Q4_1", 32, 20, Packing(4, 32, 0, "float16", True), _q4_1),
    6: BlockKind("Q5_0", 32, 22, Packing(8, 32, 16, "float16"), _q5_0),
    7: BlockKind("Q5_1", 32, 24, Packing(8, 32, 0, "float16", True), _q5_1),
    8: BlockKind("Q8_0", 32, 34, Packing(8, 32, 128, "float16"), _q8_0),
    10: BlockKind("Q2_K", 256, 84),
    11: BlockKind("Q3_K", 256, 110),
    12: BlockKind("Q4_K", 256, 144, Packing(4, 32, 0, "float32", True), _q4_k),
    13: BlockKind("Q5_K", 256, 176, Packing(8, 32, 0, "float32", True), _q5_k),
    14: BlockKind("Q6_K", 256, 210, Packing(8, 16, 32, "float32"), _q6_k),
    16: BlockKind("IQ2_XXS", 256, 66),
    17: BlockKind("IQ2_XS", 256, 74),
    18: BlockKind("IQ3_XXS", 256, 98),
    19: BlockKind("IQ1_S", 256, 50),
    20: BlockKind("IQ4_NL", 32, 18),
    21: BlockKind("IQ3_S", 256, 110),
    22: BlockKind("IQ2_S", 256, 82),
    23: BlockKind("IQ4_XS", 256, 136),
    29: BlockKind("IQ1_M", 256, 56),
}


def quantised(kind: BlockKind, rows: np.ndarray) -> QuantizedWeight:
    """The rows of a tensor, as bytes of the file, as a quantised tensor.

    Parameters
    ----------
    kind : BlockKind
        With a packing.
    rows : numpy.ndarray of uint8, (rows, bytes of a row)
    """
    assert kind.packing is not None and kind.parts is not None
    blocks = rows.reshape(-1, kind.nbytes)
    codes, scales, offsets = kind.parts(blocks)
    count = len(rows)
    packed = pack(codes.reshape(count, -1), kind.packing)
    sides = [None if side is None else side.reshape(count, -1) for side in (scales, offsets)]
    assert sides[0] is not None
    return QuantizedWeight(kind.packing, packed, sides[0], sides[1])
