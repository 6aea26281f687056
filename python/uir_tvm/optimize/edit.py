# SPDX-License-Identifier: Apache-2.0
"""Graphs with some iOps replaced, and what that leaves behind tidied away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..igraph.nodes import IGraph, IOp, IPointer, ISlice, Loop, walk_body
from ..igraph.rewrite import pointers_of

#: What takes the place of an iOp: another, several nodes, or nothing.
Change = IOp | Sequence[Any] | None


def edited(
    graph: IGraph, changes: Mapping[int, Change], pointers: Iterable[IPointer] | None = None
) -> IGraph:
    """The graph with some iOps replaced, by position in program order.

    Loops that hold nothing any more go, and so do pointers that only iOps named which are gone.

    Parameters
    ----------
    changes : mapping from position to iOp, sequence of nodes, or None
        An empty mapping gives ``graph`` itself, unless ``pointers`` are given.
    pointers : iterable of IPointer, optional
        The pointers that the new body may name; default: those of the graph.
    """
    if not changes and pointers is None:
        return graph
    body, _ = _rebuilt(graph.body, changes, 0)
    before = pointers_of(graph.body)
    after = pointers_of(body)
    listed = graph.pointers if pointers is None else list(pointers)
    kept = [p for p in listed if p.is_param or str(p.name) in after or str(p.name) not in before]
    return graph.replace(body=body, pointers=kept)


def _rebuilt(body: Sequence[Any], changes: Mapping[int, Change], at: int) -> tuple[list[Any], int]:
    """The body with its changes, and the position after it; loops without a change stay as they are."""
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            end = at + sum(1 for _ in walk_body([node]))
            if any(at <= position < end for position in changes):
                inner, _ = _rebuilt(node.body, changes, at)
                if inner:
                    out.append(Loop(node.var, node.extent, inner, node.attrs))
            else:
                out.append(node)
            at = end
            continue
        change = changes.get(at, node)
        at += 1
        if isinstance(change, IOp | Loop):
            out.append(change)
        elif change is not None:
            out.extend(change)
    return out, at


def with_slices(iop: IOp, changes: Mapping[str, ISlice]) -> IOp:
    """The iOp with other operands, by name: ``target``, ``source0``, ``source1``, ... or ``buffer``."""
    targets = [changes.get("target", t) if k == 0 else t for k, t in enumerate(iop.targets)]
    sources = [changes.get(f"source{k}", s) for k, s in enumerate(iop.sources)]
    attrs = dict(iop.attrs)
    if "buffer" in changes:
        attrs["buffer"] = changes["buffer"]
    return IOp(iop.op, iop.name, iop.dtype, targets, sources, attrs)


def fresh_name(graph: IGraph, hint: str, taken: set[str] | None = None) -> str:
    """A pointer's name like ``hint`` that the graph has not; it is added to ``taken``."""
    names = {str(p.name) for p in graph.pointers} | (taken or set())
    name, count = hint, 0
    while name in names:
        count += 1
        name = f"{hint}_{count}"
    if taken is not None:
        taken.add(name)
    return name
