# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors: integers of few bits in bytes, with a scale, and perhaps an offset, for each group.

A tensor of (rows, columns) is kept as ``packed``, uint8 [rows, columns * bits // 8], ``scales``
[rows, columns // group] and perhaps ``offsets`` like these, and stands for::

    value[r, c] = scale[r, c // group] * (code[r, c] - zero) + offset[r, c // group]

computed in fp32.  Codes of 4 bits lie in halves of a group: byte j has value j in its low half, and value
j + group // 2 in its high half, as blocks of GGUF have.  Codes of 8 bits are bytes.

`uir_tvm.quantized_calls` says such a tensor in Relax.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
import numpy as np

from .errors import QuantizationError

#: Annotation of blocks of a kernel: of that which unpacks a weight, and of the product that reads it.
UNPACKED = "uir.unpacked"
#: Annotation of blocks of a product with a weight whose codes lie by place: what they make for it.
BY_PLACE = "uir.by_place"
#: Its values: x, scales, offsets, what values of a group have added, values of a place, the sum of products.
X, SCALES, OFFSETS, ADDED, VALUES, SUM = "x", "scales", "offsets", "added", "values", "sum"
#: Annotation of a product with a weight that lies so: its packing, as a text.
PACKING = "uir.packing"
#: Element types of scales, offsets and what is computed of them.
FLOATS = ("float16", "float32")
#: Element types of the values.
RESULTS = (*FLOATS, "bfloat16")


def _one_of(*choices: Any) -> Any:
    def check(_packing: Any, field: attrs.Attribute, given: Any) -> None:
        if given not in choices:
            raise QuantizationError(
                f"A packing has no {field.name} of {given!r}.",
                need=" or ".join(map(str, choices)),
                remedy="convert the codes to one of these",
            )

    return check


@attrs.frozen
class Packing:
    """How the codes of a quantised tensor lie, and what they mean.

    Attributes
    ----------
    bits : int
        Of a code: 4 or 8.
    group : int
        Values along the last axis that share a scale; even, where codes have 4 bits.
    zero : int
        What is subtracted from a code: 8 for Q4_0 of GGUF, 0 for Q4_1, 128 for bytes with a sign.
    scale_dtype : str
        Of scales and offsets: float16 or float32.
    offsets : bool
        Whether every group has an offset too.

    Raises
    ------
    QuantizationError
        For numbers that are none of these.
    """

    bits: int = attrs.field(validator=_one_of(4, 8))
    group: int = attrs.field()
    zero: int = attrs.field(default=0)
    scale_dtype: str = attrs.field(default="float32", validator=_one_of(*FLOATS))
    offsets: bool = attrs.field(default=False)

    @group.validator
    def _check_group(self, _field: Any, group: int) -> None:
        least = 8 // self.bits
        if group < least or group % least:
            raise QuantizationError(
                f"A group of {group} values of {self.bits} bits does not fill bytes.",
                need=f"a positive multiple of {least}",
                remedy="choose another group",
            )

    @zero.validator
    def _check_zero(self, _field: Any, zero: int) -> None:
        if not 0 <= zero < 1 << self.bits:
            raise QuantizationError(
                f"No code of {self.bits} bits is {zero}.",
                need=f"a zero of 0 to {(1 << self.bits) - 1}",
                remedy="add the difference to the offsets",
            )

    def packed_shape(self, rows: int, columns: int) -> tuple[int, int]:
        """Shape of the bytes of a tensor."""
        self._check_columns(columns)
        return rows, columns * self.bits // 8

    def scales_shape(self, rows: int, columns: int) -> tuple[int, int]:
        """Shape of its scales, and of its offsets."""
        self._check_columns(columns)
        return rows, columns // self.group

    def shape_of(self, packed: tuple[int, ...]) -> tuple[int, int]:
        """Shape of the tensor that has bytes of this shape."""
        rows, size = packed
        self._check_columns(size * 8 // self.bits)
        return rows, size * 8 // self.bits

    def nbytes(self, rows: int, columns: int) -> int:
        """Bytes of codes, scales and offsets."""
        groups = rows * (columns // self.group)
        return rows * columns * self.bits // 8 + groups * int(self.scale_dtype[-2:]) // 8 * (1 + self.offsets)

    def _check_columns(self, columns: int) -> None:
        if columns % self.group:
            raise QuantizationError(
                f"Rows of {columns} values have no whole number of groups of {self.group}.",
                need=f"a multiple of {self.group}",
                remedy="choose a group that divides the rows",
            )

    def to_json(self) -> str:
        """As a text that `from_json` reads."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Packing:
        """The packing that `to_json` wrote."""
        return cls(**json.loads(text))


def pack(codes: np.ndarray, packing: Packing) -> np.ndarray:
    """Codes as bytes.

    Parameters
    ----------
    codes : numpy.ndarray
        Integers [rows, columns], of 0 to 2**bits - 1.

    Returns
    -------
    numpy.ndarray
        uint8 [rows, columns * bits // 8].

    Raises
    ------
    QuantizationError
        For codes out of their range, or rows that are no whole number of groups.
    """
    rows, columns = codes.shape
    shape = packing.packed_shape(rows, columns)
    if codes.size and (codes.min() < 0 or codes.max() >= 1 << packing.bits):
        raise QuantizationError(
            f"Codes of {codes.min()} to {codes.max()} do not fit into {packing.bits} bits.",
            need=f"0 to {(1 << packing.bits) - 1}",
            remedy="add what their packing subtracts as zero",
        )
    narrow = codes.astype(np.uint8)
    if packing.bits == 8:
        return narrow
    halves = narrow.reshape(rows, columns // packing.group, 2, packing.group // 2)
    return (halves[:, :, 0] | halves[:, :, 1] << 4).reshape(shape)


def unpack(packed: np.ndarray, packing: Packing) -> np.ndarray:
    """The codes of bytes: uint8 [rows, columns], the reverse of `pack`."""
    rows, columns = packing.shape_of(packed.shape)
    if packing.bits == 8:
        return packed.copy()
    halves = packed.reshape(rows, columns // packing.group, 1, packing.group // 2)
    return np.concatenate([halves & 15, halves >> 4], axis=2).reshape(rows, columns)


def dequantized(
    packed: np.ndarray, scales: np.ndarray, offsets: np.ndarray | None, packing: Packing
) -> np.ndarray:
    """The values of a quantised tensor: float32 [rows, columns].

    Raises
    ------
    QuantizationError
        For shapes that do not fit, or offsets where the packing has none (and the reverse).
    """
    kinds = [array.dtype.name for array in (packed, scales, *([] if offsets is None else [offsets]))]
    others = [array.shape for array in (scales, *([] if offsets is None else [offsets]))]
    rows, columns = check(packing, packed.shape, others, kinds)
    codes = unpack(packed, packing).reshape(rows, -1, packing.group).astype(np.float32)
    values = (codes - np.float32(packing.zero)) * scales.astype(np.float32)[..., None]
    if offsets is not None:
        values = values + offsets.astype(np.float32)[..., None]
    return values.reshape(rows, columns)


def check(
    packing: Packing, packed: tuple[int, ...], others: list[tuple[int, ...]], dtypes: list[str]
) -> tuple[int, int]:
    """The shape of a quantised tensor, whose parts have these shapes and dtypes.

    Parameters
    ----------
    packed : tuple of int
        Shape of the bytes.
    others : list of tuple
        Shapes of scales and, where there are, offsets.
    dtypes : list of str
        Of all parts, the bytes first.

    Raises
    ------
    QuantizationError
        Where they are no such tensor.
    """
    if len(packed) != 2:
        raise QuantizationError(
            f"A quantised tensor has bytes of shape {tuple(packed)}.",
            need="two dimensions, rows and bytes of a row",
            remedy="reshape it",
        )
    shape = packing.shape_of(packed)
    need = ["uint8", *[packing.scale_dtype] * (1 + packing.offsets)]
    sides = [packing.scales_shape(*shape)] * (1 + packing.offsets)
    if dtypes != need or [tuple(other) for other in others] != sides:
        raise QuantizationError(
            f"The parts of a quantised tensor of {shape} do not fit its packing.",
            where=", ".join(
                f"{dtype}{tuple(part)}" for dtype, part in zip(dtypes, [packed, *others], strict=False)
            ),
            need=", ".join(f"{dtype}{part}" for dtype, part in zip(need, [packed, *sides], strict=True)),
            remedy="correct the packing, or the tensors",
        )
    return shape
