# SPDX-License-Identifier: Apache-2.0
"""Exponentials of what had its maximum taken off: arguments that are at most zero take fewer instructions.

Before::

    reduce.max.row t, x;  broadcast.row b, t;  binary.sub d, x, b;  unary.exp e, d

After: the same with ``at_most_zero`` among the attributes of the exponential.  A maximum may be raised
further on the way (`maxs`, `max`), and what it is taken of may be computed twice; NaN stays NaN.  Only what
one body of the loop tree shows counts, of pointers that are written there once, or never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...igraph.nodes import IGraph, IOp, ISlice, Loop
from .element_access import access_of
from .vector_math import OF_NEGATIVE

#: The attribute of a unary iOp whose argument is known to be at most zero, or NaN.
AT_MOST_ZERO = "at_most_zero"
#: iOps that make the same of the same operands, element by element.
_ALIKE = ("move", "unary", "binary", "broadcast")


def marked(graph: IGraph) -> IGraph:
    """The graph with `AT_MOST_ZERO` on the exponentials that it holds for."""
    written = Counter(str(target.pointer.name) for iop, _ in graph.walk() for target in iop.targets)
    return graph.replace(body=_marked(graph.body, written))


def _marked(body: Sequence[Any], written: Mapping[str, int]) -> list[Any]:
    seen = _Seen(written)
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            out.append(Loop(node.var, node.extent, _marked(node.body, written), node.attrs))
            continue
        known = node.op == "unary" and node.name in OF_NEGATIVE and seen.at_most_zero(node.sources[0])
        more = {**node.attrs, AT_MOST_ZERO: True}
        out.append(IOp(node.op, node.name, node.dtype, node.targets, node.sources, more) if known else node)
        seen.add(node)
    return out


@attrs.define
class _Seen:
    """What the iOps of a body made so far, of pointers that nothing else writes."""

    written: Mapping[str, int]
    made: dict[str, IOp] = attrs.field(factory=dict)
    read: set[str] = attrs.field(factory=set)

    def add(self, iop: IOp) -> None:
        self.read.update(str(source.pointer.name) for source in iop.sources)
        for name in (str(target.pointer.name) for target in iop.targets):
            # what was read before held something else
            if self.written[name] == 1 and name not in self.read:
                self.made[name] = iop

    def maker(self, piece: ISlice) -> IOp | None:
        """The iOp that made exactly these elements."""
        iop = self.made.get(str(piece.pointer.name))
        return iop if iop is not None and _same(iop.targets[0], piece) else None

    def at_most_zero(self, piece: ISlice) -> bool:
        """Whether it is a difference of elements and their maximum."""
        difference = self.maker(piece)
        if difference is None or (difference.op, difference.name) != ("binary", "sub"):
            return False
        elements, taken = difference.sources
        spread = self.maker(taken)
        if spread is None or spread.op != "broadcast":
            return False
        return self.reaches(spread.sources[0], elements, str(spread.attrs["axis"]))

    def reaches(self, piece: ISlice, elements: ISlice, axis: str) -> bool:
        """Whether it is no less than any of the elements along an axis."""
        iop = self.maker(piece)
        if iop is None:
            return False
        if iop.op == "reduce":
            whole = iop.name == "max" and iop.attrs["axis"] == axis
            return whole and self.equal(iop.sources[0], elements)
        raised = (iop.op, iop.name) in (("unary", "maxs"), ("binary", "max"))
        return raised and any(self.reaches(source, elements, axis) for source in iop.sources)

    def equal(self, a: ISlice, b: ISlice) -> bool:
        """Whether two slices have the same values: they are the same elements, or were made alike."""
        name = str(a.pointer.name)
        if _same(a, b):
            return name in self.made or not self.written.get(name, 0)
        first, second = self.maker(a), self.maker(b)
        if first is None or second is None or first.op not in _ALIKE:
            return False
        alike = (first.op, first.name, first.dtype) == (second.op, second.name, second.dtype)
        return (
            alike
            and (a.rows, a.cols, a.valid) == (b.rows, b.cols, b.valid)
            and dict(first.attrs) == dict(second.attrs)
            and all(map(self.equal, first.sources, second.sources))
        )


def _same(a: ISlice, b: ISlice) -> bool:
    """Whether two slices are the same elements in the same places."""
    shape = (a.rows, a.cols) == (b.rows, b.cols)
    return shape and access_of(a) == access_of(b) and a.valid == b.valid
