# SPDX-License-Identifier: Apache-2.0
"""Right operands of products lie in reg as they lie in memory: by columns where their columns are runs there.

Before::

    move.dram.reg b[0; (16,8); (8,1)], w[0; (16,8); (1,16)]
    contract c, a, b[0; (16,8); (8,1)]

After::

    move.dram.reg b[0; (16,8); (1,16)], w[0; (16,8); (1,16)]
    contract c, a, b[0; (16,8); (1,16)]

A move that exchanges rows and columns goes element by element, or turns the tile on the way; a matrix unit
that takes its right operand by columns turns it back then.

Exact: a tile has the same elements under the same rows and columns, and nothing but moves that write all of
it and products that read all of it knows where in reg each of them is.
"""

from __future__ import annotations

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, ISlice
from ..verify.access import Access
from .edit import Change, edited, with_slices
from .flow import facts_of
from .slices import place


def run(graph: IGraph) -> IGraph:
    """The graph with such tiles by columns; itself where there are none."""
    facts = facts_of(graph)
    found: dict[int, dict[str, ISlice]] = {}
    for pointer in graph.pointers:
        accesses = facts.by_pointer.get(str(pointer.name), [])
        if str(pointer.level) == "reg" and accesses and _may_turn(accesses):
            for access in accesses:
                found.setdefault(access.position, {})[str(access.operand)] = _turned(access.slice)
    changes: dict[int, Change] = {
        step.position: with_slices(step.iop, found[step.position])
        for step in facts.steps
        if step.position in found
    }
    return edited(graph, changes)


def _may_turn(accesses: list[Access]) -> bool:
    """Whether a dense tile of columns that are runs in memory is the right operand of products alone."""
    piece = accesses[0].slice
    rows, cols = int(piece.rows), int(piece.cols)
    dense = rows > 1 and cols > 1 and piece.stride == (cols, 1)
    return (
        dense
        and {access.kind for access in accesses} == {"read", "write"}
        and all(place(access.slice) == place(piece) for access in accesses)
        and all(_loads(access) if access.kind == "write" else _multiplies(access) for access in accesses)
    )


def _loads(access: Access) -> bool:
    """Whether an iOp moves columns that are runs."""
    if not spec_of(access.iop).copies:
        return False
    source = access.iop.sources[0]
    return str(source.pointer.level) != "reg" and source.row_stride == 1 and source.col_stride > 1


def _multiplies(access: Access) -> bool:
    return spec_of(access.iop).is_product and str(access.operand) == "source1"


def _turned(piece: ISlice) -> ISlice:
    """The same tile with its columns as runs."""
    return piece.replace(stride=(1, int(piece.rows)))
