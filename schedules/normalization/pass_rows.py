# SPDX-License-Identifier: Apache-2.0
"""Rows of a tile where each pass over a row of exponentials waits for the one before it.

The maximum of a row, its exponentials with their sum, and the division wait for each other.  A processor that
goes over all rows of a tile in each pass has the next row to do meanwhile, if its first cache holds them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from uir_tvm.hardware.last_cache import last_cache_bytes
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import BlockInfo, dtype_bytes
from uir_tvm.schedule.row_chain import chunk_elements, tile_elements
from uir_tvm.schedule.tile_facts import space_of


def pass_elements(
    hw: HardwareModel, blocks: Sequence[BlockInfo], parameters: set[str], rows: int, cols: int
) -> int:
    """Elements of a tile of rows: what the first cache holds of a row of exponentials, else the usual ones.

    That is where one operand is read, and it and the result stay in the last cache: of two operands a tile of
    several rows has too many lines, and what comes from memory is waited for in any order.

    Parameters
    ----------
    parameters : set of str
        Buffers that the caller owns.
    """
    usual = tile_elements(hw, blocks)
    if not space_of(hw).short_row < cols <= int(hw.figures.get("pass_columns", 0)):
        return usual
    regions = [region.source for block in blocks for region in (*block.stmt.reads, *block.stmt.writes)]
    widest = max(dtype_bytes(source.ty.dtype) for source in regions)
    operands = {name for block in blocks for name in block.reads} & parameters
    dear = any(block.is_expensive and block.size == rows * cols for block in blocks)
    passes = sum(block.is_reduction for block in blocks)
    if not dear or passes < 2 or len(operands) != 1 or rows * cols * widest > (last_cache_bytes(hw) or 0):
        return usual
    first = int(hw.figures["l1_bytes"]) // int(hw.figures["tile_bytes"])
    return max(usual, first * chunk_elements(hw, blocks, rows))
