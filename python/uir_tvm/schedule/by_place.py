# SPDX-License-Identifier: Apache-2.0
"""The numbers that kernels make of bytes of codes which lie by place.

The highest bit of every stored byte is turned, so that a byte is a number with a sign, 128 less than it was:
MLUs convert no bytes without one at once.  A byte of one code is that number.  Of two codes, low and high, a
kernel makes the low one and the whole byte, never the high one: as byte + 128 = low + 16 * high,

    x0 * low + x1 * high = (x0 - x1 / 16) * low + x1 / 16 * (byte + 128)
"""

from __future__ import annotations

from typing import Any

import attrs
from tvm import tirx

from ..quantized import Packing

#: What a high code counts for in its byte, and what a stored byte is less than its codes say.
HIGH, LESS = 16, 128


@attrs.frozen
class Zero:
    """What is added for each of the numbers beside number * scale.

    Attributes
    ----------
    scales, offsets : int
        Times the scale of its group, and times its offset.
    """

    scales: int
    offsets: int


def zeros_of(packing: Packing) -> tuple[Zero, ...]:
    """One for each number that is made of a byte: that of all its codes, then, of two, the whole byte."""
    if packing.bits == 8:
        return (Zero(LESS - packing.zero, 1),)
    codes = 1 + HIGH
    return Zero(-packing.zero, 1), Zero(LESS - codes * packing.zero, codes)


def number_of(byte: Any, packing: Packing, part: int) -> Any:
    """Such a number in float32: the low code (part 0 of two), or the byte as it is stored."""
    if part == 0 and packing.bits == 4:
        byte = byte & tirx.const(HIGH - 1, "int8")
    return byte.astype("float32")
