# SPDX-License-Identifier: Apache-2.0
"""The NumPy meaning of every iOp on the boxes it touches.

An ``iop`` here is an `IOp`, or the interpreter's bound form of one, which has the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from .affine import Affine
from .domain import VALUES, Values
from .iops_reads import Box, gathers_rows, scatters_rows
from .iops_scalar import BINARY, COMPARE, REDUCE, UNARY


@attrs.frozen
class ValidBoxes:
    """Where an iOp works in one unit and iteration.

    Parameters
    ----------
    env : Mapping[str, int]
        Values of pid and the loop variables.
    target : Box
        The target's valid box.
    sources : Sequence[Box]
        The box of each source that the arrays hold.
    domain : Values
        What the arrays hold, and what arithmetic does to it.
    """

    env: Mapping[str, int]
    target: Box
    sources: Sequence[Box]
    domain: Values = VALUES


def extent(box: Box) -> tuple[int, int]:
    """Rows and columns of a box."""
    return max(box[1] - box[0], 0), max(box[3] - box[2], 0)


def meet(a: Box, b: Box) -> Box:
    """The box that two boxes share (empty, but well formed, where they do not meet)."""
    r0, r1, c0, c1 = max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), min(a[3], b[3])
    return (r0, max(r0, r1), c0, max(c0, c1))


def _filled(region: ValidBoxes, value: Any, dtype: str) -> np.ndarray:
    return np.full(extent(region.target), region.domain.constant(value, dtype))


def move(iop: Any, region: ValidBoxes, s: np.ndarray) -> np.ndarray:
    """t = s, and pad where the target's box exceeds the source's."""
    if "pad" not in iop.attrs or region.sources[0] == region.target:
        return s
    out = _filled(region, iop.attrs["pad"], iop.dtype)
    (r0, r1, c0, c1), (tr, _, tc, _) = region.sources[0], region.target
    out[r0 - tr : r1 - tr, c0 - tc : c1 - tc] = s
    return out


def unary(iop: Any, region: ValidBoxes, s: np.ndarray) -> np.ndarray:
    """t = f(s, params)."""
    return region.domain.evaluate(UNARY[iop.name], iop.dtype, [s], iop.attrs.get("params", ()))


def binary(iop: Any, region: ValidBoxes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """t = f(a, b)."""
    return region.domain.evaluate(BINARY[iop.name], iop.dtype, [a, b])


def compare(iop: Any, region: ValidBoxes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """t = whether the comparison holds."""
    return region.domain.evaluate(COMPARE[iop.name], iop.dtype, [a, b])


def select(iop: Any, region: ValidBoxes, mask: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """t = mask ? a : b."""
    return np.where(mask, a, b)


def broadcast(iop: Any, region: ValidBoxes, s: np.ndarray) -> np.ndarray:
    """The column (row) s, repeated over the target's box."""
    shape = extent(region.target)
    return np.broadcast_to(s, shape) if s.size else np.empty(shape, s.dtype)


def reduce(iop: Any, region: ValidBoxes, s: np.ndarray) -> np.ndarray:
    """Reduce along the axis; rows (columns) of the target without source get the identity."""
    by_row = iop.attrs["axis"] == "row"
    result = region.domain.reduce(REDUCE[iop.name], iop.dtype, s, 1 if by_row else 0)
    if result.shape == extent(region.target):
        return result
    out = _filled(region, REDUCE[iop.name].identity(iop.dtype), iop.dtype)
    at = 0 if by_row else 2
    begin = region.sources[0][at] - region.target[at]
    along = slice(begin, begin + result.shape[0 if by_row else 1])
    out[(along, slice(None)) if by_row else (slice(None), along)] = result
    return out


def fill(iop: Any, region: ValidBoxes) -> np.ndarray:
    """t = value."""
    return _filled(region, iop.attrs["value"], iop.dtype)


def iota(iop: Any, region: ValidBoxes) -> np.ndarray:
    """t[i,j] = base + i*row_step + j*col_step, in int64 and then converted."""
    base = iop.attrs.get("base", 0)
    start = base.evaluate(region.env) if isinstance(base, Affine) else int(base)
    r0, r1, c0, c1 = region.target
    rows = np.arange(r0, r1, dtype=np.int64)[:, None] * iop.attrs.get("row_step", 0)
    cols = np.arange(c0, c1, dtype=np.int64)[None, :] * iop.attrs.get("col_step", 1)
    return region.domain.whole(start + rows + cols, iop.dtype)


def transpose(iop: Any, region: ValidBoxes, s: np.ndarray) -> np.ndarray:
    """t[i,j] = s[j,i]."""
    return s.T


def gather(iop: Any, region: ValidBoxes, s: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Rows or elements of the table; pad where the index names no valid row."""
    begin, end = region.sources[0][:2]
    inside = (index >= begin) & (index < end)
    pad = region.domain.constant(iop.attrs.get("pad", 0), iop.dtype)
    if not len(s):
        return np.full(extent(region.target), pad) if index.size else np.empty(extent(region.target), s.dtype)
    at = np.where(inside, index, begin).astype(np.int64) - begin
    values = s[at[:, 0]] if gathers_rows(iop) else s[:, 0][at]
    return np.where(inside, values, pad)


def scatter(
    iop: Any, region: ValidBoxes, s: np.ndarray, index: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, columns, values), flat, in the source's row-major order: of equal places the last holds."""
    r0, r1, c0, c1 = region.target
    if scatters_rows(iop):
        cols = np.broadcast_to(np.arange(s.shape[1]) + region.sources[0][2], s.shape)
    else:
        cols = np.zeros(s.shape, np.int64)
    rows = np.broadcast_to(index, s.shape).astype(np.int64)
    inside = (rows >= r0) & (rows < r1) & (cols >= c0) & (cols < c1)
    return rows[inside], cols[inside], s[inside]


def contract(
    iop: Any, region: ValidBoxes, a: np.ndarray, b: np.ndarray, old: np.ndarray | None = None
) -> np.ndarray:
    """a.b (+ old)."""
    return region.domain.contract(iop.dtype, a, b, old)


def cast(iop: Any, region: ValidBoxes, s: np.ndarray) -> np.ndarray:
    """Convert from the dtype that the iOp's name says (see `domain.Values.cast`)."""
    return region.domain.cast(iop.name, iop.dtype, iop.attrs.get("round"), s)
