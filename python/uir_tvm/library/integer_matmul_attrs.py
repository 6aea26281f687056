# SPDX-License-Identifier: Apache-2.0
"""Products of matrices of int8, summed in int32: attributes, and what libraries take of them."""

from __future__ import annotations

import json

import attrs

from ..sizes.open_arithmetic import structure
from .open_attrs import OpenAttrs, not_below

#: The longest sums: of products of a byte without its zero point (9 bits) by a byte, which 32 bits hold.
LONGEST = 65535

#: Whole numbers up to this one are numbers of float32.
EXACT = 1 << 24

_SIZE = not_below(0, "correct the shapes")
_POSITIVE = not_below(1, "leave an operator without elements out of the graph")


@attrs.frozen(kw_only=True)
class IntegerMatmulAttrs(OpenAttrs):
    """out[p, m, n] = the sum over k of a[p, m, k] * b[p, n, k], of int8; all three lie by rows.

    ``(a, b, [scale], attributes, out)``; sums are of int32, or of float32 (`IntegerMatmulLimits.sums`).

    Parameters
    ----------
    m : int
        A number or an open size (`open_attrs`).
    n, k : int
    parts : int
        Products, each of its own matrices.

    Raises
    ------
    ShapeError
        A size that is none.
    """

    m: int = attrs.field(eq=structure, validator=_SIZE)
    n: int = attrs.field(validator=_POSITIVE)
    k: int = attrs.field(validator=_POSITIVE)
    parts: int = attrs.field(default=1, validator=_POSITIVE)

    @classmethod
    def from_json(cls, text: str) -> IntegerMatmulAttrs:
        """The attributes that `to_json` wrote."""
        return cls(**json.loads(text))


@attrs.frozen
class WindowLimits:
    """The smallest convolutions that are products of bytes: a kernel writes their windows side by side first.

    Attributes
    ----------
    inputs : int
        Fewest channels of a pixel, which lie side by side.
    outputs : int
        Fewest channels of the result: as often each byte that is written is multiplied.
    products : int
        Fewest multiplications of an image, against the start of two more kernels.
    """

    inputs: int
    outputs: int
    products: int


#: By the model of an Ascend 910B: a byte of a window is written and read in the time in which its cube cores
#: do some 40 multiplications of float32, and a kernel starts in 2 us; windows of rows below a block of 32
#: bytes are put together byte by byte. GPUs have about the same figures; that was not measured.
WINDOWS = WindowLimits(inputs=32, outputs=64, products=1 << 27)


@attrs.frozen
class IntegerMatmulLimits:
    """What a target's library takes of products of int8 (`kernel_graph.integer_matmul`).

    Attributes
    ----------
    multiple : int
        What n and k are multiples of: operands get zeros.
    scaled : bool
        Whether there is a third operand, a factor of the result, which is 1.
    sums : str
        Element type of the result: ``int32``, or ``float32``, which is exact up to `EXACT`, so that longer
        sums are several products (`kernel_graph.float_sums`).
    """

    multiple: int = 1
    scaled: bool = False
    sums: str = "int32"
