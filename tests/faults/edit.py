# SPDX-License-Identifier: Apache-2.0
"""Edits of iGraphs by place, with which the mutators are written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from uir_tvm.igraph import Affine, IGraph, IOp, IPointer, ISlice, Loop, affine, var
from uir_tvm.igraph.affine import Term

#: A planted fault: what was done, and the graph with it.
Plant = tuple[str, IGraph]
#: The same before the graph is built.
Candidate = tuple[str, Callable[[], IGraph]]
#: Where a node stands: the indices of the loops around it, then its own.
Path = tuple[int, ...]


def shuffled(candidates: Sequence[Candidate], rng: random.Random) -> Iterator[Plant]:
    """The candidates in a random order, each built when it is asked for."""
    order = list(candidates)
    rng.shuffle(order)
    for what, make in order:
        yield what, make()


# ---- iOps by position ---------------------------------------------------------------------------


def iops(graph: IGraph) -> list[tuple[int, IOp]]:
    """Every iOp with its position in program order."""
    return [(position, iop) for position, (iop, _) in enumerate(graph.walk())]


def edited(graph: IGraph, position: int, fn: Callable[[IOp], IOp | None]) -> IGraph:
    """The graph with one iOp replaced (None: dropped, with the loops that are left empty)."""
    count = -1

    def walk(body: Sequence[Any]) -> list[Any]:
        nonlocal count
        out: list[Any] = []
        for node in body:
            if isinstance(node, Loop):
                inner = walk(node.body)
                if inner:
                    out.append(Loop(node.var, node.extent, inner, node.attrs))
                continue
            count += 1
            made = fn(node) if count == position else node
            if made is not None:
                out.append(made)
        return out

    return graph.replace(body=walk(graph.body))


def changed(iop: IOp, **fields: Any) -> IOp:
    """An iOp with fields replaced; ``attrs`` is merged into what there is, None drops one."""
    attrs = {**dict(iop.attrs.items()), **fields.pop("attrs", {})}
    kept = {name: value for name, value in attrs.items() if value is not None}
    parts = [fields.get(f, getattr(iop, f)) for f in ("op", "name", "dtype", "targets", "sources")]
    return IOp(*parts, attrs=kept)


# ---- operands -----------------------------------------------------------------------------------


def operands(iop: IOp) -> Iterator[tuple[str, ISlice, Callable[[ISlice], IOp]]]:
    """(name, slice, the iOp with another slice there) of every operand."""
    for field in ("targets", "sources"):
        pieces = list(getattr(iop, field))
        for k, piece in enumerate(pieces):
            yield f"{field[:-1]} {k}", piece, _replacing(iop, field, pieces, k)
    if "buffer" in iop.attrs:
        yield "buffer", iop.attrs["buffer"], lambda new: changed(iop, attrs={"buffer": new})


def _replacing(iop: IOp, field: str, pieces: list[ISlice], k: int) -> Callable[[ISlice], IOp]:
    return lambda new: changed(iop, **{field: [*pieces[:k], new, *pieces[k + 1 :]]})


def each_operand(
    graph: IGraph, variants: Callable[[ISlice], Iterator[tuple[str, Callable[[], ISlice]]]]
) -> list[Candidate]:
    """One candidate for every variant of every operand of every iOp (but of syncs, which touch nothing)."""
    out: list[Candidate] = []
    for position, iop in iops(graph):
        if iop.op == "sync":
            continue
        for name, piece, put in operands(iop):
            for what, make in variants(piece):
                text = f"{what} of {name} ({piece.pointer.name}) of iOp {position} ({iop.op})"
                out.append((text, _built(graph, position, put, make)))
    return out


def _built(
    graph: IGraph, position: int, put: Callable[[ISlice], IOp], make: Callable[[], ISlice]
) -> Callable[[], IGraph]:
    return lambda: edited(graph, position, lambda _: put(make()))


def map_slices(graph: IGraph, fn: Callable[[ISlice], ISlice]) -> IGraph:
    """The graph with every slice replaced."""

    def one(iop: IOp) -> IOp:
        for name, _, _ in list(operands(iop)):
            _, piece, put = next(o for o in operands(iop) if o[0] == name)
            new = fn(piece)
            if new is not piece:
                iop = put(new)
        return iop

    def walk(body: Sequence[Any]) -> list[Any]:
        return [Loop(n.var, n.extent, walk(n.body), n.attrs) if isinstance(n, Loop) else one(n) for n in body]

    return graph.replace(body=walk(graph.body))


def with_pointer(graph: IGraph, name: str, new: IPointer | None) -> IGraph:
    """The graph with one pointer replaced everywhere (None: dropped from the list only)."""
    pointers = [p if p.name != name else new for p in graph.pointers]
    graph = graph.replace(pointers=[p for p in pointers if p is not None])
    if new is None:
        return graph
    return map_slices(graph, lambda s: s.replace(pointer=new) if s.pointer.name == name else s)


def without_unused(graph: IGraph) -> IGraph:
    """The graph without temporary pointers that no iOp names."""
    used = {str(piece.pointer.name) for iop, _ in graph.walk() for piece in iop.slices()}
    return graph.replace(pointers=[p for p in graph.pointers if p.is_param or str(p.name) in used])


def of_level(graph: IGraph, level: str) -> list[IPointer]:
    """The pointers of a level that iOps name."""
    used = {str(piece.pointer.name) for iop, _ in graph.walk() for piece in iop.slices()}
    return [p for p in graph.pointers if p.level == level and str(p.name) in used]


# ---- the loop tree ------------------------------------------------------------------------------


def places(body: Sequence[Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every node, loops too, with its path."""
    for k, node in enumerate(body):
        yield (*path, k), node
        if isinstance(node, Loop):
            yield from places(node.body, (*path, k))


def siblings(graph: IGraph, path: Path) -> Sequence[Any]:
    """The body in which the node at ``path`` stands."""
    body: Sequence[Any] = graph.body
    for k in path[:-1]:
        body = body[k].body
    return body


def with_body(graph: IGraph, path: Path, fn: Callable[[list[Any]], list[Any]]) -> IGraph:
    """The graph with the body in which ``path`` stands replaced; loops that are left empty go too."""

    def walk(body: Sequence[Any], rest: Path) -> list[Any]:
        if len(rest) == 1:
            return fn(list(body))
        out = list(body)
        loop = out[rest[0]]
        inner = walk(loop.body, rest[1:])
        out[rest[0] : rest[0] + 1] = [Loop(loop.var, loop.extent, inner, loop.attrs)] if inner else []
        return out

    return graph.replace(body=walk(graph.body, path))


# ---- quasi-affine expressions -------------------------------------------------------------------


def term_value(term: Term) -> Affine:
    """A term with its coefficient as an expression."""
    if term.kind == "var":
        return var(str(term.var)) * int(term.coeff)
    inner: Any = term.inner
    whole = inner // int(term.divisor) if term.kind == "floordiv" else inner % int(term.divisor)
    return whole * int(term.coeff)


def mapped_terms(expression: Affine, fn: Callable[[Term], Affine]) -> Affine:
    """The expression with every outer term replaced."""
    total = affine(int(expression.constant))
    for term in expression.terms:
        total = total + fn(term)
    return total
