# SPDX-License-Identifier: Apache-2.0
"""Whether the output of an iOp may take the place of an input that dies there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..igraph.dtypes import bytes_of
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, IPointer, ISlice, Loop
from . import races
from .access import GraphFacts
from .live_ranges import Live


def in_place(facts: GraphFacts, dying: Live, born: Live) -> int | None:
    """By how many bytes the output's address exceeds the input's if it takes its place; None if it may not.

    It may where one elementwise iOp reads the input last and writes the output first, where both slices
    have the same shape, strides and valid box, elements of the same width, and different elements of
    the slice at different addresses.  In sram that units share, no unit may touch the one while another
    still touches the other.
    """
    position = dying.dying
    if position is None or position != born.born:
        return None
    iop = facts.steps[position].iop
    if not spec_of(iop).elementwise or born.accesses[0].kind != "write":
        return None
    target = iop.target
    width = bytes_of(born.pointer.dtype)
    if str(target.pointer.name) != born.name or width != bytes_of(dying.pointer.dtype):
        return None
    if not _injective(target):
        return None
    pieces = [s for s in iop.sources if str(s.pointer.name) == dying.name]
    if any(not _same_box(target, s) for s in pieces):
        return None
    steps = [s.offset - target.offset for s in pieces]
    if not steps or any(not d.is_constant or d.constant != steps[0].constant for d in steps):
        return None
    elements = int(steps[0].constant)
    if born.pointer.level == "sram" and int(facts.graph.num_units) > 1:
        if not _units_keep_apart(facts.graph, dying, born, elements):
            return None
    return elements * width


def _same_box(a: ISlice, b: ISlice) -> bool:
    return a.shape == b.shape and a.stride == b.stride and list(map(str, a.valid)) == list(map(str, b.valid))


def _injective(piece: ISlice) -> bool:
    """Whether no two elements of the slice have one address (said for strides that are not negative)."""
    sides = ((piece.row_stride, piece.rows), (piece.col_stride, piece.cols))
    axes = [(int(s), int(n)) for s, n in sides if n > 1]
    axes.sort()
    reach = 0
    for stride, extent in axes:
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def _units_keep_apart(graph: IGraph, dying: Live, born: Live, elements: int) -> bool:
    """Whether the two pointers as one have no race: then no unit overtakes another in that place."""
    shift = max(0, -elements)
    size = max(int(dying.pointer.size) + shift, int(born.pointer.size) + elements + shift)
    one = IPointer(dying.name, "sram", dying.pointer.dtype, size, "tmp")
    moved = {dying.name: shift, born.name: elements + shift}
    body = _only(graph.body, one, moved)
    pointers = [one if str(p.name) == dying.name else p for p in graph.pointers if str(p.name) != born.name]
    return not races.find(graph.replace(pointers=pointers, body=body), limit=1)


def _only(body: Any, one: IPointer, moved: Mapping[str, int]) -> list[Any]:
    """The iOps that touch the pointers ``moved``, as slices of ``one``, and what joins units."""

    def piece(s: Any) -> Any:
        if not isinstance(s, ISlice) or str(s.pointer.name) not in moved:
            return s
        return s.replace(pointer=one, offset=s.offset + moved[str(s.pointer.name)])

    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            inner = _only(node.body, one, moved)
            if inner:
                out.append(Loop(node.var, node.extent, inner, node.attrs))
            continue
        joins = spec_of(node).barrier or node.attrs.get("scope") == "group"
        if joins or any(str(s.pointer.name) in moved for s in node.slices()):
            attrs = {name: piece(value) for name, value in node.attrs.items()}
            sources, targets = map(piece, node.sources), map(piece, node.targets)
            out.append(IOp(node.op, node.name, node.dtype, list(targets), list(sources), attrs))
    return out
