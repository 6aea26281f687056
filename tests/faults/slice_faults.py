# SPDX-License-Identifier: Apache-2.0
"""Faults of slices: where they lie, how far they reach, how they walk."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from uir_tvm.igraph import IGraph, IOp, ISlice, affine
from uir_tvm.igraph.affine import AffineLike, Term

from .edit import (
    Plant,
    changed,
    each_operand,
    edited,
    iops,
    map_slices,
    mapped_terms,
    shuffled,
    term_value,
)

_SIDES = ("row_begin", "row_end", "col_begin", "col_end")
Variants = Iterator[tuple[str, Callable[[], ISlice]]]


def shift_row(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Move one operand up or down by one row."""

    def variants(piece: ISlice) -> Variants:
        step = affine(piece.stride[0])
        for way in (step, -step) if step != 0 else ():
            yield f"offset + {way}", _shifted(piece, way)

    yield from shuffled(each_operand(graph, variants), rng)


def shift_element(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Move one operand by one element."""

    def variants(piece: ISlice) -> Variants:
        for step in (1, -1):
            yield f"offset {step:+}", _shifted(piece, step)

    yield from shuffled(each_operand(graph, variants), rng)


def _shifted(piece: ISlice, step: AffineLike) -> Callable[[], ISlice]:
    return lambda: piece.replace(offset=piece.offset + step)


def wrong_coefficient(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Let one operand move by one element more for each step of a variable, or not at all."""

    def variants(piece: ISlice) -> Variants:
        for k in range(len(piece.offset.terms)):
            yield f"term {k} of the offset + 1", _rescaled(piece, k, 1)
            yield f"term {k} of the offset * 0", _rescaled(piece, k, None)
        if piece.open_strides:
            yield "strides * 2", lambda: piece.replace(stride=(piece.stride[0] * 2, piece.stride[1] * 2))

    yield from shuffled(each_operand(graph, variants), rng)


def _rescaled(piece: ISlice, number: int, more: int | None) -> Callable[[], ISlice]:
    def make() -> ISlice:
        counter = iter(range(len(piece.offset.terms)))

        def one(term: Term) -> Any:
            value = term_value(term)
            if next(counter) != number:
                return value
            # c*x + x: the value of the atom itself is c*x / c
            return affine(0) if more is None else value + _atom(term) * more

        return piece.replace(offset=mapped_terms(piece.offset, one))

    return make


def _atom(term: Term) -> Any:
    from uir_tvm.igraph import var

    if term.kind == "var":
        return var(str(term.var))
    inner: Any = term.inner
    return inner // int(term.divisor) if term.kind == "floordiv" else inner % int(term.divisor)


def swap_strides(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Exchange the row stride and the column stride of one operand."""

    def variants(piece: ISlice) -> Variants:
        if piece.stride[0] != piece.stride[1] and piece.rows * piece.cols > 1:
            yield "strides swapped", lambda: piece.replace(stride=piece.stride[::-1])

    yield from shuffled(each_operand(graph, variants), rng)


# ---- valid ranges -------------------------------------------------------------------------------


def _bounds(piece: ISlice, **new: Any) -> ISlice:
    values = {side: getattr(piece, side) for side in _SIDES} | new
    return piece.replace(
        rows=(values["row_begin"], values["row_end"]), cols=(values["col_begin"], values["col_end"])
    )


def _outward(side: str) -> int:
    return 1 if side.endswith("end") else -1


def widen(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Let one operand, one iOp, or all slices with some bound reach past it."""

    def variants(piece: ISlice) -> Variants:
        for side in _SIDES:
            bound = getattr(piece, side)
            if bound is not None:
                yield f"{side} one further", _bounded(piece, side, bound + _outward(side))
                yield f"{side} dropped", _bounded(piece, side, None)

    found = each_operand(graph, variants)
    for position, iop in iops(graph):
        if iop.op == "sync":
            continue
        for side in _SIDES:
            if any(getattr(s, side) is not None for s in iop.slices()):
                found.append(
                    (f"{side} dropped in all of iOp {position} ({iop.op})", _iop_wide(graph, position, side))
                )
        for axis in (0, 1):
            found.append(
                (f"iOp {position} ({iop.op}) one longer on axis {axis}", _longer(graph, position, axis))
            )
    pieces = [piece for iop, _ in graph.walk() for piece in iop.slices()]
    for side in _SIDES:
        bounds = {str(getattr(s, side)) for s in pieces if getattr(s, side) is not None}
        for bound in sorted(bounds):
            found.append((f"{side} {bound} dropped everywhere", _dropped_everywhere(graph, side, bound)))
    yield from shuffled(found, rng)


def narrow(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Let one operand, or all slices with some bound, end one row or column early."""

    def variants(piece: ISlice) -> Variants:
        for side in _SIDES:
            bound = getattr(piece, side)
            if bound is not None:
                yield f"{side} one less far", _bounded(piece, side, bound - _outward(side))
        if piece.row_end is None and piece.rows > 1:
            yield "rows one fewer", _bounded(piece, "row_end", affine(piece.rows - 1))
        if piece.col_end is None and piece.cols > 1:
            yield "columns one fewer", _bounded(piece, "col_end", affine(piece.cols - 1))

    yield from shuffled(each_operand(graph, variants), rng)


def _bounded(piece: ISlice, side: str, bound: Any) -> Callable[[], ISlice]:
    return lambda: _bounds(piece, **{side: bound})


def _iop_wide(graph: IGraph, position: int, side: str) -> Callable[[], IGraph]:
    return lambda: edited(graph, position, lambda iop: _each(iop, lambda s: _bounds(s, **{side: None})))


def _longer(graph: IGraph, position: int, axis: int) -> Callable[[], IGraph]:
    def longer(iop: IOp) -> IOp:
        shape = iop.target.shape
        wanted = (shape[0] + (axis == 0), shape[1] + (axis == 1))
        return _each(iop, lambda s: s.replace(shape=wanted) if s.shape == shape else s)

    return lambda: edited(graph, position, longer)


def _each(iop: IOp, fn: Callable[[ISlice], ISlice]) -> IOp:
    return changed(iop, targets=[fn(s) for s in iop.targets], sources=[fn(s) for s in iop.sources])


def _dropped_everywhere(graph: IGraph, side: str, bound: str) -> Callable[[], IGraph]:
    def one(piece: ISlice) -> ISlice:
        return _bounds(piece, **{side: None}) if str(getattr(piece, side)) == bound else piece

    return lambda: map_slices(graph, one)
