# SPDX-License-Identifier: Apache-2.0
"""Products of bytes with a constant weight: attributes, the packed weight, and what they are in NumPy."""

from __future__ import annotations

import json
from typing import Any

import attrs
import numpy as np

from ..sizes.open_arithmetic import structure
from .open_attrs import OpenAttrs, not_below, sizes

#: Outputs of a panel of the packed weight (src/library/integer_product.h).
COLUMNS = 16

_SIZE = not_below(0, "correct the shapes")
_POSITIVE = not_below(1, "leave an operator without elements out of the graph")


@attrs.frozen(kw_only=True)
class IntegerAttrs(OpenAttrs):
    """out[n, y, x, o] = the sum over a window of (x - zero) * weight[o], of images with the channels last.

    ``(x, packed weight, [zero point], attributes, out)``: x is int8 or uint8. An out of int32 is the
    sums, one of float32 is sums * factor + term between two bounds, one of int8 or uint8 is that rounded,
    halves to even, plus `out_zero`. A product of matrices is that of images of one pixel.

    Parameters
    ----------
    image : tuple of int
        (n, h, w, c): numbers or open sizes (`open_attrs`).
    weight : tuple of int
        (outputs, height, width) of the window.
    strides, dilation : tuple of int
        Along height and width.
    padding : tuple of int
        Above, left, below, right; what is padded counts as the zero point.
    zero : int
        Of x, where no operand says it.
    out_zero : int
        Of a result of bytes.
    wide : bool
        Whether the packed weight has 16 bits a number; else 8.

    Raises
    ------
    ShapeError
        A size that is none.
    """

    image: tuple[int, ...] = attrs.field(converter=sizes, eq=structure, validator=_SIZE)
    weight: tuple[int, ...] = attrs.field(converter=sizes, eq=structure, validator=_POSITIVE)
    strides: tuple[int, ...] = attrs.field(converter=tuple, default=(1, 1))
    padding: tuple[int, ...] = attrs.field(converter=tuple, default=(0, 0, 0, 0))
    dilation: tuple[int, ...] = attrs.field(converter=tuple, default=(1, 1))
    zero: int = 0
    out_zero: int = 0
    wide: bool = False

    @classmethod
    def from_json(cls, text: str) -> IntegerAttrs:
        """The attributes that `to_json` wrote."""
        return cls(**json.loads(text))

    @property
    def output(self) -> tuple[int, int, int, int]:
        """Shape of the result, (n, h, w, outputs)."""
        high, wide = (
            (self.image[1 + d] + self.padding[d] + self.padding[d + 2] - (self.weight[1 + d] - 1) * step - 1)
            // self.strides[d]
            + 1
            for d, step in enumerate(self.dilation)
        )
        return self.image[0], high, wide, self.weight[0]


@attrs.frozen(kw_only=True, eq=False)
class IntegerEnding:
    """What becomes of the sums of each output.

    Parameters
    ----------
    start : numpy.ndarray
        int32 [outputs], added to the sums.
    factor, term : numpy.ndarray
        float32 [outputs].
    low, high : float
        Bounds of sums * factor + term.
    """

    start: np.ndarray
    factor: np.ndarray
    term: np.ndarray
    low: float
    high: float

    @classmethod
    def nothing(cls, outputs: int) -> IntegerEnding:
        """The sums as they are."""
        ones = np.ones(outputs, np.float32)
        return cls(start=np.zeros(outputs, np.int32), factor=ones, term=0 * ones, low=-np.inf, high=np.inf)


def pack_integers(weight: np.ndarray, ending: IntegerEnding) -> np.ndarray:
    """A weight as the library reads it: panels of 16 outputs, then what becomes of their sums.

    Parameters
    ----------
    weight : numpy.ndarray
        int8 or int16 [outputs, inputs]; the inputs of a window are its pixels, row by row, with the channels
        of a pixel side by side.
    ending : IntegerEnding

    Returns
    -------
    numpy.ndarray
        uint8, one dimension.
    """
    outputs, inputs = weight.shape
    more = -outputs % COLUMNS
    whole = np.pad(weight, ((0, more), (0, inputs % 2)))
    panels = whole.reshape(-1, COLUMNS, whole.shape[1] // 2, 2).transpose(0, 2, 1, 3)
    parts = [np.ascontiguousarray(panels)]
    for part, dtype in ((ending.start, np.int32), (ending.factor, np.float32), (ending.term, np.float32)):
        parts.append(np.pad(part.astype(dtype), (0, more)))
    parts.append(np.array([ending.low, ending.high], np.float32))
    return np.concatenate([part.reshape(-1).view(np.uint8) for part in parts])


def windows(x: np.ndarray, it: IntegerAttrs, zero: int) -> np.ndarray:
    """The windows of images (n, h, w, c) without their zero point: int32 [rows of the result, inputs]."""
    above, left, below, right = it.padding
    wide = np.pad(x.astype(np.int32) - zero, ((0, 0), (above, below), (left, right), (0, 0)))
    n, high, across, _ = it.output
    rows, columns = (
        (np.arange(count) * stride)[:, None] + np.arange(size) * step
        for count, stride, size, step in zip(
            (high, across), it.strides, it.weight[1:], it.dilation, strict=True
        )
    )
    found = wide[:, rows[:, None, :, None], columns[None, :, None, :]]
    return found.reshape(n * high * across, -1)


def integer_product(
    x: np.ndarray, weight: np.ndarray, it: IntegerAttrs, ending: IntegerEnding, dtype: str, zero: Any = None
) -> np.ndarray:
    """`uir.library.cpu.integer_product` in NumPy, of a weight as `pack_integers` takes it."""
    rows = windows(x, it, it.zero if zero is None else int(zero))
    sums = rows @ weight.T.astype(np.int32) + ending.start
    if dtype == "int32":
        return sums.reshape(it.output)
    real = sums.astype(np.float32) * ending.factor + ending.term
    real = np.clip(real, np.float32(ending.low), np.float32(ending.high))
    whole = np.rint(real) + it.out_zero if dtype != "float32" else real
    return whole.astype(dtype).reshape(it.output)
