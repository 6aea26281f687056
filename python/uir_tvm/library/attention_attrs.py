# SPDX-License-Identifier: Apache-2.0
"""The attributes of attention as a library operator."""

from __future__ import annotations

import json

import attrs

from ..sizes.open_arithmetic import structure
from .open_attrs import OpenAttrs, OperandLayout, not_below, sizes

_SIZE = not_below(0, "correct the shapes")


@attrs.frozen(kw_only=True)
class AttentionAttrs(OpenAttrs):
    """``(query, key, value, [mask]) -> out``: softmax(scale * query @ key^T + mask) @ value, in float32.

    Tensors are of float32, float16 or bfloat16, each of a type of its own, keys and values of the same.
    Where the mask is -inf at the beginning or at the end of a row, keys and values are not read; nor are
    those that the band closes.

    Parameters
    ----------
    batch : tuple of int
        Those that keys and values repeat (stride 0) are rows that share them.
    m, n, d, e : int
        Queries, keys, numbers of a query and of a value; batch, m and n may be open (`open_attrs`).
    query, key, value, mask, out : OperandLayout
        `len(batch) + 2` strides each: [m, d], [n, d], [n, e], [m, n] and [m, e], whose last stride is 1.
    scale : float
    masked : bool
    safe : bool
        Whether a row without an open key gives zeros; else it gives NaN.
    first, last : int, optional
        The band: key j is open to query i where ``first <= j - i <= last``; None is no bound.
    """

    batch: tuple[int, ...] = attrs.field(converter=sizes, eq=structure, default=(), validator=_SIZE)
    m: int = attrs.field(eq=structure, validator=_SIZE)
    n: int = attrs.field(eq=structure, validator=_SIZE)
    d: int = attrs.field(eq=structure, validator=_SIZE)
    e: int = attrs.field(eq=structure, validator=_SIZE)
    query: OperandLayout
    key: OperandLayout
    value: OperandLayout
    mask: OperandLayout
    out: OperandLayout
    scale: float = 1.0
    masked: bool = False
    safe: bool = False
    first: int | None = None
    last: int | None = None

    @classmethod
    def from_json(cls, text: str) -> AttentionAttrs:
        """The attributes that `to_json` wrote."""
        fields = json.loads(text)
        for name in ("query", "key", "value", "mask", "out"):
            offset, strides = fields[name]
            fields[name] = OperandLayout(strides, offset)
        return cls(**fields)
