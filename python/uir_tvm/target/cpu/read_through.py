# SPDX-License-Identifier: Apache-2.0
"""Read through copies: iOps that only rename elements cost nothing on a CPU.

    move.dram.reg b, a;  broadcast.row c, m;  binary.sub d, b, c
    ->  binary.sub d, a, m[stride (rows, 0)]

A move, broadcast or transpose into reg memory is a *view* of its source.  Whoever reads the view reads the
source instead, provided that nothing writes the source in between; a view that nobody reads any more goes.

A contraction reads its first factor one element at a time, in whatever order it lies; the second one it reads
in vectors along the columns, or of few rows along the rows (`emit_dot`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ...igraph.affine import Affine, AffineLike
from ...igraph.iops import spec_of
from ...igraph.nodes import IGraph, IOp, IPointer, ISlice, Loop
from .emit_dot import suits

#: iOps whose sources may be strided or repeated views; the others want their operands as they were laid out.
READERS = frozenset(
    {"move", "unary", "binary", "compare", "select", "broadcast", "reduce", "cast", "transpose"}
)
CONTRACT = "contract"


@attrs.frozen
class _Place:
    """One iOp, where it stands: position in program order, and (position, end) of every loop around it."""

    iop: IOp
    position: int
    loops: tuple[tuple[int, int], ...]


def read_through(graph: IGraph) -> IGraph:
    """The graph with reads of views replaced and the unread views gone."""
    changed = True
    while changed:
        body, changed = _pass(graph)
        graph = graph.replace(body=body)
    return graph


def _places(body: Sequence[Any]) -> list[_Place]:
    out: list[_Place] = []

    def visit(nodes: Sequence[Any], loops: tuple[tuple[int, int], ...]) -> None:
        for node in nodes:
            if isinstance(node, Loop):
                begin = len(out)
                visit(node.body, (*loops, (begin, begin + _count(node.body))))
            else:
                out.append(_Place(node, len(out), loops))

    visit(body, ())
    return out


def _count(body: Sequence[Any]) -> int:
    return sum(_count(node.body) if isinstance(node, Loop) else 1 for node in body)


def _pass(graph: IGraph) -> tuple[list[Any], bool]:
    places = _places(graph.body)
    writes: dict[str, list[_Place]] = {}
    for place in places:
        for target in place.iop.targets if spec_of(place.iop).touches else ():
            writes.setdefault(target.pointer.name, []).append(place)
    new: dict[int, IOp] = {}
    for place in places:
        iop = place.iop
        if iop.op not in READERS and iop.op != CONTRACT:
            continue
        old = list(iop.sources)
        sources = [
            _resolved(place, piece, writes, by_element=iop.op == CONTRACT and number == 0)
            for number, piece in enumerate(old)
        ]
        if iop.op == CONTRACT:
            a, b = sources
            across = _resolved(place, old[1], writes, by_element=True)
            sources = [a, across if suits(iop, a, across) else b]
        # handles of one object differ between accesses to a field: compare with those that went in
        if any(a is not b for a, b in zip(sources, old, strict=True)):
            new[place.position] = IOp(iop.op, iop.name, iop.dtype, iop.targets, sources, iop.attrs)
    iops = [new.get(place.position, place.iop) for place in places]
    read = {piece.pointer.name for iop in iops for piece in _read(iop)}
    drop = {
        place.position
        for place, iop in zip(places, iops, strict=True)
        if iop.target.pointer.level == "reg" and iop.target.pointer.name not in read and spec_of(iop).touches
    }
    counter = iter(range(len(places)))
    return _rebuilt(graph.body, iops, drop, counter), bool(new) or bool(drop)


def _read(iop: IOp) -> list[ISlice]:
    """Every slice whose old value matters to ``iop``."""
    pieces = list(iop.sources)
    if spec_of(iop).keeps_target(iop):
        pieces += iop.targets
    return pieces


def _rebuilt(body: Sequence[Any], iops: list[IOp], drop: set[int], counter: Any) -> list[Any]:
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            inner = _rebuilt(node.body, iops, drop, counter)
            if inner:
                out.append(Loop(node.var, node.extent, inner, node.attrs))
            continue
        position = next(counter)
        if position not in drop:
            out.append(iops[position])
    return out


def _resolved(
    reader: _Place, piece: ISlice, writes: dict[str, list[_Place]], by_element: bool = False
) -> ISlice:
    """What ``reader`` may read instead of ``piece``; ``piece`` itself where it must stay.

    ``by_element`` says that it reads one element at a time: any order of them is as good.
    """
    writers = writes.get(piece.pointer.name, [])
    if piece.pointer.level != "reg" or len(writers) != 1:
        return piece
    copy = writers[0]
    view = _view_of(copy.iop, by_element)
    inside = reader.loops[: len(copy.loops)] == copy.loops and copy.position < reader.position
    if view is None or not inside or _overwritten(copy, reader, view.pointer, writes):
        return piece
    return _composed(copy.iop.target, view, piece, reader.iop, by_element) or piece


def _view_of(iop: IOp, by_element: bool) -> ISlice | None:
    """The source seen in the target's shape, if the iOp only renames elements."""
    if not spec_of(iop).rearranges or "pad" in iop.attrs:
        return None
    s, shape = iop.sources[0], iop.target.shape
    if iop.op == "move":
        view = s
    elif iop.op == "transpose":
        view = s.replace(shape=shape, stride=s.stride[::-1])
    elif iop.attrs["scope"] != "unit":
        return None
    elif iop.attrs["axis"] == "row":
        view = s.replace(shape=shape, stride=(s.stride[0], 0))
    else:
        view = s.replace(shape=shape, stride=(0, s.stride[1]))
    # strided reads are slow: worth it once, not in every pass over the tile
    return view if by_element or view.col_stride in (0, 1) or view.cols == 1 else None


def _overwritten(copy: _Place, reader: _Place, source: IPointer, writes: dict[str, list[_Place]]) -> bool:
    """Whether something may write the source between the copy and the read (in any iteration)."""
    end = reader.position
    for _, stop in reader.loops[len(copy.loops) :]:
        end = max(end, stop - 1)
    return any(copy.position < place.position <= end for place in writes.get(source.name, []))


def _composed(target: ISlice, view: ISlice, piece: ISlice, reader: IOp, by_element: bool) -> ISlice | None:
    """``piece`` of the copy's target as a piece of ``view``; None where it is no plain piece of it."""
    shift = piece.offset - target.offset
    if not shift.is_constant or shift.constant < 0:
        return None
    start = _coordinate(target, shift.constant)
    step_r = _coordinate(target, piece.row_stride) if piece.rows > 1 else (0, 0)
    step_c = _coordinate(target, piece.col_stride) if piece.cols > 1 else (0, 0)
    if start is None or step_r is None or step_c is None:
        return None
    down, along = piece.rows - 1, piece.cols - 1
    last = [s + r * down + c * along for s, r, c in zip(start, step_r, step_c, strict=True)]
    if last[0] >= target.rows or last[1] >= target.cols:
        return None
    if target.valid != (None,) * 4:
        aligned = start == (0, 0) and piece.shape == target.shape
        whole = (piece.rows == 1 or step_r == (1, 0)) and (piece.cols == 1 or step_c == (0, 1))
        same = aligned and whole and target.valid in (reader.target.valid, piece.valid)
        if not (same or (start == (0, 0) and _there(target, piece, step_r, step_c))):
            return None

    down_view, along_view = view.stride

    def stride(step: tuple[int, int]) -> AffineLike:
        return step[0] * down_view + step[1] * along_view

    offset: Affine = view.offset + stride(start)
    result = piece.replace(pointer=view.pointer, offset=offset, stride=(stride(step_r), stride(step_c)))
    return result if by_element or result.col_stride in (0, 1) or result.cols == 1 else None


def _there(target: ISlice, piece: ISlice, step_r: tuple[int, int], step_c: tuple[int, int]) -> bool:
    """Whether all that exists of ``piece`` is there in ``target``, along each side by itself.

    A side has the bounds of the target's, or repeats its only element, which is there if any of these are.
    """
    sides = (
        (int(target.rows), target.valid[:2], int(piece.rows), piece.valid[:2], step_r == (1, 0), step_r),
        (int(target.cols), target.valid[2:], int(piece.cols), piece.valid[2:], step_c == (0, 1), step_c),
    )
    for extent, bounds, wanted, inside, is_along, step in sides:
        same = extent == wanted and bounds == inside and (wanted == 1 or is_along)
        repeated = extent == 1 and step == (0, 0) and bounds[0] is None and bounds[1] in (None, inside[1])
        if not (same or repeated):
            return False
    return True


def _coordinate(target: ISlice, distance: int) -> tuple[int, int] | None:
    """The (row, column) of the target's element at ``distance`` from its first, if rows do not overlap."""
    if distance == 0:
        return (0, 0)
    rs, cs = target.row_stride, target.col_stride
    if distance in (rs, cs):
        return (1, 0) if distance == rs and target.rows > 1 else (0, 1)
    if target.rows > 1 and target.cols > 1 and rs < (target.cols - 1) * cs + 1:
        return None
    if distance < 0 or rs < 0 or cs < 0:
        return None
    row, rest = divmod(distance, rs) if target.rows > 1 and rs else (0, distance)
    col, left = divmod(rest, cs) if target.cols > 1 and cs else (0, rest)
    return (row, col) if left == 0 else None
