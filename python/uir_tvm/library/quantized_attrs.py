# SPDX-License-Identifier: Apache-2.0
"""Products with a weight of few bits: their attributes, and the weight as the library reads it."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import tvm_ffi

from ..quantized import Packing
from .attrs import MatmulAttrs

#: Names of the registered functions.
PACK, BYTES = "uir.library.cpu.pack_quantized", "uir.library.cpu.quantized_bytes"


@attrs.frozen(kw_only=True)
class QuantizedMatmulAttrs(MatmulAttrs):
    """A product whose b is a quantised tensor [n, k], turned; its memory is what `pack_quantized` made.

    Parameters
    ----------
    bits, group, zero, offsets
        As in `uir_tvm.quantized.Packing`.
    half : bool
        Whether scales and offsets are float16; else they are float32.
    digits : int
        Of 8 bits, in which a may be read: 1, or 3, which is as exact as float32.
    """

    bits: int
    group: int
    zero: int
    offsets: bool
    half: bool
    digits: int = attrs.field(default=3, validator=attrs.validators.in_((1, 3)), metadata={"settled": True})

    @classmethod
    def of(cls, product: MatmulAttrs, packing: Packing, digits: int = 3) -> QuantizedMatmulAttrs:
        """A product, with such a weight."""
        fields = {field.name: getattr(product, field.name) for field in attrs.fields(MatmulAttrs)}
        told = attrs.asdict(packing)
        half = told.pop("scale_dtype") == "float16"
        return cls(**{**fields, "packed": True}, **told, half=half, digits=digits)

    @property
    def packing(self) -> Packing:
        """Of the weight."""
        dtype = "float16" if self.half else "float32"
        return Packing(self.bits, self.group, self.zero, dtype, self.offsets)


def takes_packing(packing: Packing) -> bool:
    """Whether the library unpacks it: words of 32 bits have codes of one group."""
    return packing.group % (32 // packing.bits) == 0


def pack_quantized(
    packed: Any, scales: Any, offsets: Any, attributes: QuantizedMatmulAttrs
) -> np.ndarray[Any, Any]:
    """A quantised tensor as the library reads it: the codes of 16 outputs side by side, then their scales.

    Parameters
    ----------
    packed, scales, offsets : numpy.ndarray
        Contiguous; offsets are None where the packing has none.
    attributes : QuantizedMatmulAttrs

    Returns
    -------
    numpy.ndarray
        uint8, one dimension; hardly more bytes than the tensor has.
    """
    text = attributes.representative().to_json()
    made = np.empty(tvm_ffi.get_global_func(BYTES)(text), np.uint8)
    parts = [np.ascontiguousarray(part) for part in (packed, scales, offsets) if part is not None]
    given = [tvm_ffi.from_dlpack(part) for part in parts]
    tvm_ffi.get_global_func(PACK)(*given, text, tvm_ffi.from_dlpack(made))
    return made
