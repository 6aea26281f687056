# SPDX-License-Identifier: Apache-2.0
"""Weights as quantised tensors: the parts together, and those of codes with scales and zero points."""

from __future__ import annotations

import attrs
import numpy as np

from .errors import QuantizationError
from .quantized import FLOATS, Packing, dequantized, pack

#: Values that share a scale at most, where a format has one for a whole row.  Kernels unpack a group at a
#: time; a scale in float32 for every 128 codes of 8 bits is 3 % more bytes.
MOST_GROUP = 128
#: What such a group is a multiple of: the codes of 4 bits in a word of 32.
GROUP_STEP = 8


@attrs.frozen(eq=False)
class QuantizedWeight:
    """A quantised tensor (`uir_tvm.quantized`).

    Attributes
    ----------
    packing : Packing
    packed, scales : numpy.ndarray
    offsets : numpy.ndarray, optional
    """

    packing: Packing
    packed: np.ndarray
    scales: np.ndarray
    offsets: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.packing.shape_of(self.packed.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return self.packing.nbytes(*self.shape)

    def values(self) -> np.ndarray:
        """Its values: float32 [rows, columns]."""
        return dequantized(self.packed, self.scales, self.offsets, self.packing)


def affine_weight(
    codes: np.ndarray, scales: np.ndarray, points: np.ndarray, bits: int, most: int | None = None
) -> QuantizedWeight:
    """The weight scale * (code - zero point).

    Parameters
    ----------
    codes : numpy.ndarray
        Whole numbers [rows, columns], of 0 to 2**bits - 1.
    scales : numpy.ndarray
        [rows, groups].
    points : numpy.ndarray
        Zero points, of one element or like the scales. Those that differ, or are no code, become offsets in
        float32, -(zero point * scale).
    bits : int
        4 or 8.
    most : int, optional
        Values of a group at most; larger ones are cut where they can be.

    Raises
    ------
    QuantizationError
        For groups that do not divide the rows, codes out of their range, parts that do not fit.
    """
    points = np.asarray(points, np.float32)
    _check_groups(codes, scales, points)
    first, offsets = float(points.flat[0]), None
    one = bool((points == first).all()) and first.is_integer() and 0 <= first < 1 << bits
    if not one or scales.dtype.name not in FLOATS:
        scales = scales.astype(np.float32)
    if not one:
        offsets = np.broadcast_to(-(points * scales), scales.shape)
    return weight_of_parts(codes, scales, offsets, bits, int(first) if one else 0, most)


def weight_of_parts(
    codes: np.ndarray,
    scales: np.ndarray,
    offsets: np.ndarray | None,
    bits: int,
    zero: int = 0,
    most: int | None = None,
) -> QuantizedWeight:
    """The weight scale * (code - zero) + offset; the parts as of `affine_weight`, offsets like the scales."""
    _check_groups(codes, scales, *([] if offsets is None else [offsets]))
    group = codes.shape[1] // scales.shape[1]
    pieces = 1 if most is None else group // _cut(group, most)
    scales = np.ascontiguousarray(np.repeat(scales, pieces, 1))
    if offsets is not None:
        offsets = np.ascontiguousarray(np.repeat(offsets.astype(scales.dtype), pieces, 1))
    packing = Packing(bits, group // pieces, zero, scales.dtype.name, offsets is not None)
    return QuantizedWeight(packing, pack(codes, packing), scales, offsets)


def _cut(group: int, most: int) -> int:
    """The largest whole part of a group up to a size; the group where there is none."""
    parts = (part for part in range(most, 0, -1) if group % part == 0 and part % GROUP_STEP == 0)
    return group if group <= most else next(parts, group)


def _check_groups(codes: np.ndarray, scales: np.ndarray, *others: np.ndarray) -> None:
    shapes = [part.shape for part in (codes, scales, *others)]
    fits = len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][0] == shapes[1][0] and 0 < shapes[1][1]
    fits = fits and all(part.size == 1 or part.shape == scales.shape for part in others)
    if not fits or shapes[0][1] % shapes[1][1]:
        raise QuantizationError(
            f"Codes of {shapes[0]} have scales of {shapes[1]}"
            + "".join(f" and zero points or offsets of {shape}." for shape in shapes[2:]),
            need="a scale for each group of a row; groups divide the row, zero points lie as scales do",
            remedy="quantise the weight again, with a group that divides its columns",
        )
