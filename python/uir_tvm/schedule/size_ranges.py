# SPDX-License-Identifier: Apache-2.0
"""For which parts of its sizes a kernel may have variants, by what a kind of hardware says.

A schedule is made for the greatest row and for a usual number of them.  Shorter rows then compute with
columns that are not there, and fewer rows do not fill all units: these are other schedules of one function.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from tvm import tirx

from ..igraph import HardwareModel
from ..igraph.space import Size
from ..igraph.tir_sizes import sizes_of
from ..target_facts import Facts
from .begin import begin
from .representative import inner_sizes


@attrs.frozen
class SizeRanges:
    """The borders of one kind of hardware, ascending.

    Parameters
    ----------
    rows : tuple of int
        Numbers of rows up to which there may be a variant, where a kernel's rows all have one length.
    lengths : tuple of int
        Lengths of rows up to which there may be one.
    rows_by_length : tuple of int
        In the place of ``rows`` where lengths are open too.
    most : int
        Most variants of a kernel.
    gain : float
        How many times as long the kernel that would run otherwise must take, by the model.
    whole_tiles : bool
        Whether instructions compute with whole tiles, of which the ends of short rows are not there.
    """

    rows: tuple[int, ...]
    lengths: tuple[int, ...]
    rows_by_length: tuple[int, ...]
    most: int = 8
    gain: float = 1.05
    whole_tiles: bool = True


#: Kind of hardware -> its borders (`uir_tvm.target.record`).
SIZE_RANGES: Mapping[str, SizeRanges] = Facts("size_ranges")


def size_ranges(func: tirx.PrimFunc, hw: HardwareModel, space: SizeRanges) -> list[tuple[Size, ...]]:
    """Parts of a function's sizes, each within all that come after it where it meets them.

    They are of the sizes that recipes see: of products where dimensions are walked together.  A part has the
    least values of the whole: a launch takes the first part that a call lies in.  Of several lengths (a
    transpose) the last is one, the first stands for rows.

    Parameters
    ----------
    func : PrimFunc
        With open sizes.
    hw : HardwareModel
    space : SizeRanges
        Which borders are worth trying.
    """
    begun = begin(func, hw)
    known, inner = sizes_of(begun), inner_sizes(begun)
    lengths = [size for variable, size in known.items() if variable in inner]
    others, last = lengths[:-1], (lengths[-1] if lengths else None)
    rows = [*(size for variable, size in known.items() if variable not in inner), *others]
    longest = [] if last is None else _up_to(last, space.lengths)
    most = _up_to(rows[0], space.rows if last is None else space.rows_by_length) if rows else []
    parts: list[tuple[Size, ...]] = []
    for length in (*longest, None):
        for count in (*most, None):
            part = tuple(size for size in (length, count) if size is not None)
            if part:
                parts.append(part)
    return parts


def tile_sizes(func: tirx.PrimFunc, hw: HardwareModel) -> set[str]:
    """The sizes of whose bounds tiles are: another bound makes another kernel of the same schedule.

    Parameters
    ----------
    func : PrimFunc
        With open sizes.
    hw : HardwareModel
    """
    begun = begin(func, hw)
    inner = inner_sizes(begun)
    return {str(size.name) for variable, size in sizes_of(begun).items() if variable in inner}


def _up_to(size: Size, borders: tuple[int, ...]) -> list[Size]:
    """The size up to each border that it may exceed."""
    step, low = int(size.multiple_of), int(size.low)
    least = max(-(-low // step) * step, step)
    highs = dict.fromkeys(border // step * step for border in borders)
    return [Size(str(size.name), low, high, step) for high in highs if least <= high < size.high]
