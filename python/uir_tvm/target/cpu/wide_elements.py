# SPDX-License-Identifier: Apache-2.0
"""Rows of 2, 4 or 8 bytes that are moved one element after another, as one element of so many bytes.

Before, of elements of 4 bytes::

    for k in 2 {
      move.dram.reg.fp32 t[0; (16,64); (64,1)], x[3712*i + k; (16,64); (2,116)]
      move.reg.dram.fp32 o[128*i + k; (16,64); (1568,2)], t[0; (16,64); (64,1)]
    }

After, and x, o and t have half of the elements that they had, or as many, of 8 bytes::

    move.dram.reg.int64 t[0; (16,64); (64,1)], x[1856*i; (16,64); (1,58)]
    move.reg.dram.int64 o[64*i; (16,64); (784,1)], t[0; (16,64); (64,1)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...igraph.affine import Affine, affine
from ...igraph.dtypes import bytes_of
from ...igraph.nodes import IGraph, IOp, IPointer, ISlice, Loop

#: By bytes, what moves so many.
MOVED_AS = {2: "int16", 4: "int32", 8: "int64"}


class _OtherError(Exception):
    """Something else is done than rows moved element by element."""


def wide_elements(graph: IGraph) -> IGraph:
    """The graph with whole rows as elements, where it only moves such rows; otherwise ``graph``."""
    around = {(loop.var, loop.extent) for _, loops in graph.walk() for loop in loops[-1:]}
    extents = {extent for _, extent in around}
    sizes = {bytes_of(pointer.dtype) for pointer in graph.pointers}
    if len(extents) != 1 or len(sizes) != 1 or graph.sizes or any(p.dims for p in graph.pointers):
        return graph
    elements, size = extents.pop(), sizes.pop()
    kind = MOVED_AS.get(elements * size)
    if kind is None or elements == 1:
        return graph
    rows = _Rows(elements, kind, graph.pointers)
    try:
        body = rows.body(graph.body)
    except _OtherError:
        return graph
    return graph.replace(body=body, pointers=list(rows.pointers.values()))


class _Rows:
    """One rewriting: rows of so many elements become elements of an iGraph dtype."""

    def __init__(self, elements: int, kind: str, pointers: Sequence[IPointer]) -> None:
        self.elements, self.kind = elements, kind
        self.pointers = {str(p.name): self._pointer(p) for p in pointers}

    def _pointer(self, pointer: IPointer) -> IPointer:
        size = -(-pointer.size // self.elements) if pointer.level == "dram" else pointer.size
        return IPointer(pointer.name, pointer.level, self.kind, size, pointer.role)

    def body(self, nodes: Sequence[Any]) -> list[Any]:
        """A loop tree without the innermost loops."""
        out: list[Any] = []
        for node in nodes:
            if not isinstance(node, Loop):
                raise _OtherError
            if any(isinstance(inner, Loop) for inner in node.body):
                out.append(Loop(node.var, node.extent, self.body(node.body), node.attrs))
            else:
                out += [self._moved(iop, str(node.var)) for iop in node.body if isinstance(iop, IOp)]
        return out

    def _moved(self, iop: IOp, loop: str) -> IOp:
        if iop.op != "move" or iop.attrs:
            raise _OtherError
        target, source = self._piece(iop.target, loop), self._piece(iop.sources[0], loop)
        return IOp("move", "", self.kind, [target], [source])

    def _piece(self, piece: ISlice, loop: str) -> ISlice:
        bounds = (piece.row_begin, piece.row_end, piece.col_begin, piece.col_end)
        if any(bound is not None and loop in bound.variables() for bound in bounds) or piece.open_strides:
            raise _OtherError
        pointer = self.pointers[str(piece.pointer.name)]
        if piece.pointer.level != "dram":
            if loop in piece.offset.variables():
                raise _OtherError
            return piece.replace(pointer=pointer)
        first, second = (piece.offset.substitute({loop: affine(k)}) for k in (0, 1))
        if second - first != affine(1):
            raise _OtherError
        row, col = (self._whole(affine(stride)).constant for stride in piece.stride)
        return piece.replace(pointer=pointer, offset=self._whole(first), stride=(row, col))

    def _whole(self, value: Affine) -> Affine:
        """So many rows as there are elements."""
        if value % self.elements != affine(0):
            raise _OtherError
        return value // self.elements
