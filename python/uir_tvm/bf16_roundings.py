# SPDX-License-Identifier: Apache-2.0
"""Casts to bfloat16 that keep their rounding where TVM lowers a function itself.

TVM's `BF16ComputeLegalize` computes in fp32 and takes a cast to bf16 for nothing but that.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm_ffi.structural import structural_map

NARROW, WIDE, BITS = "bfloat16", "float32", "uint32"
#: Bits of a WIDE number that a NARROW one lacks.
LACKED = 16


def keep_bf16_roundings(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with every cast to bf16 as arithmetic on bits, which TVM leaves as it is.

    Before::

        Y[i] = f32(bf16(X[i]))

    After::

        b = the bits of X[i]                  # written out where it stands
        Y[i] = f32(the bf16 of bits (b + 0x7fff + (b >> 16 & 1)) >> 16)

    Halves are rounded to even, as where TVM stores bf16.
    """
    return structural_map(func, (tirx.Cast, _kept))


def _kept(cast: Any) -> Any:
    given = str(cast.value.ty.dtype)
    if str(cast.ty.dtype) != NARROW or given == NARROW:
        return cast
    # no `tirx.Let` of them: TVM legalises nothing of what it binds
    bits = tirx.reinterpret(BITS, cast.value if given == WIDE else tirx.Cast(WIDE, cast.value))
    last = bits >> _number(LACKED) & _number(1)
    rounded = bits + _number((1 << LACKED - 1) - 1) + last
    return tirx.reinterpret(NARROW, tirx.Cast("uint16", rounded >> _number(LACKED)))


def _number(value: int) -> Any:
    return tirx.const(value, BITS)
