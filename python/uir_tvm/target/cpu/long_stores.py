# SPDX-License-Identifier: Apache-2.0
"""Rows that are no whole vectors, stored past the caches as one long row.

Rows of 130 elements begin anywhere in a vector, and stores past the caches are of whole vectors.  Where the
rows of a tile follow each other in the result they are one long row, which is streamed from its first whole
line on (`stream.begins_anywhere`); the tile is put together in the first cache before.  Not where registers
do (`row_lines`).
"""

from __future__ import annotations

from ...igraph.dtypes import bytes_of
from ...igraph.nodes import IGraph, IOp, map_iops
from ...optimize.coalesce_moves import reshaped
from .actions import action_of
from .llvm_text import LlvmText
from .row_lines import only_elements, shared_line
from .stream import LEAST_RAGGED, Streams


def long_stores(graph: IGraph) -> IGraph:
    """A graph whose large results are stored by long rows where their own rows are no whole vectors.

    Before::

        move.reg.dram o[1690*i; (13,130); (130,1)], t[0; (13,130); (130,1)]

    After::

        move.reg.dram o[1690*i; (1,1690); (1690,1)], t[0; (1,1690); (1690,1)]
    """
    streams = Streams(graph, LlvmText())
    if not streams.possible or streams.cache is None:
        return graph

    in_registers = only_elements(graph)

    def longer(iop: IOp) -> IOp:
        if iop.op != "move" or iop.target.pointer.dims or iop.target.pointer.level != "dram":
            return iop
        if iop.sources[0].pointer.level == "dram":  # nothing holds the tile
            return iop
        lanes = streams.width // bytes_of(iop.target.pointer.dtype)
        if iop.target.rows == 1 or iop.target.cols % lanes == 0:
            return iop
        if in_registers and shared_line(iop.target.cols, lanes):
            return iop
        made = reshaped(iop)
        action = action_of(made)
        if made.target.rows > 1 or made.target.cols < LEAST_RAGGED * lanes or action is None:
            return iop
        return made if streams.wanted(action, 1, lanes) else iop

    return graph.replace(body=map_iops(graph.body, longer))
