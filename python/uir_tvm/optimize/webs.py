# SPDX-License-Identifier: Apache-2.0
"""One pointer per value: a reg pointer that is written anew gets a new name.

    unary.exp b, a;  reduce.add s, b;  move b, c   ->   unary.exp b, a;  reduce.add s, b;  move b_1, c

Reuse of memory matters where memory has addresses; registers that a compiler names it would only tie
together.  Only pointers at constant offsets are split, and only where what is written covers all that is read
until it is written anew, in every straight run of iOps that uses the pointer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, IPointer, ISlice, Loop
from .definitions import place, valid


@attrs.define
class _Use:
    """One slice of an iOp, in the order of memory accesses."""

    position: int
    side: str
    number: int
    piece: ISlice
    body: int


def rename(graph: IGraph, boxes: bool = False) -> IGraph:
    """The graph with a pointer for every value that does not depend on what its pointer held before.

    ``boxes`` also takes a first value of which only a valid box is written, if nothing but that box is read.
    """
    uses: dict[str, list[_Use]] = {}
    blocked: set[str] = set()
    iops: list[IOp] = []
    for iop, body in _in_order(graph.body):
        if not spec_of(iop).touches:
            blocked |= {piece.pointer.name for piece in iop.slices()}
        else:
            for side, pieces in (("source", iop.sources), ("target", iop.targets)):
                for number, piece in enumerate(pieces):
                    use = _Use(len(iops), side, number, piece, body)
                    uses.setdefault(piece.pointer.name, []).append(use)
        iops.append(iop)
    names = {p.name for p in graph.pointers}
    new_pointers: list[IPointer] = []
    changed: dict[tuple[int, str, int], ISlice] = {}
    for pointer in graph.pointers:
        if pointer.level != "reg" or pointer.name in blocked or pointer.name not in uses:
            continue
        for number, web in enumerate(_webs(uses[pointer.name], iops, boxes)):
            if number == 0:
                continue
            fresh = IPointer(
                _free(names, pointer.name, number), "reg", pointer.dtype, pointer.size, pointer.role
            )
            new_pointers.append(fresh)
            for use in web:
                changed[use.position, use.side, use.number] = use.piece.replace(pointer=fresh)
    if not changed:
        return graph
    counter = iter(range(len(iops)))
    return graph.replace(
        body=_rebuilt(graph.body, iops, changed, counter),
        pointers=[*graph.pointers, *new_pointers],
    )


def _in_order(body: Sequence[Any], number: Iterator[int] | None = None) -> Iterator[tuple[IOp, int]]:
    """iOps with the number of the straight run that holds them."""
    number = number or iter(range(1 << 30))
    run = next(number)
    for node in body:
        if isinstance(node, Loop):
            yield from _in_order(node.body, number)
            run = next(number)
        else:
            yield node, run


def _webs(uses: list[_Use], iops: list[IOp], boxes: bool) -> list[list[_Use]]:
    """The uses in groups that share no value; one group where that cannot be told."""
    bodies = list(dict.fromkeys(use.body for use in uses))
    if len(bodies) > 1:
        runs = [[use for use in uses if use.body == body] for body in bodies]
        if not all(_makes_its_own(run, iops) for run in runs):
            return [uses]
        return [web for run in runs for web in _webs(run, iops, boxes)]
    spans = [_span(use.piece) for use in uses]
    if any(span is None for span in spans):
        return [uses]
    webs: list[list[_Use]] = []
    extents: list[tuple[int, int]] = []
    for number, (use, span) in enumerate(zip(uses, spans, strict=True)):
        assert span is not None
        fresh = use.side == "target" and _overwrites(use, iops[use.position])
        fresh = fresh or (boxes and number == 0 and _fills_a_box(uses, iops))
        if fresh:
            webs.append([use])
            extents.append(span)
            continue
        if not webs:
            return [uses]  # something is read first: it comes from an earlier iteration
        # what lies outside the last value belongs to the one before
        while len(webs) > 1 and not (extents[-1][0] <= span[0] and span[1] <= extents[-1][1]):
            last, (low, high) = webs.pop(), extents.pop()
            webs[-1] += last
            extents[-1] = (min(extents[-1][0], low), max(extents[-1][1], high))
        webs[-1].append(use)
    return webs


def _makes_its_own(run: list[_Use], iops: list[IOp]) -> bool:
    """Whether a straight run reads no value from before it: it first writes all that it uses."""
    spans = [_span(use.piece) for use in run]
    first = spans[0]
    if run[0].side != "target" or first is None or not _overwrites(run[0], iops[run[0].position]):
        return False
    return all(span is not None and first[0] <= span[0] and span[1] <= first[1] for span in spans)


def _span(piece: ISlice) -> tuple[int, int] | None:
    """Least and greatest element of a slice at a constant offset."""
    if not piece.offset.is_constant:
        return None
    steps = [(piece.rows - 1) * piece.row_stride, (piece.cols - 1) * piece.col_stride]
    start = piece.offset.constant
    return start + sum(min(s, 0) for s in steps), start + sum(max(s, 0) for s in steps)


def _fills_a_box(uses: list[_Use], iops: list[IOp]) -> bool:
    """Whether the first use writes a valid box, and all until the next value use that box alone."""
    first, *others = uses
    iop = iops[first.position]
    if first.side != "target" or spec_of(iop).keeps_target(iop):
        return False
    for use in others:
        if use.side == "target" and _overwrites(use, iops[use.position]):
            return True
        if (place(use.piece), valid(use.piece)) != (place(first.piece), valid(first.piece)):
            return False
    return True


def _overwrites(use: _Use, iop: IOp) -> bool:
    """Whether the target is written whole, element by element, whatever was there."""
    piece = use.piece
    if spec_of(iop).keeps_target(iop) or piece.valid != (None,) * 4:
        return False
    rows, cols = (piece.rows, piece.row_stride), (piece.cols, piece.col_stride)
    (n, inner), (m, outer) = sorted((rows, cols), key=lambda side: (side[1], side[0]))
    if n == 1:
        return m == 1 or outer == 1
    return inner == 1 and (m == 1 or outer == n)


def _free(names: set[str], name: str, number: int) -> str:
    fresh = f"{name}_{number}"
    while fresh in names:
        fresh += "_"
    names.add(fresh)
    return fresh


def _rebuilt(
    body: Sequence[Any],
    iops: list[IOp],
    changed: dict[tuple[int, str, int], ISlice],
    counter: Iterator[int],
) -> list[Any]:
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            out.append(Loop(node.var, node.extent, _rebuilt(node.body, iops, changed, counter), node.attrs))
            continue
        position = next(counter)
        iop = iops[position]
        targets = [changed.get((position, "target", k), t) for k, t in enumerate(iop.targets)]
        sources = [changed.get((position, "source", k), s) for k, s in enumerate(iop.sources)]
        out.append(IOp(iop.op, iop.name, iop.dtype, targets, sources, iop.attrs))
    return out
