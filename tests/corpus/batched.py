# SPDX-License-Identifier: Apache-2.0
"""A static graph as one with a size: the same once for each of n inputs, all at once."""

from __future__ import annotations

from typing import Any

from uir_tvm.igraph import Affine, IGraph, IOp, IPointer, ISlice, Loop, affine, var
from uir_tvm.igraph.rewrite import map_slices, substituted
from uir_tvm.igraph.sizes import dram
from uir_tvm.igraph.space import Size, Space


def batched(graph: IGraph, n: Size | None = None) -> IGraph:
    """A graph that does for n inputs, one after the other in memory, what a static graph does for one.

    Every input has as many groups as the graph had.  Alignments that moves state are left out.
    """
    size = Size("n", 1, 1000) if n is None else n
    units = int(graph.num_parallel)
    pointers = {
        str(p.name): dram(str(p.name), str(p.dtype), [size.expr, int(p.size)], [size], str(p.role))
        if p.level == "dram"
        else p
        for p in graph.pointers
    }
    space = Space({"pid": units * int(size.high), **_loops(graph)})

    def placed(piece: ISlice) -> ISlice:
        pointer: IPointer = pointers[str(piece.pointer.name)]
        if pointer.level != "dram":
            return piece
        first = (var("pid") // units) * int(piece.pointer.size)
        return piece.replace(pointer=pointer, offset=piece.offset + first)

    def node_of(node: Any) -> Loop | IOp:
        if isinstance(node, Loop):
            return Loop(node.var, node.extent, [node_of(child) for child in node.body], node.attrs)
        moved = map_slices(node, placed)
        rest = {key: value for key, value in moved.attrs.items() if key != "align"}
        return IOp(moved.op, moved.name, moved.dtype, moved.targets, moved.sources, rest)

    own: Affine = space.mod(var("pid"), units) if units > 1 else affine(0)
    body = [node_of(substituted(node, {"pid": own})) for node in graph.body]
    groups = size.expr * int(graph.num_groups)
    greatest = int(size.high) * int(graph.num_groups)
    return graph.replace(
        num_groups=greatest, pointers=list(pointers.values()), body=body, sizes=[size], groups=groups
    )


def _loops(graph: IGraph) -> dict[str, int]:
    return {str(loop.var): int(loop.extent) for _, loops in graph.walk() for loop in loops}
