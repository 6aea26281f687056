# SPDX-License-Identifier: Apache-2.0
"""Distant runs: what no cache holds is walked in several parts at once, some bytes of each in turn.

Memory is read ahead page by page. A unit that walks four distant parts of its share has four pages open, and
the prefetchers of each are at work; one part alone waits at the end of every page.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import tvm
from tvm.s_tir import Schedule

from ..hardware.last_cache import last_cache_bytes
from ..igraph import HardwareModel
from .blocks import BlockInfo, dtype_bytes
from .representative import is_open, usual_elements
from .tile_facts import busy_units, space_of

#: Of several operands as many pages are open already: runs of two made a sum slower by 5 % on Zen 3.
MOST_OPERANDS = 1.5


@attrs.frozen
class DistantRuns:
    """How a block is walked.

    Attributes
    ----------
    place : int
        The dimension that is cut.
    units, runs, length : int
        Into the parts of units, the runs of each, and what follows each other in a run.
    columns : int
        Elements that are taken of a run in turn.
    rows, tiles : int
        Of the block, as `row_chain.map_chain` numbers them.
    """

    place: int
    units: int
    runs: int
    length: int
    columns: int
    rows: int
    tiles: int

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.runs, self.columns


def _operands(block: BlockInfo) -> float:
    """Elements that are read for each of the result, each operand no more than once."""
    total = math.prod(block.spatial)
    return sum(min(usual_elements(read.source), total) for read in block.stmt.reads) / total


def distant_runs(block: BlockInfo, hw: HardwareModel, flat: bool) -> DistantRuns | None:
    """The runs of a block with one result; None where it stays in the last cache, or has no such parts.

    Parameters
    ----------
    flat : bool
        Whether all of it is one run of elements; otherwise rows are whole lines, and columns are kept.
    """
    space, cache = space_of(hw), last_cache_bytes(hw)
    extents = block.spatial
    if space.runs < 2 or cache is None or len(block.stmt.writes) != 1 or any(map(is_open, extents)):
        return None
    made = dtype_bytes(block.stmt.writes[0].source.ty.dtype)
    if math.prod(extents) * made <= cache or _operands(block) > MOST_OPERANDS:
        return None
    line = int(hw.figures.get("line_bytes", hw.vector_bytes)) // made
    width = max(dtype_bytes(r.source.ty.dtype) for r in (*block.stmt.reads, *block.stmt.writes))
    most, parts = space.run_bytes // width, busy_units(hw) * space.runs
    place = next((k for k, extent in enumerate(extents) if extent > 1), 0)
    if extents[place] % parts:
        return None
    length = extents[place] // parts
    columns = length * math.prod(extents[place + 1 :]) if flat else extents[-1]
    taken = next((c for c in range(most // line * line, most // 2 - 1, -line) if c and columns % c == 0), 0)
    if not taken or (not flat and place == len(extents) - 1):
        return None
    rows = parts if flat else math.prod(extents[:-1])
    tiles = rows // space.runs * (columns // taken)
    return DistantRuns(place, busy_units(hw), space.runs, length, taken, rows, tiles)


def walk_distant_runs(sch: Schedule, block: BlockInfo, apart: DistantRuns) -> None:
    """Let the runs of a unit be the last rows.

    Before, where rows are not flat::

        for i, j, k in grid(N, M, c): result[i, j, k] = operand[i, j, k]

    After::

        for u, q, j, s, k in grid(units, length, M, runs, c): the same, with i = (u * runs + s) * length + q

    A flat run of elements is cut where it is numbered: its rows are units and runs.
    """
    if apart.rows == apart.units * apart.runs:
        return
    place, runs, length = apart.place, apart.runs, apart.length

    def moved(*index: Any) -> list[Any]:
        at = index[place]
        unit, within = at // (runs * length), at % length
        return [*index[:place], unit, within, *index[place + 1 : -1], at // length % runs, index[-1]]

    sch.transform_block_layout(block.rv, tvm.tirx.IndexMap.from_func(moved, ndim=len(block.spatial)))
