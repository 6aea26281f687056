# SPDX-License-Identifier: Apache-2.0
"""Rows of tiles in reg start at blocks, where the device copies and computes by blocks.

Before (a block is 32 bytes)::

    r = iPointer(reg, fp32, 12)
    move.dram.reg r[0; (1,12); (12,1)], x[0; (1,12); (12,1)]
    reduce.add.row m[0; (4,1); (1,1)], r[0; (4,3); (3,1)]

After::

    r = iPointer(reg, fp32, 32)
    move.dram.reg r[0; (4,3); (8,1)], x[0; (4,3); (3,1)]
    reduce.add.row m[0; (4,1); (1,1)], r[0; (4,3); (8,1)]

A tile is seen as rows of P elements, P being the least distance of rows of its slices.  Where P elements are
no whole blocks (`row_align_bytes` of the hardware; a device without that figure is left alone), rows move
apart to the next block; every slice keeps its elements.

Exact: each slice is a set of whole strides of P plus a place within a row, proved for all units and
iterations, so that no two elements meet.  An elementwise iOp over several rows as one takes them as rows, and
its bounds on columns, if they cut between rows, become bounds on rows.  Where a pointer holds values with
rows of different lengths in turn, each value gets a pointer of its own.  Left alone: a pointer with a slice
that is neither; single columns, which stay dense; everything, if the tiles would not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..igraph.affine import Affine, affine
from ..igraph.dtypes import bytes_of
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, IPointer, ISlice
from .edit import edited, with_slices
from .figures import fits
from .step_domain import StepDomain
from .webs import rename


def run(graph: IGraph) -> IGraph:
    """The graph with rows of reg tiles at blocks; ``graph`` itself where they are, or need not be."""
    block = int(graph.hardware.figures.get("row_align_bytes", 0))
    if block == 0:
        return graph
    best = _apart_where_it_fits(graph, block)
    if _left(best, block) == 0:
        return best
    # values that one pointer holds in turn may have rows of different lengths
    parted = _apart_where_it_fits(rename(graph), block)
    return parted if _left(parted, block) < _left(best, block) and fits(parted) else best


def _left(graph: IGraph, block: int) -> int:
    """How many pointers have rows that do not start at blocks."""
    pieces: dict[str, list[ISlice]] = {}
    for iop, _ in graph.walk():
        for piece in iop.slices():
            if piece.pointer.level == "reg":
                pieces.setdefault(str(piece.pointer.name), []).append(piece)
    widths = {str(p.name): bytes_of(str(p.dtype)) for p in graph.pointers}
    return sum(any(step * widths[name] % block for step in _steps(some)) for name, some in pieces.items())


def _apart_where_it_fits(graph: IGraph, block: int) -> IGraph:
    candidates = [str(p.name) for p in graph.pointers if p.level == "reg"]
    every = _pitched_all(graph, candidates, block)
    if every is graph or fits(every):
        return every
    kept = graph
    for name in candidates:
        one = _pitched(kept, name, block)
        if one is not None and fits(one):
            kept = one
    return kept


def _pitched_all(graph: IGraph, names: Sequence[str], block: int) -> IGraph:
    for name in names:
        graph = _pitched(graph, name, block) or graph
    return graph


def _pitched(graph: IGraph, name: str, block: int) -> IGraph | None:
    """The graph with the rows of one pointer apart; None where there is nothing to do, or no way."""
    uses = [
        (position, iop, StepDomain.of(graph, loops))
        for position, (iop, loops) in enumerate(graph.walk())
        if any(str(piece.pointer.name) == name for piece in iop.slices())
    ]
    old = next(p for p in graph.pointers if str(p.name) == name)
    row = _row_of([piece for _, iop, _ in uses for piece in iop.slices() if str(piece.pointer.name) == name])
    width = bytes_of(str(old.dtype))
    if row is None or row * width % block == 0 or int(old.size) % row != 0:
        return None
    pitch = -(-row * width // block) * block // width
    new = IPointer(old.name, old.level, old.dtype, int(old.size) // row * pitch, old.role)
    changes: dict[int, IOp] = {}
    for position, iop, domain in uses:
        changed = _moved(iop, new, row, pitch, domain)
        if changed is None:
            return None
        changes[position] = changed
    pointers = [new if str(p.name) == name else p for p in graph.pointers]
    return edited(graph, changes, pointers)


def _row_of(pieces: Sequence[ISlice]) -> int | None:
    """Elements of a row: the least distance at which a slice has several rows of several elements."""
    return min(_steps(pieces), default=None)


def _steps(pieces: Sequence[ISlice]) -> list[int]:
    """The distances at which slices have several rows of several elements."""
    steps = [
        max(int(p.row_stride), int(p.col_stride))
        for p in pieces
        if p.rows > 1 and p.cols > 1 and min(p.row_stride, p.col_stride) == 1
    ]
    return [step for step in steps if step > 1]


def _moved(iop: IOp, new: IPointer, row: int, pitch: int, domain: StepDomain) -> IOp | None:
    """The iOp with a pointer's rows of ``row`` elements ``pitch`` apart; None where it has no such form."""
    shaped = iop if all(_inside(p, new, row, domain) for p in iop.slices()) else _as_rows(iop, row)
    if shaped is None or not all(_inside(p, new, row, domain) for p in shaped.slices()):
        return None
    changes = {
        key: piece.replace(
            pointer=new,
            offset=piece.offset + _rows(piece.offset, row) * (pitch - row),
            stride=(_apart(piece.row_stride, row, pitch), _apart(piece.col_stride, row, pitch)),
        )
        for key, piece in _named(shaped)
        if str(piece.pointer.name) == str(new.name)
    }
    moved = with_slices(shaped, changes)
    if "align" not in iop.attrs:
        return moved
    # rows that the move has now need not start where those that it had did
    rest = {key: value for key, value in moved.attrs.items() if key != "align"}
    return IOp(moved.op, moved.name, moved.dtype, moved.targets, moved.sources, rest)


def _named(iop: IOp) -> Iterator[tuple[str, ISlice]]:
    yield from (("target" if k == 0 else f"target{k}", piece) for k, piece in enumerate(iop.targets))
    yield from ((f"source{k}", piece) for k, piece in enumerate(iop.sources))
    if "buffer" in iop.attrs:
        yield "buffer", iop.attrs["buffer"]


def _apart(stride: int, row: int, pitch: int) -> int:
    return int(stride) // row * pitch if stride % row == 0 else int(stride)


def _rows(offset: Affine, row: int) -> Affine:
    """How many whole rows come before an offset, counting terms that are whole rows for themselves."""
    total = affine(int(offset.constant) // row)
    for term in offset.terms:
        if term.coeff % row == 0:
            total = total + term.atom * (int(term.coeff) // row)
    return total


def _inside(piece: ISlice, pointer: IPointer, row: int, domain: StepDomain) -> bool:
    """Whether it is proved that a slice of the pointer steps from row to row, or stays within one."""
    if str(piece.pointer.name) != str(pointer.name):
        return True
    place = piece.offset - _rows(piece.offset, row) * row
    low, high = domain.range(place)
    sides = ((piece.rows, piece.row_stride, piece.row_end), (piece.cols, piece.col_stride, piece.col_end))
    for count, step, end in sides:
        if step % row != 0:
            present = int(count) if end is None or not end.is_constant else min(int(count), int(end.constant))
            reach = max(present - 1, 0) * int(step)
            low, high = low + min(reach, 0), high + max(reach, 0)
    return low >= 0 and high < row


def _as_rows(iop: IOp, row: int) -> IOp | None:
    """An elementwise iOp over one row of several times ``row`` elements, as one over several rows."""
    pieces = list(_named(iop))
    cols = int(iop.target.cols)
    spec = spec_of(iop)
    # its operands may be seen as one row or as several where each element is computed by itself
    if not spec.elementwise or spec.by_place or cols % row != 0 or len(iop.targets) != 1:
        return None
    changes = {}
    for key, piece in pieces:
        begin, end = piece.valid[2:]
        bounds = [None if b is None else _quotient(b, row) for b in (begin, end)]
        cut = any(b is not None and q is None for b, q in zip((begin, end), bounds, strict=True))
        whole = not cut and piece.valid[:2] == (None, None) and not piece.open_strides
        if int(piece.rows) != 1 or int(piece.cols) != cols or not whole:
            return None
        step = int(piece.col_stride)
        changes[key] = piece.replace(
            shape=(cols // row, row), stride=(row * step, step), rows=tuple(bounds), cols=(None, None)
        )
    return with_slices(iop, changes)


def _quotient(bound: Affine, row: int) -> Affine | None:
    whole = bound.constant % row == 0 and all(term.coeff % row == 0 for term in bound.terms)
    return _rows(bound, row) if whole else None
