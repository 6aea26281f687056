# SPDX-License-Identifier: Apache-2.0
"""Faults of memory: sizes, registers that are reused while they hold something, buffers, groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, affine
from uir_tvm.igraph.affine import Term

from .edit import (
    Candidate,
    Plant,
    changed,
    edited,
    iops,
    map_slices,
    mapped_terms,
    of_level,
    operands,
    shuffled,
    term_value,
    with_pointer,
    without_unused,
)


def shrink_pointer(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Make one pointer an element, or a row, smaller."""
    found: list[Candidate] = []
    for pointer in graph.pointers:
        rows = {
            abs(int(s.row_stride)) for iop, _ in graph.walk() for s in iop.slices() if s.pointer == pointer
        }
        for less in sorted({1, *rows}):
            if 0 < less < pointer.size:
                found.append(
                    (f"{pointer.name} smaller by {less}", _resized(graph, pointer, pointer.size - less))
                )
    yield from shuffled(found, rng)


def _resized(graph: IGraph, p: IPointer, size: int) -> Callable[[], IGraph]:
    new = IPointer(p.name, p.level, p.dtype, size, p.role)  # type: ignore[call-arg]
    return lambda: with_pointer(graph, str(p.name), new)


def reuse_live_register(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Let one iOp write into another register, or merge two registers, as a wrong allocator would."""
    regs = of_level(graph, "reg")
    found: list[Candidate] = []
    for position, iop in iops(graph):
        if iop.op in ("sync", "identity") or iop.target.pointer.level != "reg":
            continue
        for other in regs:
            mine = iop.target.pointer
            if other.name != mine.name and other.dtype == mine.dtype and other.size >= mine.size:
                text = f"iOp {position} ({iop.op}) writes {other.name} in place of {mine.name}"
                found.append((text, _retargeted(graph, position, other)))
    for kept in regs:
        for gone in regs:
            if kept.name != gone.name and kept.dtype == gone.dtype and kept.size >= gone.size:
                found.append((f"{gone.name} kept in {kept.name}", _merged(graph, gone, kept)))
    yield from shuffled(found, rng)


def _retargeted(graph: IGraph, position: int, other: IPointer) -> Callable[[], IGraph]:
    def one(iop: IOp) -> IOp:
        return changed(iop, targets=[iop.target.replace(pointer=other), *list(iop.targets)[1:]])

    return lambda: without_unused(edited(graph, position, one))


def _merged(graph: IGraph, gone: IPointer, kept: IPointer) -> Callable[[], IGraph]:
    def one(piece: ISlice) -> ISlice:
        return piece.replace(pointer=kept) if piece.pointer.name == gone.name else piece

    return lambda: without_unused(map_slices(graph, one))


def stale_register(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Let one iOp read another register than the one that holds its operand."""
    regs = of_level(graph, "reg")
    found: list[Candidate] = []
    for position, iop in iops(graph):
        if iop.op in ("sync", "identity"):
            continue
        for name, piece, put in operands(iop):
            if not name.startswith("source") or piece.pointer.level != "reg":
                continue
            for other in regs:
                mine = piece.pointer
                if other.name != mine.name and other.dtype == mine.dtype and other.size >= mine.size:
                    text = f"{name} of iOp {position} ({iop.op}) reads {other.name} in place of {mine.name}"
                    found.append((text, _reading(graph, position, put, piece, other)))
    yield from shuffled(found, rng)


def _reading(
    graph: IGraph, position: int, put: Callable[[ISlice], IOp], piece: ISlice, other: IPointer
) -> Callable[[], IGraph]:
    return lambda: without_unused(edited(graph, position, lambda _: put(piece.replace(pointer=other))))


# ---- buffers ------------------------------------------------------------------------------------


def _is_stage(term: Term) -> bool:
    """Whether a term chooses one of a few buffers: ``size * (k mod stages)`` with k no unit's number."""
    inner = term.inner
    return term.kind == "mod" and 2 <= int(term.divisor) <= 4 and "pid" not in inner.variables()  # type: ignore[union-attr]


def single_buffer(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Collapse the buffers of a pipeline into one, or let one iOp take the next one."""
    found: list[Candidate] = []
    staged = {
        str(s.pointer.name)
        for iop, _ in graph.walk()
        for s in iop.slices()
        if not s.pointer.is_param and any(_is_stage(t) for t in s.offset.terms)
    }
    for name in sorted(staged):
        found.append((f"one buffer of {name}", _collapsed(graph, name)))
    for position, iop in iops(graph):
        for operand, piece, put in operands(iop):
            if (
                iop.op != "sync"
                and str(piece.pointer.name) in staged
                and any(map(_is_stage, piece.offset.terms))
            ):
                text = f"the next buffer of {piece.pointer.name} in {operand} of iOp {position} ({iop.op})"
                found.append((text, _next_buffer(graph, position, put, piece)))
    yield from shuffled(found, rng)


def _collapsed(graph: IGraph, name: str) -> Callable[[], IGraph]:
    def one(piece: ISlice) -> ISlice:
        if piece.pointer.name != name:
            return piece
        drop = mapped_terms(piece.offset, lambda t: affine(0) if _is_stage(t) else term_value(t))
        return piece.replace(offset=drop)

    return lambda: map_slices(graph, one)


def _next_buffer(
    graph: IGraph, position: int, put: Callable[[ISlice], IOp], piece: ISlice
) -> Callable[[], IGraph]:
    def after(term: Term):  # type: ignore[no-untyped-def]
        if not _is_stage(term):
            return term_value(term)
        return ((term.inner + 1) % int(term.divisor)) * int(term.coeff)  # type: ignore[operator]

    return lambda: edited(
        graph, position, lambda _: put(piece.replace(offset=mapped_terms(piece.offset, after)))
    )


# ---- groups -------------------------------------------------------------------------------------


def group_size(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Another group size of one group form, or units dealt to groups of another size."""
    found: list[Candidate] = []
    for position, iop in iops(graph):
        if iop.attrs.get("scope") == "group":
            now = int(iop.attrs["group_size"])
            for size in sorted({1, now // 2, now - 1, now + 1, now * 2} - {0, now}):
                found.append(
                    (f"group_size {size} for {now} in iOp {position}", _sized(graph, position, size))
                )
    shared = graph.num_units > 1 and (of_level(graph, "sram") or any(i.op == "sync" for _, i in iops(graph)))
    for units in sorted({1, graph.num_units // 2, graph.num_units * 2} - {0, int(graph.num_units)}):
        if shared and graph.num_parallel % units == 0:
            text = f"groups of {units} units for {graph.num_units}"
            found.append((text, _regrouped(graph, units)))
    yield from shuffled(found, rng)


def _sized(graph: IGraph, position: int, size: int) -> Callable[[], IGraph]:
    return lambda: edited(graph, position, lambda iop: changed(iop, attrs={"group_size": size}))


def _regrouped(graph: IGraph, units: int) -> Callable[[], IGraph]:
    return lambda: graph.replace(num_groups=graph.num_parallel // units, num_units=units)
