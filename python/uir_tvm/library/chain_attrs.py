# SPDX-License-Identifier: Apache-2.0
"""The attributes of convolutions that follow each other, and what they mean in NumPy."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np

from ..errors import ShapeError
from .attrs import Conv2dAttrs
from .open_attrs import OpenAttrs
from .reference import conv2d

Array = np.ndarray[Any, Any]


def by_channel(part: Conv2dAttrs) -> bool:
    """Whether a convolution has a window for each channel, and no more."""
    return part.groups == part.input[1] == part.weight[0]


def of_pixels(part: Conv2dAttrs) -> bool:
    """Whether each pixel of a convolution's result is of one pixel, and of all its channels."""
    strides, padding = set(part.strides), set(part.padding)
    return (*part.weight[2:], part.groups) == (1, 1, 1) and strides == {1} and padding == {0}


def _tuple(parts: Iterable[Conv2dAttrs]) -> tuple[Conv2dAttrs, ...]:
    return tuple(parts)


@attrs.frozen(kw_only=True)
class Conv2dChainAttrs(OpenAttrs):
    """Convolutions of which each reads what the one before writes, all with the channels last, in float32.

    ``(x, weight, [bias], weight, [bias], ..., [residual], attributes, out)``: of each part its weight and its
    bias, as its attributes say.  Weights of pixels are packed; those of windows for each channel are
    [kh, kw, c].

    Parameters
    ----------
    parts : tuple of Conv2dAttrs
        Two or three in numbers: one with a window for each channel, which has one of single pixels before
        it, behind it, or both.  Only the last one may have a residual.

    Raises
    ------
    ShapeError
        The parts are no such chain.
    """

    parts: tuple[Conv2dAttrs, ...] = attrs.field(converter=_tuple)

    def __attrs_post_init__(self) -> None:
        windows = [by_channel(part) and not part.packed for part in self.parts]
        middle = windows in ([True, False], [False, True], [False, True, False])
        pixels = all(
            is_by or (part.packed and of_pixels(part))
            for is_by, part in zip(windows, self.parts, strict=True)
        )
        follow = all(a.output == b.input for a, b in zip(self.parts, self.parts[1:], strict=False))
        ends = all(part.residual == "none" for part in self.parts[:-1])
        ends = ends and all(part.alpha == 1.0 for part in self.parts)
        last = all((part.input_layout, part.output_layout) == ("NHWC", "NHWC") for part in self.parts)
        if not (middle and pixels and follow and ends and last) or any(part.is_open for part in self.parts):
            raise ShapeError(
                f"Conv2dChainAttrs: {len(self.parts)} convolutions are no chain.",
                need="one with a window for each channel, one of pixels with a packed weight before it, "
                "behind it or both, each reading what the one before writes, with the channels last",
                remedy="call them one by one",
            )

    def to_json(self) -> str:
        """The text that the operator takes."""
        return f'{{"parts":[{",".join(part.to_json() for part in self.parts)}]}}'

    @classmethod
    def from_json(cls, text: str) -> Conv2dChainAttrs:
        """The attributes that `to_json` wrote."""
        return cls(parts=tuple(Conv2dAttrs(**part) for part in json.loads(text)["parts"]))


def chain_reference(attributes: Conv2dChainAttrs, x: Array, *operands: Array) -> Array:
    """`uir.library.cpu.conv2d_chain` in float64.

    Parameters
    ----------
    x, *operands : numpy.ndarray
        As the operator takes them, but for weights of pixels, which are unpacked: (o, c, 1, 1).

    Returns
    -------
    numpy.ndarray
        float64, of the last part's `output` with the channels last.
    """
    rest, value = list(operands), x
    for part in attributes.parts:
        weight = rest.pop(0)
        if by_channel(part) and not part.packed:
            weight = weight.reshape(*part.weight[2:], 1, -1).transpose(3, 2, 0, 1)
        bias = rest.pop(0) if part.bias else None
        residual = rest.pop(0) if part.residual != "none" else None
        value = conv2d(part, value, weight, bias, residual)
    return value
