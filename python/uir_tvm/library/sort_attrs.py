# SPDX-License-Identifier: Apache-2.0
"""The attributes of sorts, and what they mean in NumPy."""

from __future__ import annotations

import json
from typing import Any

import attrs
import numpy as np

from ..sizes.open_arithmetic import structure
from .open_attrs import OpenAttrs, not_below

_SIZE = not_below(0, "correct the shapes")


@attrs.frozen(kw_only=True)
class SortAttrs(OpenAttrs):
    """The first of the sorted elements along an axis: ``(x, attributes, [values], [indices])``.

    Equal elements keep their order; NaN is the largest number, and -0 equals 0.

    Parameters
    ----------
    outer, length, inner : int
        x as three dimensions, of which the middle one is sorted; numbers or open sizes (`open_attrs`).
    count : int
        How many of the sorted elements, at most `length`.
    descending : bool
    values, indices : bool
        Which results there are: elements, and their places along the axis.
    """

    outer: int = attrs.field(eq=structure, validator=_SIZE)
    length: int = attrs.field(eq=structure, validator=_SIZE)
    inner: int = attrs.field(eq=structure, validator=_SIZE)
    count: int = attrs.field(eq=structure, validator=_SIZE)
    descending: bool = False
    values: bool = True
    indices: bool = True

    @classmethod
    def from_json(cls, text: str) -> SortAttrs:
        """The attributes that `to_json` wrote."""
        return cls(**json.loads(text))


def sort_reference(attributes: SortAttrs, x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """`uir.library.cpu.sort` in NumPy: values and int64 indices, [outer, count, inner]."""
    given = x.reshape(attributes.outer, attributes.length, attributes.inner)
    # turned around before and after, a descending order is a stable ascending one
    turned = given[:, ::-1] if attributes.descending else given
    if x.dtype.isbuiltin != 1:
        turned = turned.astype(np.float32)  # NumPy leaves rows of others that hold a NaN in any order
    places = np.argsort(turned, axis=1, kind="stable")
    if attributes.descending:
        places = attributes.length - 1 - places[:, ::-1]
    places = places[:, : attributes.count]
    return np.take_along_axis(given, places, 1), places
