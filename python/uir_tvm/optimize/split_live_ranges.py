# SPDX-License-Identifier: Apache-2.0
"""What a pipelined loop loads and what it stores get pointers of their own.

Before::

    for k in 8 [pipeline=2] {
      move t, a[k];  unary.exp u, t;  move t, b[k];  binary.mul t, u, t;  move c[k], t
    }

After::

    for k in 8 [pipeline=2] {
      move t, a[k];  unary.exp u, t;  move t_1, b[k];  binary.mul t_2, u, t_1;  move c[k], t_2
    }

A temporary that serves in turn for an operand, another operand and the result ties them together: the second
load waits until the first operand is used, and no load can run ahead of the store before it.  Where pipes run
at the same time that costs more than the memory saves, and the memory is not even saved: addresses are
given by what is alive (`allocate`).

Exact: values are told apart by which writes each read may see (`reaching_definitions`), and a read keeps
all of its writes in one pointer.  As long as the loop still fits with a place for every iteration in flight.
"""

from __future__ import annotations

from ..errors import PassError
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp
from . import multibuffer
from .figures import peak_bytes
from .flow import flow_of
from .webs import Web, webs_of, with_pointers


def run(graph: IGraph) -> IGraph:
    """The graph with values parted; ``graph`` itself where there is nothing to part, or no room."""
    moved = {
        position
        for position, (iop, loops) in enumerate(graph.walk())
        if _is_transfer(iop) and any(multibuffer.PIPELINE in loop.attrs for loop in loops)
    }
    if not moved:
        return graph
    parted = _parted(graph, moved)
    every = with_pointers(graph, parted)
    if every is graph or _has_room(every):
        return every
    kept: list[Web] = []
    for value in parted:
        if _has_room(with_pointers(graph, [*kept, value])):
            kept.append(value)
    return with_pointers(graph, kept)


def _is_transfer(iop: IOp) -> bool:
    """Whether an iOp loads from dram, or stores there."""
    if not spec_of(iop).touches:
        return False
    levels = [str(piece.pointer.level) for piece in iop.slices()]
    return iop.op in ("move", "gather") and "dram" in levels and "reg" in levels


def _has_room(graph: IGraph) -> bool:
    """Whether a graph fits once its loops have stages; the hardware model may keep room for other things."""
    try:
        made = multibuffer.run(graph)
    except PassError:
        return False
    return peak_bytes(made, "reg") <= int(graph.hardware.figures.get("tile_bytes", graph.hardware.reg_bytes))


def _parted(graph: IGraph, moved: set[int]) -> list[Web]:
    """The values that get pointers of their own; of a pointer that holds no others one keeps its name."""
    flow = flow_of(graph)
    out: list[Web] = []
    for pointer in graph.pointers:
        if str(pointer.level) != "reg":
            continue
        values = webs_of(flow, str(pointer.name))
        chosen = [value for value in values if moved & value.positions]
        out += chosen if len(chosen) < len(values) else chosen[1:]
    return out
