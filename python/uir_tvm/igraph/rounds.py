# SPDX-License-Identifier: Apache-2.0
"""How many rounds of a loop do something, where sizes decide it.

A unit's loop has as many rounds for all sizes, the most that any needs: in those beyond the end of what it
walks all boxes are empty.  Who prints the loop may end it there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .affine import Affine
from .iops import spec_of
from .nodes import IGraph, IOp, Loop, walk_body


def open_rounds(graph: IGraph) -> dict[str, Affine]:
    """Loops of whose rounds only so many do something, an expression of sizes, pid and loops around.

    It may be negative, where none does, and more than the loop has.
    """
    sizes = {str(size.name) for size in graph.sizes}
    if not sizes:
        return {}
    everywhere = Counter(name for iop, _ in graph.walk() for name in _names(iop))
    found = {}
    for loop, inside in _loops(graph.body, {"pid", *sizes}):
        ends = _rounds(loop, inside, sizes, everywhere)
        if ends is not None:
            found[str(loop.var)] = ends
    return found


def _loops(body: Sequence[Any], known: set[str]) -> Iterator[tuple[Loop, set[str]]]:
    """Every loop, with the names that its number of rounds may speak of."""
    for node in body:
        if isinstance(node, Loop):
            yield node, known
            yield from _loops(node.body, {*known, str(node.var)})


def _rounds(loop: Loop, known: set[str], sizes: set[str], everywhere: Counter[str]) -> Affine | None:
    iops = [iop for iop, _ in walk_body(loop.body)]
    own = Counter(name for iop in iops for name in _names(iop))
    common: dict[Affine, None] | None = None
    for iop in iops:
        spec = spec_of(iop)
        if spec.barrier or iop.attrs.get("scope") == "group":
            return None
        ends = [end for end in _ends(iop, str(loop.var)) if set(end.variables()) <= known]
        ends = [end for end in ends if sizes & set(end.variables())]
        if ends:
            common = {end: None for end in ends if common is None or end in common}
        elif any(p.level != "reg" or own[p.name] < everywhere[p.name] for p in _written(iop)):
            return None  # what it leaves behind is there after the loop
    return next(iter(common), None) if common else None


def _ends(iop: IOp, name: str) -> Iterator[Affine]:
    """The rounds from which on the box of what an iOp writes is empty."""
    for end in (iop.target.row_end, iop.target.col_end) if iop.targets else ():
        step = 0 if end is None or not end.is_linear_in(name) else -end.coefficient(name)
        if end is not None and step > 0:
            yield (end.without([name]) + (step - 1)) // step


def _written(iop: IOp) -> list[Any]:
    return [piece.pointer for piece in iop.targets]


def _names(iop: IOp) -> Iterator[str]:
    return (str(piece.pointer.name) for piece in iop.slices())
