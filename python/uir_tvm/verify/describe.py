# SPDX-License-Identifier: Apache-2.0
"""How faults are told: where they are, the ranges at issue, witnesses in reading order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..igraph.affine import Affine
from ..igraph.nodes import IOp, ISlice
from ..igraph.text import print_iop, print_slice
from . import isl
from .decide import MAX_POINTS
from .region import Axis, Region
from .sized_launch import SizedLaunch


def range_text(axis: Axis) -> str:
    """``begin:end`` of an axis."""

    def one(word: str, bounds: Sequence[Affine], default: int) -> str:
        listed = ", ".join(map(str, bounds)) or str(default)
        return f"{word}({listed})" if len(bounds) > 1 else listed

    return f"{one('max', axis.lower, 0)}:{one('min', axis.upper, axis.extent)}"


def where(iop: IOp, piece: ISlice) -> str:
    """The iOp at fault and the slice of it."""
    return f"{print_iop(iop)}, slice {print_slice(piece)}"


def witness_of(region: Region, values: Mapping[str, int]) -> dict[str, int]:
    """pid, every loop variable (0 where it does not matter), row and column."""
    return {v: int(values.get(v, 0)) for v in (*region.extents, "row", "col")}


def for_all(launch: SizedLaunch) -> str:
    """``, for all n``: what a proof holds for beside pid and loops; nothing where there are no sizes."""
    return "" if launch.static else f", for all {', '.join(launch.names)}"


def budget(launch: SizedLaunch) -> str:
    """The effort after which a question is refused."""
    operations = f"{isl.MAX_OPERATIONS} operations of isl"
    return f"{MAX_POINTS} by enumeration, {operations}" if launch.static else operations
