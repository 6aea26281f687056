# SPDX-License-Identifier: Apache-2.0
"""Alignment: what a move says of it (`align`, in bytes) is true for every pid and iteration.

Of both slices, the first element of every row must lie at a multiple of that many bytes from the start of
its pointer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
import numpy as np

from ..errors import VerifyError
from ..igraph import points
from ..igraph.affine import affine
from ..igraph.dtypes import bytes_of
from ..igraph.nodes import ISlice
from . import isl
from .access import GraphFacts
from .describe import where
from .region import Axis, Region


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every move that states more than is so."""
    for step in facts.steps:
        stated = step.iop.attrs.get("align")
        if stated is None:
            continue
        for _, piece, region in step.operands:
            known = proved(piece, step.known)
            if stated < 1 or known % stated:
                size = bytes_of(str(piece.pointer.dtype))
                yield VerifyError(
                    f"A move says that the rows of '{piece.pointer.name}' are aligned to {stated} bytes.",
                    rule="alignment",
                    pointer=str(piece.pointer.name),
                    where=where(step.iop, piece),
                    witness=_witness(piece, region, stated),
                    need="a multiple of it at the first element of every row, for every pid and iteration",
                    limit=f"proved are {known} bytes" if known else f"one element has {size} bytes",
                    remedy=f"state align={_power_of_two(known)}, or leave it out"
                    if known
                    else "leave it out",
                )


def proved(piece: ISlice, variables: points.Variables) -> int:
    """The greatest number of bytes that divides where rows of a slice start, from the pointer's start.

    It is exact, but for offsets with floor or mod terms over more than `points.FEW_POINTS` values, or over
    sizes: there it may be a divisor of the greatest.  A slice whose rows all start at the pointer's start
    has 0.
    """
    size = bytes_of(str(piece.pointer.dtype))
    rows = points.divisor(affine(piece.stride[0]), variables) if piece.rows > 1 else 0
    return size * math.gcd(points.divisor(piece.offset, variables), rows)


def _witness(piece: ISlice, region: Region, stated: int) -> dict[str, int]:
    """Sizes, pid, loop variables and row of a first element that is not aligned; empty where none is
    known.
    """
    size = bytes_of(str(piece.pointer.dtype))
    if stated < 1:
        return {}
    sizes = {} if region.launch.static else _sizes(region, size, stated)
    if sizes is None:
        return {}
    offset, extents = piece.offset.substitute(sizes), region.at(sizes).extents
    offsets = points.values(offset, extents)
    if offsets is None:
        return sizes
    names, stride = offset.variables(), affine(piece.stride[0]).evaluate(sizes)
    for row in range(min(int(piece.rows), max(stated, 1))):
        wrong = (offsets + row * stride) * size % stated != 0
        if wrong.any():
            at = np.unravel_index(int(wrong.argmax()), wrong.shape)
            found = dict(zip(names, map(int, at), strict=True))
            return {**sizes, **{v: found.get(v, 0) for v in extents}, "row": row, "col": 0}
    return sizes


def _sizes(region: Region, size: int, stated: int) -> dict[str, int] | None:
    """The least sizes at which some row is not aligned."""
    names = isl.IslNames(region)
    rows = attrs.evolve(region.rows, lower=(), upper=())
    whole = attrs.evolve(region, rows=rows, cols=Axis(1, 1))

    def least() -> dict[str, int] | None:
        if len(at := isl.place(whole, names)) > 1:
            return None  # where rows start is a product of sizes
        found = isl.points(whole, whole.used, f"({size}*({at[0]})) mod {stated} > 0")
        return None if found.is_empty() else isl.least_sizes(found, region.launch)

    try:
        return isl.bounded(least)
    except isl.Exhausted:
        return None


def _power_of_two(value: int) -> int:
    return value & -value


__all__ = ["check", "proved"]
