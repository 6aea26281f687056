# SPDX-License-Identifier: Apache-2.0
"""How faults are told: iOps and slices as the text format writes them, witnesses in reading order."""

from __future__ import annotations

from collections.abc import Mapping

from ..igraph.iops import mnemonic
from ..igraph.nodes import IOp, ISlice
from .region import Axis, Region


def range_text(axis: Axis) -> str:
    """``begin:end`` of an axis."""
    begin = "max(" + ", ".join(map(str, axis.lower)) + ")" if len(axis.lower) > 1 else "".join(map(str, axis.lower))
    end = "min(" + ", ".join(map(str, axis.upper)) + ")" if len(axis.upper) > 1 else "".join(map(str, axis.upper))
    return f"{begin or 0}:{end or axis.extent}"


def slice_text(piece: ISlice) -> str:
    """``a[offset; (rows, cols); (strides)]`` with the valid ranges that are there."""
    parts = [str(piece.offset), f"({piece.rows},{piece.cols})", f"({piece.row_stride},{piece.col_stride})"]
    for word, begin, end in (
        ("rows", piece.row_begin, piece.row_end),
        ("cols", piece.col_begin, piece.col_end),
    ):
        if begin is not None or end is not None:
            parts.append(f"{word} {'' if begin is None else begin}:{'' if end is None else end}")
    return f"{piece.pointer.name}[{'; '.join(parts)}]"


def iop_text(iop: IOp) -> str:
    """The iOp on one line, without its attributes."""
    return f"{mnemonic(iop)} " + ", ".join(slice_text(s) for s in (*iop.targets, *iop.sources))


def safe_iop_text(iop: IOp) -> str:
    """As `iop_text`, also of an iOp that no row of the table fits."""
    try:
        return iop_text(iop)
    except (KeyError, IndexError, AttributeError):
        return f"{iop.op}.{iop.name} " + ", ".join(slice_text(s) for s in (*iop.targets, *iop.sources))


def where(iop: IOp, piece: ISlice) -> str:
    """The slice at fault and the iOp that it stands in."""
    return f"{slice_text(piece)} in `{iop_text(iop)}`"


def witness_of(region: Region, values: Mapping[str, int]) -> dict[str, int]:
    """pid, every loop variable (0 where it does not matter), row and column."""
    return {v: int(values.get(v, 0)) for v in (*region.extents, "row", "col")}
